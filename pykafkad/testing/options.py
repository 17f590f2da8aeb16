"""How a test's broker is set up: the options of `Broker`, checked when they are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pykafkad import config
from pykafkad.server import logs
from pykafkad.server.listeners import Listener, as_settings
from pykafkad.settings import authorizer_settings

if TYPE_CHECKING:
    from pykafkad.testing.guard import Guard

MEMORY_BYTES = 256 << 20
MEMORY_DIRECTORY = "/data"

SETTINGS = {
    # The first member of a group gets its partitions at once.
    "group.initial.rebalance.delay.ms": "0",
    # One partition of each internal topic is made and loaded in a moment; fifty are Kafka's default.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # What was deleted gives its memory back at once.
    "log.segment.delete.delay.ms": "0",
}
"""Settings that differ from Kafka's defaults, unless a test sets them."""


QUORUM_SETTINGS = {
    # Who asks for votes first is known soon; controllers of one process answer at once.
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.election.backoff.max.ms": "100",
    # A broker that stops waits for a heartbeat of each of the others.
    "broker.heartbeat.interval.ms": "200",
    # One that was killed is registered again when its session is over.
    "broker.session.timeout.ms": "3000",
}
"""Those with several controllers, too."""


class Options(NamedTuple):
    """What a broker's process needs to know; every value can be written as JSON. `data` is None for data in memory, at
    most `memory_bytes`. `ports` are those of several brokers that were there before, and `control_ports` those of their
    listeners for the test's own requests."""

    settings: Mapping[str, str] = MappingProxyType({})
    host: str = "127.0.0.1"
    port: int = 0
    data: str | None = None
    memory_bytes: int = MEMORY_BYTES
    log_level: str = "info"
    guard: Guard | None = None
    control_port: int = 0
    brokers: int = 1
    racks: Sequence[str] = ()
    ports: Sequence[int] = ()
    control_ports: Sequence[int] = ()
    controllers: int = 1

    def listeners(self) -> list[Listener]:
        """Those that the broker binds: that for clients, and if it is guarded the test's own."""
        if self.guard is None:
            return [Listener("PLAINTEXT", self.host, self.port)]
        return self.guard.listeners(self.host, self.port, self.control_port)

    def broker_settings(self) -> config.Settings:
        """The settings of the broker. Raises ConfigError for a value that is not allowed."""
        defaults = SETTINGS if self.controllers == 1 else {**SETTINGS, **QUORUM_SETTINGS}
        texts = {**defaults, **self.settings, "log.dirs": self.directory}
        if self.data is None:
            texts["pykafkad.memory.max.bytes"] = str(self.memory_bytes)
        protocols = texts.get("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT")
        if self.guard is None:
            texts |= as_settings([(self.host, self.port)], protocols)
        else:
            texts |= self.guard.settings(self.listeners(), self.settings)
        return config.Settings.from_properties({name: (text, "settings of Broker") for name, text in texts.items()})

    def at(self, bootstrap: str, control: str) -> Options:
        """The same, at the ports of these addresses."""
        if self.brokers > 1:
            ports, control_ports = (
                [int(each.rpartition(":")[2]) for each in addresses.split(",")] for addresses in (bootstrap, control)
            )
            return self._replace(ports=ports, control_ports=control_ports)
        return self._replace(port=int(bootstrap.rpartition(":")[2]), control_port=int(control.rpartition(":")[2]))

    @property
    def directory(self) -> str:
        """Where the logs are."""
        return MEMORY_DIRECTORY if self.data is None else self.data


def setting_texts(settings: Mapping[str, object]) -> dict[str, str]:
    """Kafka's settings as texts. Raises ValueError for a name that Kafka does not have, with those that are near."""
    known = config.ROWS[config.BROKER].keys() | authorizer_settings.NAMES
    for name in settings:
        if name not in known and not name.startswith(config.LISTENER_PREFIX):
            raise ValueError(f"settings: {unknown('setting', name, known)}")
        if name in ("listeners", "advertised.listeners", "log.dirs", "log.dir"):
            raise ValueError(f"settings: {name} is set by the arguments host, port and data")
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()}


def check_log_level(level: str) -> str:
    """The level, if there is one of that name. Raises ValueError."""
    if level not in logs.LEVELS:
        raise ValueError(f"log_level: {unknown('level', level, logs.LEVELS)}")
    return level


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """A sentence that says that there is nothing of that name, and what is near."""
    import difflib

    every = list(known)
    near = difflib.get_close_matches(str(name), every, 3, 0.6)
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(every)}" if len(every) < 120 else ""
    )
    return f"there is no {what} {name!r}{'; ' if hint else ''}{hint}"
