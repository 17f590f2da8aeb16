"""New keys and trust for the listeners of a running broker (KIP-226, Kafka's DynamicBrokerConfig and SslFactory).

Kafka lets the key store and the trust store of a listener change live, as `listener.name.<listener>.ssl.keystore...` of
one broker; everything else about TLS stays as it was when the listener was bound. Any change of that broker's settings,
also one to the values that it had, reads the files of all listeners again. New connections get what is new; those that
live, and handshakes that have begun, keep what they have.

Kafka reads a file again only then. Here the files are looked at by themselves too, every
`pykafkad.ssl.files.check.interval.ms`: one that has changed, and stayed as it is from one look to the next, is taken.

A change is refused unless what it names can be loaded. A new certificate has the names of the one before: its subject
(unless `ssl.allow.dn.changes`) and at least its alternative names (unless `ssl.allow.san.changes`). A trust store can
be replaced or removed, not added. A file that has become unfit without a change of its setting is not refused, as
nobody asks then: a line of the log says so, and the listener goes on with what it has.

Gaps: Kafka compares all entries of a key store, and this module the certificate of its private key; Kafka also tries a
handshake between the old and the new stores of the listener between brokers. Listeners of a controller that is alone
take new settings at the next start."""

from __future__ import annotations

import os
from hashlib import sha256
from ssl import PEM_cert_to_DER_cert

from pykafkad.errors import INVALID_REQUEST, ConfigError, KafkaError
from pykafkad.server import tls_settings
from pykafkad.server.certificate_names import alternative_names, subject
from pykafkad.settings import per_listener
from pykafkad.settings.of_listener import ListenerSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logs import Logs
    from pykafkad.server.tls_endpoint import TlsEndpoint
    from pykafkad.server.tls_settings import ServerContext

    _FileState = tuple[int, int, int] | None
    """Inode, size, and when it was written."""

STORES = tuple(sorted(per_listener.LISTENER_ONLY))
"""The settings that may change live."""

_FILES = ("ssl.keystore.location", "ssl.truststore.location")
_TRUST = ("ssl.truststore.location", "ssl.truststore.certificates")

_NEVER = float("inf")


class TlsRenewal:
    """The listeners with TLS of one broker. `add` each as it is bound, `check` what somebody asks for, and `renew` when
    the settings have changed."""

    __slots__ = ("_interval_seconds", "_listeners", "_logs", "_seen", "_settings", "_taken", "next_look")

    def __init__(self, settings: Settings, logs: Logs) -> None:
        self._settings = settings
        self._logs = logs
        self._listeners: list[_Renewable] = []
        self._interval_seconds = settings.pykafkad_ssl_files_check_interval_ms / 1000
        self._taken: list[_FileState] = []
        """The files as they were when they were read."""
        self._seen: list[_FileState] = []
        """As they were at the last look."""
        self.next_look = 0.0 if self._interval_seconds else _NEVER
        """The monotonic second at which `look` is due."""

    def add(self, settings: Settings, listener: Listener) -> TlsEndpoint:
        """The endpoint of a listener as `settings` make it. Raises ConfigError."""
        renewable = _Renewable(settings, listener)
        self._listeners.append(renewable)
        asked = settings.ssl_client_auth
        if listener.has_sasl and asked != "none" and not renewable.read(settings).is_own("ssl.client.auth"):
            self._logs.warning(
                "server",
                "client-certificates-not-asked-for",
                listener=listener.name,
                reason=f"ssl.client.auth={asked} counts with SASL only as listener.name.<listener>.ssl.client.auth",
            )
        return renewable.endpoint

    def check(self, live: Mapping[str, str]) -> None:
        """Raises KafkaError unless all listeners can go on with `live` in place of this broker's live settings."""
        for each in self._listeners:
            now = each.values(each.read(self._settings))
            of_listener = each.read(self._settings, live)
            try:
                if each.values(of_listener) != now:
                    each.renewed(of_listener)
            except ConfigError as error:
                raise KafkaError(INVALID_REQUEST, f"Invalid dynamic configuration: {error}") from None

    def look(self, now: float) -> None:
        """See whether files have changed, and take them if they have stayed as they are since the last look: who writes
        one may not have finished."""
        self.next_look = now + self._interval_seconds
        states = [state for each in self._listeners for state in each.states(self._settings)]
        if states == self._seen and states != self._taken:
            self._taken = states
            self.renew()
        self._seen = states

    def renew(self) -> None:
        """The settings of this broker were set: take what is new in them, or in the files that they name."""
        for each in self._listeners:
            try:
                if each.renew(self._settings):
                    self._logs.info("server", "certificates-renewed", listener=each.listener.name)
            except Exception as error:
                # Whatever it is, the settings that were set count, and the other listeners go on to theirs.
                reason = error if isinstance(error, ConfigError) else repr(error)
                self._logs.error("server", "certificates-not-renewed", listener=each.listener.name, reason=reason)


class _Renewable:
    """One listener: what it serves with, and what that was made of."""

    __slots__ = ("_certificate", "_files", "_fixed", "_values", "endpoint", "listener")

    def __init__(self, settings: Settings, listener: Listener) -> None:
        self.listener = listener
        self._fixed = tls_settings.fixed(settings, listener)
        of_listener = self.read(settings)
        # Before the files are loaded: whoever changes them meanwhile is noticed by the next renewal.
        self._files = _digests(of_listener)
        self._values = self.values(of_listener)
        self.endpoint = tls_settings.endpoint(settings, listener)
        self._certificate = self.endpoint.context.own_certificate

    def read(self, settings: Settings, live: Mapping[str, str] | None = None) -> ListenerSettings:
        """The listener's settings, with those that stay as they are."""
        return ListenerSettings(settings, self.listener.name, live=live, fixed=self._fixed)

    def states(self, settings: Settings) -> list[_FileState]:
        """What tells, without reading them, whether the files have changed."""
        of_listener = self.read(settings)
        return list(map(file_state, paths(of_listener)))

    @staticmethod
    def values(of_listener: ListenerSettings) -> dict[str, Any]:
        """What may change. Raises ConfigError."""
        return {name: of_listener.value(name) for name in STORES}

    def renew(self, settings: Settings) -> bool:
        """Take what is new; whether anything is. Raises ConfigError, and goes on as before, if it is not fit."""
        of_listener = self.read(settings)
        files, values = _digests(of_listener), self.values(of_listener)
        if (files, values) == (self._files, self._values):
            return False
        context = self.renewed(of_listener)
        self._files, self._values = files, values
        self._certificate = context.own_certificate
        self.endpoint.context = context
        return True

    def renewed(self, of_listener: ListenerSettings) -> ServerContext:
        """What the listener would serve with. Raises ConfigError if it may not."""
        values = self.values(of_listener)
        for name in _TRUST:
            if values[name] is not None and all(self._values[each] is None for each in _TRUST):
                raise ConfigError(
                    f"{of_listener.name(name)}: the listener began without a trust store, so none can be added "
                    "while it is served"
                )
        context = tls_settings.context(of_listener)
        if any(values[name] is not None for name in _TRUST):
            tls_settings.check_trust(of_listener)
        check_names(of_listener, self._certificate, context.own_certificate)
        return context


def check_names(of_listener: ListenerSettings, own: str, certificate: str) -> None:
    """Raises ConfigError, as Kafka does, unless a `certificate` is for all names of a listener's `own`, or the settings
    allow others."""
    name = of_listener.name("ssl.keystore.location")
    if of_listener.value("ssl.keystore.location") is None:
        name = of_listener.name("ssl.keystore.certificate.chain")
    try:
        before, after = (PEM_cert_to_DER_cert(each) for each in (own, certificate))
        old, new = subject(before), subject(after)
        lost = alternative_names(before) - alternative_names(after)
    except ValueError as error:
        raise ConfigError(f"{name}: its certificate cannot be read: {error}") from None
    if not of_listener.value("ssl.allow.dn.changes") and _folded(old) != _folded(new):
        raise ConfigError(
            f"{name}: the certificate is for {new}, and the listener serves as {old}; "
            "ssl.allow.dn.changes=true, set at start, would allow it"
        )
    if lost and not of_listener.value("ssl.allow.san.changes"):
        names = ", ".join(sorted(content.decode("ascii", "backslashreplace") for _, content in lost))
        raise ConfigError(
            f"{name}: the certificate lacks alternative names of the one before ({names}); "
            "ssl.allow.san.changes=true, set at start, would allow it"
        )


def _folded(name: str) -> str:
    """As Java compares names: whatever the case, and with one blank for many."""
    return " ".join(name.lower().split())


def file_state(path: str | None) -> _FileState:
    """A file as the system knows it; None for one that is not there."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def paths(of_listener: ListenerSettings) -> list[str | None]:
    """The files that the settings name."""
    return [*map(of_listener.value, _FILES), *tls_settings.other_stores(of_listener)]


def _digests(of_listener: ListenerSettings) -> list[bytes | None]:
    """What tells whether the files that the settings name have changed; None for one that is not there."""
    found: list[bytes | None] = []
    for path in paths(of_listener):
        try:
            found.append(None if path is None else sha256(tls_settings.content(path)).digest())
        except OSError:
            found.append(None)
    return found
