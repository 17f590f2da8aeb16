"""Bugs to plant in delegation tokens: their rules, their logins and their end."""

from __future__ import annotations

from tests.planted.plant import Plant

RULES = ("tests/metadata/test_delegation_tokens.py",)
CREATE = ("tests/handlers/test_create_delegation_token.py",)
DESCRIBE = ("tests/handlers/test_describe_delegation_token.py",)
LOGINS = ("tests/server/test_token_logins.py",)
EXPIRY = ("tests/server/test_token_expiry.py",)

PLANTS = (
    Plant(
        "an HMAC is made without the secret",
        "metadata/delegation_tokens.py",
        'digest(secret.encode("utf-8", "surrogateescape"), token_id.encode(), "sha512")',
        'digest(b"", token_id.encode(), "sha512")',
        RULES,
    ),
    Plant(
        "a token lives longer than the settings allow",
        "metadata/delegation_tokens.py",
        "life_ms = min(life_ms, event.max_lifetime_ms)",
        "life_ms = event.max_lifetime_ms",
        RULES,
    ),
    Plant(
        "a renewal goes beyond the longest life",
        "metadata/delegation_tokens.py",
        "expiration_timestamp=min(token.max_timestamp, time_ms)",
        "expiration_timestamp=time_ms",
        RULES,
    ),
    Plant(
        "who has asked for a token may renew it",
        "metadata/delegation_tokens.py",
        "principal == token.owner or principal in token.renewers",
        "principal in (token.owner, token.requester, *token.renewers)",
        RULES,
    ),
    Plant(
        "what has expired is renewed",
        "metadata/delegation_tokens.py",
        "if token is not None and is_expired(token, event.now_ms):",
        "if False:",
        RULES,
    ),
    Plant(
        "the HMAC of a token that has ended is still known",
        "metadata/delegation_tokens.py",
        "if token_id not in self._image.delegation_tokens:",
        "if False:",
        RULES,
    ),
    Plant(
        "an owner may have one token too many",
        "metadata/delegation_tokens.py",
        "get(owner, 0) >= settings.pykafkad_delegation_tokens_max_per_owner",
        "get(owner, 0) > settings.pykafkad_delegation_tokens_max_per_owner",
        RULES,
    ),
    Plant(
        "tokens are made for everybody",
        "handlers/create_delegation_token.py",
        'if owner != requester and not may(ctx, _CREATE_FOR_OTHERS, ":".join(owner)):',
        "if False:",
        CREATE,
    ),
    Plant(
        "everybody sees all tokens",
        "handlers/describe_delegation_token.py",
        "lambda token: may(ctx, _DESCRIBE, token.token_id, token.owner)",
        "lambda token: True",
        DESCRIBE,
    ),
    Plant(
        "whoever may see the tokens of somebody may see those of all",
        "handlers/authorization.py",
        'CLUSTER_NAME if resource_type == "Cluster" else user)',
        'CLUSTER_NAME if resource_type == "Cluster" else None)',
        DESCRIBE,
    ),
    Plant(
        "a token is enough to get the next",
        "handlers/context.py",
        "else not session.login.is_by_token",
        "else True",
        CREATE,
    ),
    Plant(
        "an anonymous caller gets a token",
        "handlers/context.py",
        "session.principal != ANONYMOUS if session.login is None",
        "True if session.login is None",
        CREATE,
    ),
    Plant(
        "a login by a token is the token's and not its owner's",
        "sasl/scram.py",
        "self.user = user if token is None else token.owner",
        "self.user = user",
        LOGINS,
    ),
    Plant(
        "a login outlives its delegation token",
        "sasl/scram.py",
        "credential, self.expires_ms = token.credential, token.expires_ms",
        "credential = token.credential",
        LOGINS,
    ),
    Plant(
        "credentials of tokens are kept without a limit",
        "server/token_logins.py",
        "if len(self._credentials) >= CREDENTIALS_MAX:",
        "if False:",
        LOGINS,
    ),
    Plant(
        "expired tokens are removed once",
        "server/token_expiry.py",
        "self.begin()\nnow_ms",
        "now_ms",
        EXPIRY,
    ),
    Plant(
        "the system is asked to wait for centuries",
        "server/token_expiry.py",
        "min(seconds, LONGEST_PAUSE_SECONDS)",
        "seconds",
        EXPIRY,
    ),
    Plant(
        "of many expired tokens some wait for the next check",
        "server/token_expiry.py",
        "if count == MAX_EXPIRED_PER_CHANGE:",
        "if False:",
        EXPIRY,
    ),
)
