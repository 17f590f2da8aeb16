"""Which tokens of OAUTHBEARER count at a listener: the rule that the settings choose.

Kafka chooses by `listener.name.<listener>.oauthbearer.sasl.server.callback.handler.class`. Without it tokens are
believed as they are (`unsecured_jws.py`). With its OAuthBearerValidatorCallbackHandler an issuer has signed them
(`signed_jwt.py`), whose keys stand at `sasl.oauthbearer.jwks.endpoint.url`.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad.errors import ConfigError
from pykafkad.sasl.unsecured_jws import UnsecuredValidator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pykafkad.sasl.jwks import Keys
    from pykafkad.sasl.listener_settings import ListenerSettings
    from pykafkad.sasl.oauthbearer import Validate

    OpenKeys = Callable[["Endpoint"], Keys]
    """Reads the keys of an address for the first time. Raises ConfigError or StartFailure."""

OAUTHBEARER = "OAUTHBEARER"
CALLBACKS = "sasl.server.callback.handler.class"
ENDPOINT = "sasl.oauthbearer.jwks.endpoint.url"
_VALIDATOR = "sasl.oauthbearer.jwt.validator.class"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer."
LOGIN_MODULE = f"{_PACKAGE}OAuthBearerLoginModule"
UNSECURED = f"{_PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
SIGNED = f"{_PACKAGE}OAuthBearerValidatorCallbackHandler"
_VALIDATORS = (f"{_PACKAGE}DefaultJwtValidator", f"{_PACKAGE}BrokerJwtValidator")
_TIMES = (
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
)
_TRUST, _TRUST_TYPE = "ssl.truststore.location", "ssl.truststore.type"

Endpoint = namedtuple("Endpoint", ("url", "path", "trust_path", "refresh_ms", "retry_ms", "retry_max_ms"))
Endpoint.__doc__ = """Where the keys are: a URL, and its path if it is that of a file; the certificates that are trusted
there (None: the system's), and how often to ask, and to ask again in vain."""


def validator(
    read: ListenerSettings, options: Mapping[str, str] | None, now_ms: Callable[[], int], open_keys: OpenKeys
) -> Validate:
    """What checks tokens. `options` are those of the login module. Raises ConfigError."""
    jaas, _ = read.given("sasl.jaas.config", OAUTHBEARER)
    if options is None:
        raise ConfigError(
            f"{jaas}: is not set, and Kafka does not start without it; set it to: {LOGIN_MODULE} required;"
        )
    setting, chosen = read.given(CALLBACKS, OAUTHBEARER)
    if chosen == SIGNED:
        return _signed(read, options, jaas, now_ms, open_keys)
    chosen = read.value(CALLBACKS, OAUTHBEARER)
    if chosen not in (None, UNSECURED):
        raise ConfigError(
            f"{read.name(CALLBACKS, OAUTHBEARER)}: {chosen} is a Java class, which cannot run here; for tokens that an "
            f"issuer has signed set {setting}={SIGNED} and {ENDPOINT}"
        )
    if read.value(ENDPOINT, OAUTHBEARER):
        # Kafka would start, and believe every token.
        raise ConfigError(
            f"{read.name(ENDPOINT, OAUTHBEARER)}: no token would be verified by it, as {setting} is not {SIGNED}"
        )
    try:
        return UnsecuredValidator(options, now_ms)
    except ConfigError as error:
        raise ConfigError(f"{jaas}: {error}") from None


def _signed(
    read: ListenerSettings, options: Mapping[str, str], jaas: str, now_ms: Callable[[], int], open_keys: OpenKeys
) -> Validate:
    from pykafkad.sasl import signed_jwt

    setting, _ = read.given(CALLBACKS, OAUTHBEARER)
    if (chosen := read.value(_VALIDATOR, OAUTHBEARER)) not in _VALIDATORS:
        raise ConfigError(
            f"{read.name(_VALIDATOR, OAUTHBEARER)}: {chosen} is a Java class, which cannot run here; use one of "
            f"{', '.join(_VALIDATORS)}"
        )
    endpoint = _endpoint(read, options, jaas)
    try:
        signed_jwt.check_library()
    except ConfigError as error:
        raise ConfigError(f"{setting}: {error}") from None
    rules = signed_jwt.Rules(
        frozenset(read.value("sasl.oauthbearer.expected.audience", OAUTHBEARER)),
        (read.value("sasl.oauthbearer.expected.issuer", OAUTHBEARER) or "").strip() or None,
        _claim(read, "sasl.oauthbearer.scope.claim.name"),
        _claim(read, "sasl.oauthbearer.sub.claim.name"),
        read.value("sasl.oauthbearer.clock.skew.seconds", OAUTHBEARER),
    )
    return signed_jwt.SignedValidator(open_keys(endpoint), rules, now_ms)


def _claim(read: ListenerSettings, setting: str) -> str:
    name: str = (read.value(setting, OAUTHBEARER) or "").strip()
    if not name:
        raise ConfigError(f"{read.name(setting, OAUTHBEARER)}: must name a claim")
    return name


def _endpoint(read: ListenerSettings, options: Mapping[str, str], jaas: str) -> Endpoint:
    from urllib.parse import urlsplit

    name = read.name(ENDPOINT, OAUTHBEARER)
    url = (read.value(ENDPOINT, OAUTHBEARER) or "").strip()
    if not url:
        raise ConfigError(f"{name}: is not set; it is the address of the keys of the issuer of tokens")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ConfigError(f"{name}: {url} is no URL: {error}") from None
    is_file = parts.scheme == "file"
    if not (is_file and parts.path.startswith("/")) and not (parts.scheme in ("http", "https") and parts.hostname):
        raise ConfigError(f"{name}: {url} must be a URL with http, https or file")
    others = [key for key in options if key.startswith("ssl.") and key not in (_TRUST, _TRUST_TYPE)]
    if others or (_TRUST in options and options.get(_TRUST_TYPE, "").upper() != "PEM"):
        raise ConfigError(
            f"{jaas}: of the options for TLS with the issuer only {_TRUST} counts, with {_TRUST_TYPE}=PEM"
        )
    times = []
    for setting in _TIMES:
        times.append(read.value(setting, OAUTHBEARER))
        if times[-1] < 1:
            raise ConfigError(f"{read.name(setting, OAUTHBEARER)}: must be at least 1")
    return Endpoint(url, parts.path if is_file else None, options.get(_TRUST), *times)
