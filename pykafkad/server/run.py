"""The life of a broker's process: from settings to a serving process, until a signal ends it."""

from __future__ import annotations

import os

from pykafkad.clock import Clock
from pykafkad.disk import Disk
from pykafkad.errors import ConfigError, StartFailure, StorageFailure
from pykafkad.log import snapshot_store
from pykafkad.metadata import events
from pykafkad.server import listeners
from pykafkad.server.logs import logger, process_logs
from pykafkad.server.wiring import BROKER, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.server.data_snapshots import Asking
    from pykafkad.server.listeners import Listener

log_lines = logger("server")


def run(
    settings: Settings,
    *,
    data_directories: Sequence[str],
    topics: list[tuple[str, int]],
    ready_file: str | None,
) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; the exit code. A second SIGTERM or SIGINT stops at once.

    `topics` are (name, partitions) that are created if they are not there.

    Prints one line on standard output when, and only when, every API is served: `pykafkad ready on HOST:PORT …`.
    """
    import signal

    listening = _listeners(settings)
    disk = _disk(settings)
    # The first of them keeps the note of a way back that has begun.
    paths = list(dict.fromkeys([settings.metadata_log_dir or data_directories[0], *data_directories]))
    process = _process(settings, listening, data_directories, disk, paths)

    # A request to go back to a snapshot that is served in the turn of the signal must not make it forgotten.
    signals: list[int] = []

    def end(number: int) -> None:
        signals.append(number)
        process.runtime.stop(f"signal {number}")

    def on_signal(number: int, _frame: object) -> None:
        if process.runtime.stopping is not None:
            os._exit(128 + number)
        end(number)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # A terminal that closes may say so more than once; nohup makes us deaf to it.
        signal.signal(
            signal.SIGHUP, lambda number, _frame: None if process.runtime.stopping is not None else end(number)
        )
    process.runtime.disk.allow_many_files()
    _start(process, topics, ready_file)
    _tell_ready(process, ready_file)
    while True:
        asking = _serve(process)
        snapshots = None if process.broker is None else process.broker.used_snapshots
        snapshot = snapshots and snapshots.restore_to
        if not snapshot or signals:
            _forget_ready(ready_file)
            return 0
        snapshot_store.begin_restore(disk, paths, snapshot)
        # The listeners know their ports by now: clients find the broker where it was.
        process = _process(settings, listening, data_directories, disk, paths)
        _start(process, [], None)
        log_lines.info("snapshot-restored", name=snapshot)
        if asking is not None and process.broker is not None:
            process.broker.data_snapshots.answer(asking)


def _process(
    settings: Settings, listening: list[Listener], data_directories: Sequence[str], disk: Disk, paths: list[str]
) -> Process:
    snapshot_store.finish_restore(disk, paths)
    try:
        return Process(settings, listening, data_directories, disk=disk, logs=process_logs())
    except OSError as error:
        raise StartFailure(error.strerror or str(error)) from None


def _start(process: Process, topics: list[tuple[str, int]], stale_file: str | None) -> None:
    import gc

    try:
        process.start(stale_file=stale_file)
        _remove_leftovers(process)
        if topics:
            _create(process, topics)
    except OSError as error:
        for node in process.runtime.nodes:
            node.stop_listening()
        process.runtime.reactor.close()
        raise StartFailure(error.strerror or str(error)) from None
    # What lives since the start lives for ever: the collector need not look at it again. Not so a node whose place
    # this one takes.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    process.runtime.tasks.collector = gc


def _remove_leftovers(process: Process) -> None:
    try:
        found = snapshot_store.leftovers(
            process.runtime.disk, [directory.path for directory in process.directories.every()]
        )
    except StorageFailure as failure:
        log_lines.warning("leftovers-not-removed", reason=failure)
    else:
        if found and process.broker is not None:
            process.broker.data_snapshots.remove(found)


def _serve(process: Process) -> Asking | None:
    """Serve until a stop; who asked for it by a request that the next node answers, if anybody did."""
    process.runtime.run()
    snapshots = None if process.broker is None else process.broker.used_snapshots
    asking = None if snapshots is None else snapshots.hand_over()
    log_lines.info("stopping", reason=process.runtime.stopping)
    process.runtime.close()
    log_lines.info("stopped", **process.runtime.metrics.as_dict())
    return asking


def _disk(settings: Settings) -> Disk:
    """Where the data lives: the real disk, or memory with a bound."""
    if settings.pykafkad_memory_max_bytes <= 0:
        return Disk()
    from pykafkad.memory_disk import MemoryDisk

    return MemoryDisk(settings.pykafkad_memory_max_bytes, Clock())


def _listeners(settings: Settings) -> list[Listener]:
    controllers = list(settings.controller_listener_names or ())
    protocols = settings.listener_security_protocol_map.split(",")
    if "listener.security.protocol.map" not in settings.static:
        protocols += listeners.default_protocols(list(settings.listeners), controllers)
    return listeners.parse(
        list(settings.listeners),
        list(settings.advertised_listeners or ()),
        protocols,
        controllers,
        of_controller=BROKER not in settings.process_roles,
    )


def _create(process: Process, topics: list[tuple[str, int]]) -> None:
    """Create the topics of `--topic` that are not there yet."""
    from pykafkad.wire import messages

    for name, partitions in topics:
        if name in process.controller.image.topics:
            continue
        token = _StartToken()
        topic = messages.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)
        process.controller.submit(events.CreateTopics(token, [topic]))
        # The answer comes when all of the topic's partitions are placed and their logs are there.
        process.runtime.tasks.finish(float("inf"))
        if process.broker is not None:
            process.broker.partitions.pending.finish()
        (row,) = token.message.topics
        if row.error_code:
            raise ConfigError(f"--topic {name}:{partitions}: {row.error_message}")


class _StartToken:
    """Takes the controller's answer while nothing is served yet."""

    __slots__ = ("message",)

    def deliver(self, message: Any) -> None:
        self.message = message


def _tell_ready(process: Process, ready_file: str | None) -> None:
    addresses = " ".join(listener.address() for listener in process.listeners)
    # The file first: who has read the line finds it, and where it cannot be written nobody is told of a broker that
    # ends.
    if ready_file is not None:
        Disk().replace(ready_file, f"{addresses}\n".encode())
    try:
        print(f"pykafkad ready on {addresses}", flush=True)
    except OSError as error:
        # Whoever started us does not read any more; clients may come all the same.
        log_lines.warning("ready-line-not-printed", reason=error)


def _forget_ready(ready_file: str | None) -> None:
    """Who starts the next broker and waits for the file must not find this one's."""
    if ready_file is None:
        return
    try:
        Disk().unlink(ready_file)
    except StorageFailure as failure:
        log_lines.warning("ready-file-not-removed", reason=failure)
