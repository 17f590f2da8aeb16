"""How a command logs in and encrypts: a client's properties, as Java's clients or librdkafka name them, as options of
kafka-python, and as some of our own (`OWN`)."""

from __future__ import annotations

from pykafkad.cli.client_options import JAVA_TOKENS, KERBEROS_SERVICE
from pykafkad.cli.output import Failure
from pykafkad.errors import ConfigError
from pykafkad.sasl.offer import GSSAPI, LOGIN_MODULES, OAUTHBEARER
from pykafkad.settings.sources import from_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

# The property of a Java client or of librdkafka to the option of kafka-python.
OPTIONS = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.ca.location": "ssl_cafile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.kerberos.principal": "principal",
    "sasl.kerberos.keytab": "keytab",
    "sasl.oauthbearer.token.endpoint.url": "token_url",
    "sasl.oauthbearer.client.credentials.client.id": "token_client",
    "sasl.oauthbearer.client.credentials.client.secret": "token_secret",
    "sasl.oauthbearer.client.id": "token_client",
    "sasl.oauthbearer.client.secret": "token_secret",
    "sasl.oauthbearer.scope": "token_scope",
}
JAAS = "sasl.jaas.config"
TOKEN_OPTION = "tokenauth"
BY_TOKEN = "is_by_token"
"""The option of ours that says that name and password are a delegation token's."""

UNSIGNED = "unsigned"
"""The option of ours that has the login module's options of a token that nobody has signed."""

OWN = (
    BY_TOKEN, UNSIGNED, "principal", "keytab", "tickets", "token_url", "token_client", "token_secret", "token_scope",
)  # fmt: skip
"""Options that are none of kafka-python's."""

# What clients are told besides, and the only values with which commands do the same.
FIXED = {
    "sasl.oauthbearer.method": ("oidc",),
    "sasl.login.callback.handler.class": (
        JAVA_TOKENS,
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    ),
}

HOST_NAMES = "ssl.endpoint.identification.algorithm"
PEM = ("ssl.truststore.type", "ssl.keystore.type")


def read(path: str | None) -> dict[str, object]:
    """The options that a file of properties stands for; none without a file. Raises `Failure` for what commands can't
    use, and quotes no value, as some are secrets."""
    if path is None:
        return {}
    try:
        properties = {name: value for name, (value, _) in from_file(path).items()}
        return _options(properties, path)
    except ConfigError as error:
        raise Failure(str(error), 2) from None


def _options(properties: Mapping[str, str], path: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in properties.items():
        if name in OPTIONS:
            found[OPTIONS[name]] = value
        elif name == JAAS:
            found.update(_login(value, path))
        elif name == HOST_NAMES:
            found["ssl_check_hostname"] = value.strip().lower() == "https"
        elif name in PEM:
            if value.upper() != "PEM":
                raise Failure(f"{path}: {name} must be PEM; commands read no other stores", 2)
        elif name in FIXED:
            if value not in FIXED[name]:
                raise Failure(f"{path}: {name} must be {FIXED[name][0]}; commands know no other", 2)
        elif name == TOKEN_OPTION:
            # Java's clients would ignore it, and log in as a user of that name.
            raise Failure(f'{path}: {name} is no property: it stands in {JAAS}, as {name}="true"', 2)
        elif name.startswith(("ssl.", "sasl.", "security.")):
            allowed = ", ".join((*OPTIONS, JAAS, HOST_NAMES, *PEM, *FIXED))
            raise Failure(f"{path}: commands do not know {name}; they know {allowed}", 2)
    protocol = found.get("security_protocol", "PLAINTEXT")
    if protocol not in PROTOCOLS:
        raise Failure(f"{path}: security.protocol must be one of {', '.join(PROTOCOLS)}", 2)
    if str(protocol).startswith("SASL"):
        _check_login(found, path)
    if BY_TOKEN in found and not str(found.get("sasl_mechanism", "")).startswith("SCRAM-"):
        raise Failure(f"{path}: {TOKEN_OPTION} in {JAAS} needs sasl.mechanism to be SCRAM-SHA-256 or SCRAM-SHA-512", 2)
    return found


def _check_login(found: dict[str, object], path: str) -> None:
    """Raises `Failure` unless there is what the mechanism needs."""
    protocol, mechanism = found["security_protocol"], found.get("sasl_mechanism")
    if mechanism == OAUTHBEARER:
        if UNSIGNED not in found and not {"token_url", "token_client", "token_secret"} <= found.keys():
            raise Failure(
                f"{path}: {OAUTHBEARER} needs sasl.oauthbearer.token.endpoint.url, and clientId and clientSecret in "
                f"{JAAS} or as sasl.oauthbearer.client.credentials.client.id and .secret",
                2,
            )
    elif mechanism == GSSAPI:
        found.setdefault("sasl_kerberos_service_name", KERBEROS_SERVICE)
    elif not {"sasl_mechanism", "sasl_plain_username"} <= found.keys():
        raise Failure(f"{path}: {protocol} needs sasl.mechanism, and sasl.username or {JAAS}", 2)


def _login(text: str, path: str) -> dict[str, object]:
    from pykafkad.sasl import jaas

    try:
        module = jaas.parse(text)
    except ConfigError as error:
        raise Failure(f"{path}: {JAAS} {error}", 2) from None
    options = module.options
    if module.class_name == LOGIN_MODULES[OAUTHBEARER]:
        return _token(options, path)
    if module.class_name == LOGIN_MODULES[GSSAPI]:
        names = {"principal": "principal", "serviceName": "sasl_kerberos_service_name"}
        if options.get("useKeyTab", "").lower() == "true":
            names["keyTab"] = "keytab"
        elif options.get("useTicketCache", "").lower() == "true":
            names["ticketCache"] = "tickets"
        return {names[name]: value for name, value in options.items() if name in names}
    if not {"username", "password"} <= options.keys():
        raise Failure(f"{path}: {JAAS} must have username and password", 2)
    found: dict[str, object] = {
        "sasl_plain_username": options["username"],
        "sasl_plain_password": options["password"],
    }
    # As Java's parseBoolean reads it.
    return found | {BY_TOKEN: True} if options.get(TOKEN_OPTION, "").lower() == "true" else found


def _token(options: Mapping[str, str], path: str) -> dict[str, object]:
    """What the login module says of a token."""
    from pykafkad.cli import token_login

    names = {"clientId": "token_client", "clientSecret": "token_secret", "scope": "token_scope"}
    unsigned = {name: value for name, value in options.items() if name.startswith(token_login.UNSIGNED)}
    found: dict[str, object] = {names[name]: value for name, value in options.items() if name in names}
    if unsigned:
        try:
            token_login.check(unsigned)
        except ValueError as error:
            raise Failure(f"{path}: {JAAS} {error}", 2) from None
        found[UNSIGNED] = unsigned
    return found
