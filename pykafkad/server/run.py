"""The life of a broker's process: from settings to a serving process, until a signal ends it."""

from __future__ import annotations

import os
from functools import partial
from random import Random

from pykafkad import __version__
from pykafkad.clock import Clock
from pykafkad.disk import Disk
from pykafkad.errors import TOPIC_ALREADY_EXISTS, ConfigError, StartFailure, StorageFailure
from pykafkad.log import snapshot_store
from pykafkad.metadata import events
from pykafkad.server import full_collections, listeners, quorum_settings
from pykafkad.server.logs import logger, process_logs
from pykafkad.server.start_token import StartToken
from pykafkad.server.wiring import BROKER, CONTROLLER, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Protocol

    from pykafkad.config import Settings
    from pykafkad.server.data_snapshots import HandedOver
    from pykafkad.server.listeners import Listener
    from pykafkad.server.node_links import NodeIdentity
    from pykafkad.server.start_acls import Creation
    from pykafkad.server.trace import WireTrace

    class Stoppable(Protocol):
        """What a signal stops."""

        stopping: str | None

        def stop(self, reason: str) -> None:
            """End after the current turn; safe from a signal handler."""

    class Control(Protocol):
        """What controls the broker from other threads."""

        @property
        def clock(self) -> Clock:
            """That of the broker."""

        @property
        def words(self) -> dict[str, str]:
            """What the readiness line tells of it."""

        def began(self, process: Process) -> None:
            """This process serves from now on."""


log_lines = logger("server")


def run(
    settings: Settings,
    *,
    data_directories: Sequence[str],
    topics: list[tuple[str, int]],
    ready_file: str | None,
    ca_file: str | None = None,
    token_url: str | None = None,
    users: Sequence[tuple[str, str, str]] = (),
    acls: Sequence[tuple[str, Creation]] = (),
    trace_file: str | None = None,
    control: Control | None = None,
    brokers: Sequence[Settings] = (),
    controllers: int = 1,
    identity: NodeIdentity | None = None,
    ready_lines: Sequence[str] = (),
) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; the exit code, 1 if it cannot go on. A second signal stops at once.

    `topics` are (name, partitions) that are created if they are not there, `ca_file` is the path of what clients trust,
    `token_url` is where they get tokens, `users` (name, password, mechanism) are those who may log in, of whom those
    with SCRAM are stored, `acls` (words, entry) are stored too. With a `trace_file` requests and answers are recorded,
    and the last of them are written there at the end. `control` has the clock of each process, and is told when it
    serves. `brokers` are the settings of each of several brokers, which share `settings` and so many
    `controllers`; with several controllers they reach each other by the `identity`, if there is one.

    Prints one line on standard output when, and only when, every API is served: `pykafkad ready on HOST:PORT …`;
    `ready_lines` follow it.
    """
    if (topics or users or acls) and CONTROLLER not in settings.process_roles:
        raise ConfigError("--topic, --user and --acl need a controller in this process; ask the cluster for them")
    several = [(each, parse_listeners(each)) for each in brokers]
    listening = parse_listeners(settings) if not several else []
    clock = Clock() if control is None else control.clock
    disk = new_disk(settings, clock)
    # The first of them keeps the note of a way back that has begun.
    paths = list(dict.fromkeys([settings.metadata_log_dir or data_directories[0], *data_directories]))
    made = partial(_process, settings, listening, data_directories, disk, paths, clock, several, controllers, identity)
    process = made()
    signals = obey_signals(lambda: process.runtime)
    process.runtime.disk.allow_many_files()
    _start(process, topics, users, acls, ready_file)
    trace = _trace(process, None) if trace_file else None
    tell_start(process, data_directories, in_memory=settings.pykafkad_memory_max_bytes > 0)
    words = {} if ca_file is None else {"ssl.ca.location": ca_file}
    if token_url is not None:
        words["sasl.oauthbearer.token.endpoint.url"] = token_url
    if control is not None:
        control.began(process)
        words |= control.words
    tell_ready(_addresses(process), ready_file, words, ready_lines)
    while True:
        handed_over = _serve(process)
        snapshot = (snapshots := process.used_snapshots) and snapshots.restore_to
        if not snapshot or signals:
            forget_ready(ready_file)
            if trace is not None and trace_file:
                _write_trace(trace, trace_file)
            return int(process.runtime.has_failed)
        paths = process.snapshot_paths if several else paths
        snapshot_store.begin_restore(disk, paths, snapshot)
        # The listeners know their ports by now: clients find the broker where it was.
        process = made(process)
        _start(process, [], users, acls, None)
        trace = trace and _trace(process, trace)
        if control is not None:
            control.began(process)
        log_lines.info("snapshot-restored", name=snapshot)
        if handed_over is not None and process.broker is not None:
            process.open_data_snapshots().take_over(handed_over)


def obey_signals(runtime: Callable[[], Stoppable], end_at_once: Callable[[int], object] = os._exit) -> list[int]:
    """Stop at a signal, and at a second one at once, with an exit code; those that have come. `runtime()` is that of
    now."""
    import signal

    # A request to go back to a snapshot that is served in the turn of the signal must not make it forgotten.
    signals: list[int] = []

    def end(number: int) -> None:
        signals.append(number)
        runtime().stop(f"signal {number}")

    def on_signal(number: int, _frame: object) -> None:
        if runtime().stopping is not None:
            end_at_once(128 + number)
        end(number)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # A terminal that closes may say so more than once; nohup makes us deaf to it.
        signal.signal(signal.SIGHUP, lambda number, _frame: None if runtime().stopping is not None else end(number))
    return signals


def _process(
    settings: Settings,
    listening: list[Listener],
    data_directories: Sequence[str],
    disk: Disk,
    paths: list[str],
    clock: Clock,
    several: Sequence[tuple[Settings, list[Listener]]],
    controllers: int,
    identity: NodeIdentity | None,
    before: Process | None = None,
) -> Process:
    """A process to be started, in the place of the one `before` if there was one."""
    if several and controllers > 1:
        return _quorum_cluster(settings, disk, clock, several, controllers, identity, before)
    if several:
        return _cluster(settings, disk, clock, several)
    snapshot_store.finish_restore(disk, paths)
    kind = _kind_of(settings)
    try:
        return kind(settings, listening, data_directories, clock=clock, disk=disk, logs=process_logs())
    except OSError as error:
        raise StartFailure(error.strerror or str(error)) from None


def _kind_of(settings: Settings) -> type[Process]:
    """A broker whose own controller is all that it needs loads nothing of what several nodes need."""
    if CONTROLLER not in settings.process_roles:
        from pykafkad.server.broker_process import BrokerProcess

        return BrokerProcess
    if BROKER in settings.process_roles and quorum_settings.listens_for_nodes(settings):
        from pykafkad.server.combined_process import CombinedProcess

        return CombinedProcess
    return Process


def _cluster(
    settings: Settings, disk: Disk, clock: Clock, several: Sequence[tuple[Settings, list[Listener]]]
) -> Process:
    """A process of several brokers. Raises ConfigError for the directory of a single one."""
    from pykafkad.server import cluster_settings
    from pykafkad.server.cluster import Cluster

    cluster_settings.check_folders(settings, [cluster_settings.CONTROLLER_FOLDER], disk)
    try:
        controller = cluster_settings.of_controller(settings, [each for each, _ in several])
        made = Cluster(controller, several, clock=clock, disk=disk, logs=process_logs())
        snapshot_store.finish_restore(disk, made.snapshot_paths)
        return made
    except OSError as error:
        raise StartFailure(error.strerror or str(error)) from None


def _quorum_cluster(
    settings: Settings,
    disk: Disk,
    clock: Clock,
    several: Sequence[tuple[Settings, list[Listener]]],
    controllers: int,
    identity: NodeIdentity | None,
    before: Process | None,
) -> Process:
    from pykafkad.server.binding import reserved_port
    from pykafkad.server.cluster_settings import CONTROLLER_HOST, check_listeners, of_quorum
    from pykafkad.server.quorum_cluster import QuorumCluster

    if isinstance(before, QuorumCluster):
        return QuorumCluster(*before.nodes, clock=clock, disk=disk, logs=process_logs())
    if identity is None:
        check_listeners(settings, several[0][1])
    try:
        ports = [reserved_port(CONTROLLER_HOST) for _ in range(controllers)]
        nodes = of_quorum(settings, [each for each, _ in several], ports, disk, Random(), identity)
        quorum, members = ([(each, parse_listeners(each)) for each in some] for some in nodes)
        made = QuorumCluster(quorum, members, clock=clock, disk=disk, logs=process_logs())
        snapshot_store.finish_restore(disk, made.snapshot_paths)
        return made
    except OSError as error:
        raise StartFailure(error.strerror or str(error)) from None


def _start(
    process: Process,
    topics: list[tuple[str, int]],
    users: Sequence[tuple[str, str, str]],
    acls: Sequence[tuple[str, Creation]],
    stale_file: str | None,
) -> None:
    import gc

    try:
        begin(process, topics, users, acls, stale_file)
    except OSError as error:
        for node in process.runtime.nodes:
            node.stop_listening()
        process.runtime.reactor.close()
        raise StartFailure(error.strerror or str(error)) from None
    # What lives since the start lives for ever: the collector need not look at it again.
    if gc.get_freeze_count():
        # Not so a node whose place this one takes.
        gc.unfreeze()
        gc.collect()
    gc.freeze()
    process.runtime.tasks.collector = gc


def begin(
    process: Process,
    topics: Sequence[tuple[str, int]],
    users: Sequence[tuple[str, str, str]],
    acls: Sequence[tuple[str, Creation]],
    stale_file: str | None = None,
) -> None:
    """Have a process serve, with what a command line wants to be there. Raises ConfigError, StorageFailure or
    OSError."""
    process.start(stale_file=stale_file)
    remove_leftovers(process)
    if process.is_quorum:
        _settle(process, topics, acls, users)
        return
    if topics:
        create_topics(process, topics)
    if users:
        from pykafkad.server import scram_users

        scram_users.add(process, users)
    if acls:
        from pykafkad.server import start_acls

        start_acls.add(process, acls)


def _settle(
    process: Process,
    topics: Sequence[tuple[str, int]],
    acls: Sequence[tuple[str, Creation]],
    users: Sequence[tuple[str, str, str]],
) -> None:
    from pykafkad.server import cluster_settings, peer_security
    from pykafkad.server.start_requests import StartRequests

    addresses = [
        cluster_settings.address_between(each.settings, [listener.address() for listener in each.listeners])
        for each in process.brokers
    ]
    security = peer_security.of_brokers(process.brokers[0].settings)
    requests = StartRequests(addresses, lambda: process.runtime.stopping, process.runtime, security)
    requests.settle(topics, acls, users)


def remove_leftovers(process: Process) -> None:
    """Have folders removed that a way back to a snapshot has left."""
    try:
        found = snapshot_store.leftovers(process.runtime.disk, process.snapshot_paths)
    except StorageFailure as failure:
        process.runtime.logs.warning("server", "leftovers-not-removed", reason=failure)
    else:
        if found and process.broker is not None:
            process.open_data_snapshots().remove(found)


def _serve(process: Process) -> HandedOver | None:
    """Serve until a stop; the connections that go on at the node that takes the place of this one, if one does."""
    with full_collections.Short(Clock()):
        process.runtime.run()
    snapshots = process.used_snapshots
    handed_over = None if snapshots is None else snapshots.hand_over()
    log_lines.info("stopping", reason=process.runtime.stopping)
    process.runtime.close()
    if process.audit is not None:
        process.audit.close()
    log_lines.info("stopped", **process.runtime.metrics.as_dict())
    return handed_over


def new_disk(settings: Settings, clock: Clock) -> Disk:
    """Where the data lives: the real disk, or memory with a bound."""
    if settings.pykafkad_memory_max_bytes <= 0:
        return Disk()
    from pykafkad.memory_disk import MemoryDisk

    return MemoryDisk(settings.pykafkad_memory_max_bytes, clock)


def parse_listeners(settings: Settings) -> list[Listener]:
    """Where the settings have the process listen: its broker, if it has one. Raises ConfigError."""
    return listeners.of_settings(settings, of_controller=BROKER not in settings.process_roles)


def create_topics(process: Process, topics: Sequence[tuple[str, int]]) -> None:
    """Create the topics of `--topic` that are not there yet. Raises ConfigError for one that cannot be."""
    from pykafkad.wire import messages

    for name, partitions in topics:
        if name in process.controller.image.topics:
            continue
        topic = messages.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)
        # The answer comes when all of the topic's partitions are placed and their logs are there.
        (row,) = process.ask_at_start(events.CreateTopics(StartToken(), [topic])).topics
        # Another node may have been asked for the same.
        if row.error_code not in (0, TOPIC_ALREADY_EXISTS):
            raise ConfigError(f"--topic {name}:{partitions}: {row.error_message}")


def _trace(process: Process, before: WireTrace | None) -> WireTrace | None:
    from pykafkad.server.trace import WireTrace

    if process.broker is None:
        return None
    trace = WireTrace(process.runtime, process.brokers, before)
    trace.start()
    return trace


def _write_trace(trace: WireTrace, path: str) -> None:
    from pykafkad.server import trace_formats

    try:
        Disk().replace(path, trace_formats.as_file(path, trace.exchanges))
    except StorageFailure as failure:
        log_lines.warning("trace-not-written", file=path, reason=failure)


def tell_start(process: Process, data_directories: Sequence[str], *, in_memory: bool) -> None:
    """One line that says what runs, where its data is and how much of it is there; and one if nobody asks the entries
    of access control that are there."""
    broker = process.broker
    found: dict[str, object] = {}
    if broker is not None:
        image = broker.image
        found = {
            "node": broker.node_id,
            "cluster": broker.cluster_id,
            **({"brokers": len(process.brokers)} if len(process.brokers) > 1 else {}),
            "topics": len(image.topics),
            "partitions": sum(len(topic.partitions) for topic in image.topics.values()),
        }
    log = process.runtime.logs.logger("server")
    log.info("started", version=__version__, data="memory" if in_memory else ",".join(data_directories), **found)
    if broker is not None and broker.image.acls and broker.sessions.authorizer is None:
        # A start without the --acl of the last one looks the same to clients, until somebody reads what he may not.
        log.warning(
            "acls-not-enforced",
            entries=len(broker.image.acls),
            consequence="everybody may do everything",
            remedy="set authorizer.class.name, or name an entry with --acl",
        )


def _addresses(process: Process) -> list[str]:
    """Where clients reach the process: the brokers of a listener with commas between them, which they take as it is. A
    broker that is alone tells its parent of all."""
    found = zip(*(broker.listeners for broker in process.brokers), strict=True)
    if process.is_quorum:
        from pykafkad.server.node_links import is_for_nodes

        found = zip(
            *([each for each in broker.listeners if not is_for_nodes(each)] for broker in process.brokers), strict=True
        )
    return [",".join(each.address() for each in listening) for listening in found] or [
        each.address() for each in process.listeners
    ]


READY = "pykafkad ready"
"""How the line begins that says that every API is served."""


def tell_ready(reached: Iterable[str], ready_file: str | None, words: dict[str, str], more: Sequence[str] = ()) -> None:
    """The readiness line, and its file: every API is served at these addresses."""
    addresses = " ".join(reached)
    told = [f"{name}={value}" for name, value in words.items()]
    # The file first: who has read the line finds it, and where it cannot be written nobody is told of a broker that
    # ends. Secrets are only in the line, which others can't read.
    if ready_file is not None:
        kept = [each for each in told if not each.startswith(("control.token=", "control.page="))]
        Disk().replace(ready_file, "".join(f"{each}\n" for each in [addresses, *kept]).encode())
    with_words = f" with {' '.join(told)}" if told else ""
    try:
        print("\n".join((f"{READY}{with_words} on {addresses}", *more)), flush=True)
    except OSError as error:
        # Whoever started us does not read any more; clients may come all the same.
        log_lines.warning("ready-line-not-printed", reason=error)


def forget_ready(ready_file: str | None) -> None:
    """Who starts the next broker and waits for the file must not find this one's."""
    if ready_file is None:
        return
    try:
        Disk().unlink(ready_file)
    except StorageFailure as failure:
        log_lines.warning("ready-file-not-removed", reason=failure)
