"""What the settings offer at one SASL listener: mechanisms, users of PLAIN, and limits of a login.

What Kafka offers and this version does not is refused at start, with what to use instead.
"""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.sasl.listener_settings import ListenerSettings
from pykafkad.sasl.plain import Plain
from pykafkad.sasl.scram import HASHES, Scram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pykafkad.config import Settings
    from pykafkad.sasl.callback import Callback
    from pykafkad.sasl.kerberos import Gssapi, OpenAcceptor
    from pykafkad.sasl.oauthbearer import OAuthBearer, Validate
    from pykafkad.sasl.scram import Credential, Token
    from pykafkad.sasl.token_rules import OpenKeys

    FindCredential = Callable[[str, str], Credential | None]
    """`find(mechanism, user)`: the credential of a user for SCRAM-SHA-256 or SCRAM-SHA-512."""
    FindToken = Callable[[str, str], Token | None]
    """`find(mechanism, token_id)`: a delegation token, for one of these."""

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
GSSAPI = "GSSAPI"
WITH_PASSWORD = (PLAIN, *HASHES)
MECHANISMS = (*WITH_PASSWORD, OAUTHBEARER, GSSAPI)

LOGIN_MODULES = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    **dict.fromkeys(HASHES, "org.apache.kafka.common.security.scram.ScramLoginModule"),
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    GSSAPI: "com.sun.security.auth.module.Krb5LoginModule",
}
USER_PREFIX = "user_"
_NONCE_BYTES = 24
SECRET_BYTES = 32
"""Of what the salts of users that do not exist are made."""

_CALLBACKS = "sasl.server.callback.handler.class"
_PYTHON_CALLBACK = "pykafkad.sasl.callback"

# Kafka's order is that of a hash table of Java.
_BUCKETS = {GSSAPI: 3, "SCRAM-SHA-256": 6, OAUTHBEARER: 8}


class Offer:
    """What one listener offers. `mechanisms` are in the order in which Kafka tells them to clients."""

    __slots__ = (
        "_callbacks",
        "_find",
        "_find_token",
        "_kerberos",
        "_max_reauth_ms",
        "_now_ms",
        "_own_secret",
        "_passwords",
        "_random_bytes",
        "_settings",
        "_tell",
        "_validate",
        "max_receive_bytes",
        "mechanisms",
    )

    def __init__(
        self,
        settings: Settings,
        listener: str,
        find: FindCredential,
        random_bytes: Callable[[int], bytes],
        now_ms: Callable[[], int],
        tell: Callable[[str], object],
        open_keys: OpenKeys,
        find_token: FindToken | None = None,
        open_acceptor: OpenAcceptor | None = None,
        warn: Callable[[str], object] | None = None,
    ) -> None:
        """Reads the settings for `listener`. `random_bytes(n)` gives bytes that nobody can guess, `now_ms()` is the
        time since 1970, `tell` takes the reason why a token is refused, for the broker's log, and `open_keys` reads
        the keys of who signs tokens. Without `find_token` there are no delegation tokens. `open_acceptor` opens the
        keytab of GSSAPI. `warn` takes what is wrong with a Python callable, for the broker's log. Raises ConfigError,
        and StartFailure where there are no keys."""
        read = ListenerSettings(settings, listener)
        self._find = find
        self._find_token = find_token
        self._random_bytes = random_bytes
        self._settings = settings
        self._own_secret = random_bytes(SECRET_BYTES)
        self._now_ms = now_ms
        self._tell = tell
        names = dict.fromkeys(read.value("sasl.enabled.mechanisms"))
        for name in names:
            _refuse_unknown(read, name)
            if name != OAUTHBEARER:
                _refuse_callbacks(read, name)
        self.mechanisms = sorted(names, key=lambda name: _BUCKETS.get(name, 0))
        if not self.mechanisms:
            raise ConfigError(f"{read.name('sasl.enabled.mechanisms')}: names no mechanism")
        self._callbacks = _callbacks(read, self.mechanisms, warn or tell)
        options = {name: read.login_options(name, LOGIN_MODULES[name]) for name in self.mechanisms}
        self._passwords = {}
        if PLAIN in options and PLAIN not in self._callbacks:
            self._passwords = _passwords(read, options[PLAIN])
        self.max_receive_bytes: int = read.value("sasl.server.max.receive.size")
        self._max_reauth_ms: dict[str, int] = {
            name: read.value("connections.max.reauth.ms", name) for name in self.mechanisms
        }
        self._kerberos: Callable[[], Gssapi] | None = None
        if GSSAPI in options:
            from pykafkad.sasl import kerberos_settings

            assert open_acceptor is not None
            self._kerberos = kerberos_settings.exchanges(read, options[GSSAPI], open_acceptor)
        self._validate: Validate | None = None
        if OAUTHBEARER in self._callbacks:
            self._validate = self._callbacks[OAUTHBEARER].validate
        elif OAUTHBEARER in options:
            # The last: whatever is wrong with the settings, no keys are opened that nobody closes.
            from pykafkad.sasl import token_rules

            self._validate = token_rules.validator(read, options[OAUTHBEARER], now_ms, open_keys)

    def exchange(self, mechanism: str) -> Plain | Scram | OAuthBearer | Gssapi:
        """A new exchange of one of the `mechanisms`."""
        callback = self._callbacks.get(mechanism)
        if mechanism == PLAIN:
            return Plain(self._passwords, None if callback is None else callback.may_log_in)
        if mechanism == OAUTHBEARER:
            from pykafkad.sasl.oauthbearer import OAuthBearer

            assert self._validate is not None
            return OAuthBearer(self._validate, self._tell, may_block=callback is not None)
        if mechanism == GSSAPI:
            assert self._kerberos is not None
            return self._kerberos()
        find, find_token = self._find, self._find_token
        nonce = self._random_bytes(_NONCE_BYTES).hex()
        # Once the cluster has one, it is the same at all listeners and after each start.
        text = self._settings.pykafkad_sasl_scram_secret
        secret = text.encode() if text else self._own_secret
        return Scram(
            mechanism,
            (lambda user: find(mechanism, user))
            if callback is None
            else lambda user: callback.credential(user, secret),
            nonce,
            secret,
            None if find_token is None else lambda token_id: find_token(mechanism, token_id),
            may_block=callback is not None,
        )

    def session_lifetime_ms(self, mechanism: str, expires_ms: int | None) -> int | None:
        """How long a login counts that is made now with what ends at `expires_ms` (None: with what does not end);
        None: until the connection ends."""
        longest = self._max_reauth_ms[mechanism]
        times = [longest] if longest > 0 else []
        if expires_ms is not None:
            # One that has ended by a little less than the clocks' difference counts for nothing but this login.
            times.append(max(0, expires_ms - self._now_ms()))
        return min(times, default=None)


def _refuse_unknown(read: ListenerSettings, mechanism: str) -> None:
    """Raises ConfigError for a mechanism that is not offered."""
    if mechanism in MECHANISMS:
        return
    raise ConfigError(
        f"{read.name('sasl.enabled.mechanisms')}: {mechanism} is not offered; use some of {', '.join(MECHANISMS)}"
    )


def _callbacks(read: ListenerSettings, mechanisms: list[str], warn: Callable[[str], object]) -> dict[str, Callback]:
    """The Python callables, by mechanism. Raises ConfigError."""
    found = {}
    for mechanism in mechanisms:
        text = read.value(_PYTHON_CALLBACK, mechanism)
        if not text:
            continue
        name = read.name(_PYTHON_CALLBACK, mechanism)
        if mechanism == GSSAPI:
            if name != _PYTHON_CALLBACK:
                raise ConfigError(f"{name}: no callable decides about logins by GSSAPI, whose tickets say who it is")
            continue
        from pykafkad.sasl.callback import Callback

        found[mechanism] = Callback(mechanism, name, text, warn)
    return found


def _refuse_callbacks(read: ListenerSettings, mechanism: str) -> None:
    """Raises ConfigError for a Java class that is to check logins."""
    if given := read.value(_CALLBACKS, mechanism):
        raise ConfigError(
            f"{read.name(_CALLBACKS, mechanism)}: {given} is a Java class, which cannot run here; remove it, and name "
            f"users of PLAIN in {read.prefix}plain.sasl.jaas.config, add users of SCRAM with kafka-configs, or name a "
            "Python function that decides: pykafkad.sasl.callback=module:function"
        )


def _passwords(read: ListenerSettings, options: Mapping[str, str] | None) -> dict[str, bytes]:
    """The passwords that PLAIN's login module names, by user. Users of SCRAM are in the cluster's metadata, so that
    they need no module. Raises ConfigError."""
    if options is None:
        name, _ = read.given("sasl.jaas.config", PLAIN)
        raise ConfigError(
            f"{name}: is not set, so nobody could log in (as in Kafka, sasl.jaas.config alone does not count); "
            f'set it to: {LOGIN_MODULES[PLAIN]} required user_alice="...";'
        )
    return {
        key.removeprefix(USER_PREFIX): value.encode("utf-8", "surrogateescape")
        for key, value in options.items()
        if key.startswith(USER_PREFIX)
    }
