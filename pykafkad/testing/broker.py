"""`Broker`: a broker for tests, with all that a test does to it and asks of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pykafkad.server.cluster_settings import MAX_BROKERS, MAX_CONTROLLERS
from pykafkad.testing import log_bridge, records
from pykafkad.testing.client_configs import client_config
from pykafkad.testing.embedded import EmbeddedBroker, embedded
from pykafkad.testing.operations import Operations
from pykafkad.testing.options import MEMORY_BYTES, Options, check_log_level, setting_texts
from pykafkad.testing.records import Writable, new_record
from pykafkad.testing.topics import Partition, Topic
from pykafkad.testing.waits import TIMEOUT_SECONDS, until

if TYPE_CHECKING:
    from pykafkad.control.server import ControlServer
    from pykafkad.registry.server import RegistryServer
    from pykafkad.testing.child import ChildBroker
    from pykafkad.testing.tenants import TenantLoop

Topics = Mapping[str, int | Topic] | Iterable[str]
"""Topics to create: names with their numbers of partitions or a `Topic`, or names alone (one partition)."""


class Broker(Operations):
    """A broker for tests. It runs from `start` to `close`, or in a `with` block:

        with Broker(topics={"orders": 3}, records={"orders": [("key", "value")]}) as broker:
            producer = Producer(broker.client_config("confluent"))

    It may be used from several threads. Methods that ask the broker raise `Refused` for its errors."""

    _running: EmbeddedBroker | ChildBroker | TenantLoop

    def __init__(
        self,
        *,
        topics: Topics = (),
        records: Mapping[str, Iterable[Writable]] | None = None,
        group_offsets: Mapping[str, Mapping[Partition, int]] | None = None,
        settings: Mapping[str, object] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        data: str | os.PathLike[str] | None = None,
        memory_bytes: int = MEMORY_BYTES,
        own_process: bool = False,
        log_level: str = "info",
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        acls: Iterable[str] = (),
        audit: str | os.PathLike[str] | None = None,
        control: bool = False,
        brokers: int = 1,
        controllers: int = 1,
        racks: Iterable[str] = (),
        registry: bool = False,
    ) -> None:
        """`topics`, `records` and `group_offsets` ({"group": {("topic", 0): 5}}) are there from the start on, and again
        after a `reset`. `settings` are Kafka's of a broker. Port 0 takes one that is free. The data is in memory, at
        most `memory_bytes`, or in the directory `data`. The broker runs on a thread of this process; with `own_process`
        in a process of its own, which ends with this one. With `tls` clients encrypt, with an authority made for it;
        with `users` (names with passwords) they log in, and `acls` ("alice read topic orders") say what who may do.
        To the file `audit` a line is written for each denied request; it needs `acls`, or settings with an authorizer.
        With `control` there is the control API at `control_url`, for programs in other languages, and with `registry` a
        schema registry at `registry_url`. With `brokers` there are several with the node ids 1, 2 …, in the `racks` in
        turn; `port` is the first one's, the others have the next ones. With `controllers` there are several of those,
        with the node ids 3000, 3001 …, of which one decides and another takes over when it ends. Raises ValueError or
        TypeError for what cannot be, and ConfigError where a package that is needed is missing."""
        initial_topics = _topics(topics)
        self._records = {
            topic: [new_record(record) for record in written] for topic, written in (records or {}).items()
        }
        self._group_offsets = {group: dict(offsets) for group, offsets in (group_offsets or {}).items()}
        if memory_bytes < 1 << 20:
            raise ValueError(f"memory_bytes: {memory_bytes} is below 1 MiB")
        options = Options(
            settings=_audited(setting_texts(settings or {}), audit, bool(acls)),
            host=host,
            port=port,
            data=None if data is None else os.fspath(data),
            memory_bytes=memory_bytes,
            log_level=check_log_level(log_level),
            brokers=brokers,
            racks=tuple(racks),
            controllers=controllers,
        )
        _check_several(options)
        if tls or users or acls:
            from pykafkad.testing import guard

            options = options._replace(guard=guard.made(self, tls, users or {}, acls, host, options.data))
        self._guard = options.guard
        if options.settings:
            options.broker_settings()
        super().__init__(self._new(options, own_process), initial_topics)
        self._control: ControlServer | None = None
        if control:
            self.keep_timeline()
            self._control = self._control_server(options.log_level, has_registry=registry)
        self._registry = self._registry_server(options.log_level) if registry else None

    def _control_server(self, log_level: str, *, has_registry: bool) -> ControlServer:
        from pykafkad.control.server import ControlServer

        registry = self._registry_address if has_registry else None
        return ControlServer(self, logs=log_bridge.logs(log_level)[0], registry=registry)

    def _registry_server(self, log_level: str) -> RegistryServer:
        from pykafkad.registry.server import RegistryServer

        return RegistryServer(self, logs=log_bridge.logs(log_level)[0])

    def _new(self, options: Options, own_process: bool) -> EmbeddedBroker | ChildBroker | TenantLoop:
        if not own_process:
            return embedded(options)(options)
        from pykafkad.testing.child import ChildBroker

        return ChildBroker(options)

    def __repr__(self) -> str:
        return f"Broker({self._running.bootstrap or 'not started'})"

    # --- from start to close ------------------------------------------------------------------------------------------

    def start(self) -> Broker:
        """Serve, with the topics, records and offsets of the constructor; the broker itself. Raises StartFailure, for
        a port that is taken, say."""
        self._running.start()
        try:
            self._seed()
            for server in (self._control, self._registry):
                if server is not None:
                    server.start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop; the port is free afterwards. Fine if it does not run."""
        try:
            self._running.close()
        finally:
            # Requests to it that wait have ended with the broker.
            for server in (self._control, self._registry):
                if server is not None:
                    server.close()
            self.disconnect()

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def restart(self, *, is_killed: bool = False) -> None:
        """Stop and start again, at the same address with the same data; faults are released. With `is_killed` it ends
        as a process does that is killed, without a word to clients: what it had not written is gone."""
        self._running.restart(is_killed)
        self.faults.every.clear()

    def stop_broker(self, node_id: int) -> None:
        """A controlled shutdown of one of several `brokers`: it moves what it leads, then it is gone. Its clients hear
        of that. Raises RuntimeError if it does not serve."""
        self._running.stop_broker(node_id)

    def kill_broker(self, node_id: int) -> None:
        """End one of several `brokers` as a process does that is killed. The others hear of it when its session is over
        (the setting broker.session.timeout.ms). Raises RuntimeError if it does not serve."""
        self._running.kill_broker(node_id)

    def start_broker(self, node_id: int) -> None:
        """Start one of several `brokers` again, at its address with its data. Raises RuntimeError if it is not down."""
        self._running.start_broker(node_id)

    @property
    def active_controller(self) -> int | None:
        """The node id of the controller that decides; None while there is none."""
        return self._running.active_controller()

    def wait_for_controller(self, other_than: int | None = None, timeout: float = TIMEOUT_SECONDS) -> int:
        """Wait until a controller is active, one `other_than` that of before if there was one; its node id. Raises
        NotInTime."""
        wanted = "active controller" if other_than is None else f"active controller other than {other_than}"
        found = until(
            self._running.active_controller,
            lambda seen: seen is not None and seen != other_than,
            wanted,
            timeout,
            lambda seen: "none" if seen is None else f"controller {seen}",
        )
        assert found is not None
        return found

    def stop_controller(self, node_id: int) -> None:
        """Stop one of several `controllers`. If it is active, another takes over at once, as long as more than half of
        them are left. Raises RuntimeError if it does not serve."""
        self._running.stop_controller(node_id)

    def kill_controller(self, node_id: int) -> None:
        """End one of several `controllers` as a process does that is killed. If it is active, the others notice after
        the setting controller.quorum.fetch.timeout.ms, and elect another. Raises RuntimeError if it does not serve."""
        self._running.kill_controller(node_id)

    def start_controller(self, node_id: int) -> None:
        """Start one of several `controllers` again, with its data. Raises RuntimeError if it is not down."""
        self._running.start_controller(node_id)

    def _fill(self) -> None:
        for topic, written in self._records.items():
            records.write(self._asked, topic, written, self.clock.ahead_seconds)
        for group, offsets in self._group_offsets.items():
            self.commit(group, offsets)

    def keep(self, directory: str | os.PathLike[str]) -> None:
        """Write the data as it is now to a directory, for `pykafkad serve --data` and `pykafkad dump-log`."""
        self._running.keep(os.fspath(directory))

    # --- for clients --------------------------------------------------------------------------------------------------

    @property
    def control_url(self) -> str:
        """Where the control API is, such as http://127.0.0.1:40961; `control_token` is what it asks for."""
        return self._the_control().url

    @property
    def control_token(self) -> str:
        """What requests to the control API carry: `Authorization: Bearer TOKEN`."""
        return self._the_control().token

    @property
    def registry_url(self) -> str:
        """Where the schema registry is, such as http://127.0.0.1:40962: `schema.registry.url` of serializers."""
        if self._registry is None:
            raise RuntimeError("this broker has no schema registry; give it one: Broker(registry=True)")
        return self._registry.url

    def _registry_address(self) -> str:
        return self.registry_url

    def _the_control(self) -> ControlServer:
        if self._control is None:
            raise RuntimeError("this broker has no control API; give it one: Broker(control=True)")
        return self._control

    def client_config(
        self, client: str, *, group: str | None = None, user: str | None = None, mechanism: str | None = None
    ) -> dict[str, Any]:
        """What leads a client here ("confluent", "kafka-python", "aiokafka", "java", "spark", …): keyword arguments or
        properties. With a `group` also those of a consumer in it that starts at the first record. Where users log in,
        those of `user` (the first one) by a SASL `mechanism` (SCRAM-SHA-512)."""
        if self._guard is not None:
            return client_config(client, self.bootstrap, group, self._guard.access(user, mechanism))
        if user is not None or mechanism is not None:
            raise ValueError("client_config: this broker has no users; give it some: Broker(users={...})")
        return client_config(client, self.bootstrap, group)


def _audited(settings: dict[str, str], audit: str | os.PathLike[str] | None, has_acls: bool) -> dict[str, str]:
    """With the file for the lines about denied requests. Raises ValueError where nobody would be denied anything."""
    if audit is None:
        return settings
    if not (has_acls or settings.get("authorizer.class.name")):
        raise ValueError("audit: nobody is denied anything without an authorizer; give acls")
    return {**settings, "pykafkad.audit.file": os.path.abspath(audit)}


def _topics(given: Topics) -> dict[str, Topic | None]:
    if isinstance(given, str):
        raise TypeError(f"topics: {given!r} is a text; give a list of names, or names with numbers of partitions")
    if not isinstance(given, Mapping):
        return {name: Topic() for name in given}
    return {name: count if isinstance(count, Topic) else Topic(count) for name, count in given.items()}


def _check_several(options: Options) -> None:
    """Raises ValueError for what several brokers cannot be."""
    if options.brokers == options.controllers == 1:
        return
    if not 1 <= options.brokers <= MAX_BROKERS:
        raise ValueError(f"brokers: {options.brokers} is not from 1 to {MAX_BROKERS}")
    if not 1 <= options.controllers <= MAX_CONTROLLERS:
        raise ValueError(f"controllers: {options.controllers} is not from 1 to {MAX_CONTROLLERS}")
    if options.brokers == 1:
        raise ValueError(f"controllers: {options.controllers} are those of several brokers; give brokers, too")
