"""Bugs to plant in the verifying of tokens that an issuer has signed, and in where its keys come from."""

from __future__ import annotations

from tests.planted.plant import Plant

SIGNED = ("tests/sasl/test_signed_jwt.py",)
LOGIN_SETTINGS = ("tests/server/test_login_settings.py",)
KEYS = ("tests/server/test_jwks_source.py",)

PLANTS = (
    Plant(
        "a signature is not verified",
        "sasl/signed_jwt.py",
        "_verify(token, key, algorithm)",
        "pass",
        SIGNED,
    ),
    Plant(
        "a token chooses the type of the key",
        "sasl/jwks.py",
        'key["kty"] == KEY_TYPES[algorithm]',
        "True",
        SIGNED,
    ),
    Plant(
        "a token may name no key of the issuer",
        "sasl/jwks.py",
        'and key_id in (None, key.get("kid"))',
        "",
        SIGNED,
    ),
    Plant(
        "a key for encryption verifies",
        "sasl/jwks.py",
        'and key.get("use") in (None, "sig")',
        "",
        SIGNED,
    ),
    Plant(
        "a signed token that has expired counts",
        "sasl/signed_jwt.py",
        "if now - skew >= end:",
        "if False:",
        SIGNED,
    ),
    Plant(
        "a signed token counts before its time",
        "sasl/signed_jwt.py",
        "if now + skew < begin:",
        "if False:",
        SIGNED,
    ),
    Plant(
        "a token for another audience counts",
        "sasl/signed_jwt.py",
        "if self._rules.audiences and self._rules.audiences.isdisjoint(audiences):",
        "if False:",
        SIGNED,
    ),
    Plant(
        "a token for an audience counts where none is expected",
        "sasl/signed_jwt.py",
        'if "aud" in claims and not self._rules.audiences:',
        "if False:",
        SIGNED,
    ),
    Plant(
        "a token of another issuer counts",
        "sasl/signed_jwt.py",
        'if self._rules.issuer not in (None, claims.get("iss")):',
        "if False:",
        SIGNED,
    ),
    Plant(
        "short keys of RSA count",
        "sasl/signed_jwt.py",
        "_RSA_BITS_MIN = 2048",
        "_RSA_BITS_MIN = 0",
        SIGNED,
    ),
    Plant(
        "an extension that must be known is read over",
        "sasl/signed_jwt.py",
        'if "crit" in header:',
        "if False:",
        SIGNED,
    ),
    Plant(
        "the file of keys is read once",
        "server/jwks_source.py",
        "if seen == self._seen:",
        "if self._seen:",
        KEYS,
    ),
    Plant(
        "an issuer is asked once",
        "server/jwks_source.py",
        "self._ask_in(self._endpoint.refresh_ms)",
        "pass",
        KEYS,
    ),
    Plant(
        "an issuer that does not answer is not asked again",
        "server/jwks_source.py",
        "self._ask_in(self._pause_ms)",
        "pass",
        KEYS,
    ),
    Plant(
        "an issuer that never ends its answer is not asked again",
        "server/jwks_source.py",
        "if self._offload is not None and runtime.now > self._asked_at + FETCH_SECONDS:",
        "if False:",
        KEYS,
    ),
    Plant(
        "a start waits for an issuer for ever",
        "server/offload.py",
        "thread.join(seconds)",
        "thread.join()",
        KEYS,
    ),
    Plant(
        "a mistake with the keys of an issuer ends the asking",
        "server/jwks_source.py",
        "except Exception as error:",
        "except (OSError, ValueError) as error:",
        KEYS,
    ),
    Plant(
        "an odd key spoils the issuer's others",
        "sasl/jwks.py",
        "(operations is None or isinstance(operations, list))",
        "True",
        SIGNED,
    ),
    Plant(
        "tokens can have the issuer asked without a pause",
        "server/jwks_source.py",
        "self._ask_in(max(0.0, 1000 * (self._asked_at + LEAST_PAUSE_SECONDS - now)))",
        "self._ask_in(0)",
        KEYS,
    ),
    Plant(
        "the names of missing keys are remembered without a limit",
        "server/jwks_source.py",
        "while len(self._missed) >= MISSES_MAX:",
        "while False:",
        KEYS,
    ),
    Plant(
        "an issuer's answer has any length",
        "server/jwks_source.py",
        "if len(data) > BYTES_MAX:",
        "if False:",
        KEYS,
    ),
    Plant(
        "logins that are replaced go on asking the issuer",
        "server/logins.py",
        "found[listener].close()",
        "pass",
        LOGIN_SETTINGS,
    ),
    Plant(
        "new certificates of a listener open the keys of its issuer anew",
        "server/logins.py",
        'any(f".{each}" in f".{name}" for each in _READ)',
        "True",
        LOGIN_SETTINGS,
    ),
    Plant(
        "a blank of Unicode at the end of a principal is lost",
        "sasl/compact_jwt.py",
        "text.strip(_BLANKS)",
        "text.strip()",
        SIGNED,
    ),
)
