"""Checks of broker settings that are valid alone but not together, and of live changes that are too large.

The rules are Kafka 4.3.1's. `problems` holds at start and for live changes, `steps_too_large` only for live changes.
"""

from __future__ import annotations

from pykafkad.config import BROKER, LISTENER_PREFIX, ROWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from pykafkad.config import Settings

# A live change may at most double or halve a number of threads. pykafkad has none of these threads.
THREADS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)

# Plug-ins are Java classes. Only the default is accepted, because no Java class can run here.
_PLUG_INS = {
    "principal.builder.class": "ssl.principal.mapping.rules makes principals of certificates",
    "ssl.engine.factory.class": "ssl.keystore.type is PEM, PKCS12 or JKS, and key stores may change live",
}
"""What to use in their place. A broker without them would let in others than Kafka does."""
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_CONNECTIONS = ("max.connections", "max.connection.creation.rate")
_GROUP_KINDS = ("consumer", "share", "streams")
_LEAST_DEDUPE_BYTES = 1024 * 1024
_HOST_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-%._:")

# A time in several units: the first that is set counts.
_ROLL = (("log.roll.ms", 1), ("log.roll.hours", 3_600_000))
_ROLL_JITTER = (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000))
_RETENTION = (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000))


class Candidate:
    """The values that broker `settings` would have after `changes`, for one broker or for all.

    `changes` maps names to texts; None deletes a setting.
    """

    __slots__ = ("_layers", "settings")

    def __init__(self, settings: Settings, changes: Mapping[str, str | None], *, one_broker: bool = True) -> None:
        own: dict[str, str | None] = {**settings.dynamic_broker}
        default: dict[str, str | None] = {**settings.dynamic_default}
        (own if one_broker else default).update(changes)
        self._layers: tuple[Mapping[str, str | None], ...] = (own, default, settings.static)
        self.settings = settings

    def get(self, name: str) -> Any:
        """The typed value of a setting; None when it has none."""
        # A release that is acted as may have another default, or no such setting.
        row = self.settings.rows[BROKER].get(name) or ROWS[BROKER][name]
        for layer in self._layers:
            text = layer.get(name)
            if text is not None:
                return row.parse(text)
        return row.typed_default()

    def names(self) -> set[str]:
        """The names of all settings that are given."""
        return {name for layer in self._layers for name in layer}

    def text(self, name: str) -> str | None:
        """What a name is set to; None if it is not."""
        return next((text.strip() for layer in self._layers if (text := layer.get(name)) is not None), None)

    def milliseconds(self, units: tuple[tuple[str, int], ...]) -> int:
        """A time in several units, in milliseconds. A negative one is -1."""
        for name, factor in units:
            value: int | None = self.get(name)
            if value is not None:
                return -1 if value < 0 else value * factor
        raise AssertionError(f"{units[-1][0]} has no default")


def problems(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Yields the values that are invalid together, as pairs of a setting's name and a sentence."""
    get = candidate.get
    if candidate.milliseconds(_ROLL) < 1:
        yield "log.roll.ms", "must be at least 1"
    if candidate.milliseconds(_ROLL_JITTER) < 0:
        yield "log.roll.jitter.ms", "must be at least 0"
    if candidate.milliseconds(_RETENTION) == 0:
        yield "log.retention.ms", "must be -1 (without end) or at least 1"
    if (
        get("log.cleaner.threads") < 1
        or get("log.cleaner.dedupe.buffer.size") // get("log.cleaner.threads") <= _LEAST_DEDUPE_BYTES
    ):
        yield (
            "log.cleaner.dedupe.buffer.size",
            "must be more than one MiB for each thread of log.cleaner.threads, of which there is at least one",
        )
    for larger in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        if get("replica.fetch.wait.max.ms") > get(larger):
            yield "replica.fetch.wait.max.ms", f"must not be above {larger}"
    if 0 < get("queued.max.request.bytes") < get("socket.request.max.bytes"):
        yield "queued.max.request.bytes", "must not be below socket.request.max.bytes"
    overrides = get("max.connections.per.ip.overrides")
    if get("max.connections.per.ip") == 0 and not overrides:
        yield "max.connections.per.ip", "can be 0 only where max.connections.per.ip.overrides names exceptions"
    if not all(_is_override(item) for item in overrides.split(",") if item.strip()):
        yield "max.connections.per.ip.overrides", "must be a list of address:count"
    if 0 <= get("connections.max.idle.ms") <= get("connection.failed.authentication.delay.ms"):
        yield "connection.failed.authentication.delay.ms", "must be below connections.max.idle.ms"
    yield from _plug_ins(candidate)


def _plug_ins(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Yields the settings that name Java classes, be it for one listener."""
    for name in candidate.names():
        setting = name.split(".", 3)[-1] if name.startswith(LISTENER_PREFIX) else name
        if setting in _PLUG_INS and (text := candidate.text(name)) not in (None, ROWS[BROKER][setting].default):
            yield (
                name,
                f"names the Java class {text or '(none)'}, which cannot run here; remove it: {_PLUG_INS[setting]}",
            )


def _is_override(item: str) -> bool:
    host, _, count = item.rpartition(":")
    digits = count.strip().removeprefix("-").removeprefix("+")
    return bool(host.strip()) and digits.isdecimal() and _HOST_CHARACTERS.issuperset(host.strip())


def steps_too_large(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Yields the changes that a running broker refuses, as pairs of a setting's name and a sentence."""
    settings, get = candidate.settings, candidate.get
    for name in THREADS:
        old, new = getattr(settings, name.replace(".", "_")), get(name)
        if new != old and not max(old // 2, 1) <= new <= 2 * old:
            yield name, f"can at most double or halve in one change: it is {old}, and {new} was requested"
    for name in _CONNECTIONS:
        if get(name) <= 0 and get(name) != getattr(settings, name.replace(".", "_")):
            yield name, "must be above 0"
    for kind in _GROUP_KINDS:
        name = f"group.{kind}.assignment.interval.ms"
        least, most = (f"group.{kind}.{bound}.assignment.interval.ms" for bound in ("min", "max"))
        if not get(least) <= get(name) <= get(most):
            yield name, f"must lie between {least} and {most}"
    reporters = get("metric.reporters")
    if reporters and reporters not in (ROWS[BROKER]["metric.reporters"].typed_default(), settings.metric_reporters):
        yield "metric.reporters", "names a Java class, which cannot run here"
    yield from _listeners(get("listeners"), get("listener.security.protocol.map"))
    yield from _local_retention(candidate)


def _listeners(listeners: tuple[str, ...], protocols: str) -> Iterator[tuple[str, str]]:
    """Checks the form of listeners, which may be set live but count from the next start.

    Whether the broker can listen there shows at that start.
    """
    for item in listeners:
        name, separator, address = item.partition("://")
        if not (name and separator and address.rpartition(":")[2].removeprefix("-").isdecimal()):
            yield "listeners", f"must be a list of NAME://HOST:PORT, and {item} is not of that form"
    for item in protocols.split(","):
        name, separator, protocol = item.strip().partition(":")
        if not (name and separator and protocol in _PROTOCOLS):
            yield (
                "listener.security.protocol.map",
                f"must be a list of NAME:PROTOCOL, where PROTOCOL is one of {', '.join(_PROTOCOLS)}",
            )


def _local_retention(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Checks that local retention is at most the whole retention; -2 means the same as the whole."""
    for name, local, whole in (
        ("ms", candidate.get("log.local.retention.ms"), candidate.milliseconds(_RETENTION)),
        ("bytes", candidate.get("log.local.retention.bytes"), candidate.get("log.retention.bytes")),
    ):
        if whole != -1 and local != -2 and not 0 <= local <= whole:
            yield f"log.local.retention.{name}", f"must not be above log.retention.{name}, which is {whole}"
