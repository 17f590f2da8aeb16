"""Bugs to plant in logins by Kerberos, in the issuer of tokens for tests, and in commands that log in by a token."""

from __future__ import annotations

from tests.planted.plant import Plant

KERBEROS = ("tests/sasl/test_kerberos.py",)
NAMES = ("tests/sasl/test_kerberos_names.py",)
LOGINS = ("tests/server/test_kerberos_logins.py",)
ISSUER = ("tests/issuer/test_application.py",)
SERVE = ("tests/cli/test_oauth.py",)
LINES = ("tests/cli/test_client_config.py",)
COMMANDS = ("tests/cli/test_login.py",)
TOKENS = ("tests/cli/test_token_login.py",)
TICKETS = ("tests/cli/test_kerberos_login.py",)

PLANTS = (
    Plant(
        "a client chooses a security layer that is not there",
        "sasl/kerberos.py",
        "if choice and not choice[0] & NO_LAYER:",
        "if False:",
        KERBEROS,
    ),
    Plant(
        "a choice of a layer may be cut",
        "sasl/kerberos.py",
        "if len(choice) < len(OFFERED):",
        "if False:",
        KERBEROS,
    ),
    Plant(
        "a token after the last one is taken for none",
        "sasl/kerberos.py",
        'return _wrong("a token after the last") if token else self._offer()',
        "return self._offer()",
        KERBEROS,
    ),
    Plant(
        "names of every realm are the broker's own",
        "sasl/kerberos_names.py",
        "return parameters[1] if parameters[0] == self._default_realm else None",
        "return parameters[1]",
        NAMES,
    ),
    Plant(
        "a rule fits a part of a name",
        "sasl/kerberos_names.py",
        "rule.match.fullmatch(base) is None",
        "rule.match.match(base) is None",
        NAMES,
    ),
    Plant(
        "a rule makes a name with a realm",
        "sasl/kerberos_names.py",
        "if _NOT_SIMPLE.search(name):",
        "if False:",
        NAMES,
    ),
    Plant(
        "a rule fits names of any number of parts",
        "sasl/kerberos_names.py",
        "if len(parameters) - 1 != rule.parts:",
        "if False:",
        NAMES,
    ),
    Plant(
        "who has no name goes on",
        "server/logins.py",
        "connection.end_reading()\nself._logins.runtime.call_later(LAST_WORD_SECONDS, end)",
        "pass",
        LOGINS,
    ),
    Plant(
        "a client that is gone logs in",
        "server/logins.py",
        "if runtime.reactor.connection(connection.id) is not connection:",
        "if False:",
        LOGINS,
    ),
    Plant(
        "tickets are looked at by the loop",
        "handlers/sasl_authenticate.py",
        "if login.may_block:",
        "if False:",
        LOGINS,
    ),
    Plant(
        "who logs in again loses its name and goes on",
        "sasl/login.py",
        'step = Step(REFUSED, problem="its name has no rule", is_silent=True, reason=step.reason)',
        "pass",
        LOGINS,
    ),
    Plant(
        "two service names are fine",
        "sasl/kerberos_settings.py",
        "if service not in (None, of_module):",
        "if False:",
        LOGINS,
    ),
    Plant(
        "any secret is right",
        "issuer/tokens.py",
        "return is_right and expected is not None",
        "return expected is not None",
        ISSUER,
    ),
    Plant(
        "a client that does not exist has the secret of nobody",
        "issuer/tokens.py",
        "return is_right and expected is not None",
        "return is_right",
        ISSUER,
    ),
    Plant(
        "a client's encoded secret is not known",
        "issuer/tokens.py",
        "if may_be_encoded:",
        "if False:",
        ISSUER,
    ),
    Plant(
        "every grant is served",
        "issuer/application.py",
        "if grant != GRANT:",
        "if False:",
        ISSUER,
    ),
    Plant(
        "a field of a form counts though it is there twice",
        "issuer/application.py",
        "if len(fields) < len(pairs):",
        "if False:",
        ISSUER,
    ),
    Plant(
        "a token may be kept by proxies",
        "issuer/application.py",
        'headers += [("Cache-Control", "no-store"), ("Pragma", "no-cache")]',
        "pass",
        ISSUER,
    ),
    Plant(
        "the issuer has a clock of its own",
        "cli/serve.py",
        "issuer.follow(beside.clock)",
        "pass",
        SERVE,
    ),
    Plant(
        "the issuer outlives the broker",
        "cli/serve.py",
        "issuer.close()",
        "pass",
        SERVE,
    ),
    Plant(
        "an error of --oauth shows its text",
        "cli/oauth.py",
        'raise ConfigError(f"{ORIGIN}: number {number} must be CLIENT:SECRET")',
        'raise ConfigError(f"{ORIGIN}: {text} must be CLIENT:SECRET")',
        SERVE,
    ),
    Plant(
        "another issuer's keys are believed in place of those of --oauth",
        "cli/oauth.py",
        "if ENDPOINT in properties:",
        "if False:",
        SERVE,
    ),
    Plant(
        "a token is used until it has ended",
        "cli/token_source.py",
        "(1 - LEFT)",
        "1",
        SERVE,
    ),
    Plant(
        "an issuer on this machine is asked through a proxy",
        "cli/token_source.py",
        'request.ProxyHandler({} if is_local(urlsplit(url).hostname or "") else None)',
        "request.ProxyHandler()",
        TOKENS,
    ),
    Plant(
        "no proxy is asked for an issuer elsewhere",
        "cli/token_source.py",
        'request.ProxyHandler({} if is_local(urlsplit(url).hostname or "") else None)',
        "request.ProxyHandler({})",
        TOKENS,
    ),
    Plant(
        "a secret goes to wherever an issuer sends one",
        "cli/token_source.py",
        "request.UnknownHandler(),",
        "request.UnknownHandler(), request.HTTPRedirectHandler(),",
        TOKENS,
    ),
    Plant(
        "a command takes what another broker offers",
        "cli/kerberos_login.py",
        "offered = self._context.unwrap(auth_bytes).message",
        "offered = auth_bytes",
        TICKETS,
    ),
    Plant(
        "a command replaces the tickets of its user",
        "cli/kerberos_login.py",
        '"ccache": "MEMORY:pykafkad"',
        '"ccache": "FILE:/tmp/krb5cc"',
        TICKETS,
    ),
    Plant(
        "kafkajs is told to log in by Kerberos",
        "cli/client_options.py",
        "if access.mechanism == GSSAPI and family is _kafkajs:",
        "if False:",
        LINES,
    ),
    Plant(
        "a delegation token logs in as a user",
        "cli/client_properties.py",
        'return found | {BY_TOKEN: True} if options.get(TOKEN_OPTION, "").lower() == "true" else found',
        "return found",
        COMMANDS,
    ),
    Plant(
        "a broker need not know the token",
        "cli/token_scram.py",
        'elif compare_digest(b64decode(fields["v"]), self._signature):',
        "elif True:",
        COMMANDS,
    ),
    Plant(
        "commands log in by tokens for ever",
        "cli/client_login.py",
        "register_sasl_mechanism(mechanism, usual, overwrite=True)",
        "pass",
        COMMANDS,
    ),
)
