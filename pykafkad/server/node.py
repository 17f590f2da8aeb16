"""One broker: wires the parts, runs the loop, and is what effects act on.

It holds no logic of any API. Order of a start: lock and open the directory, load the metadata log, elect, register,
open the partitions, load the groups, and only then bind the listeners and print the readiness line. A second node in
the same process is a second `Node`: nothing here is global."""

from __future__ import annotations

from random import Random

from pykafkad import config
from pykafkad.clock import Clock
from pykafkad.coordinator.producer_ids import ProducerIds
from pykafkad.disk import Disk
from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.handlers.fetch_sessions import FetchSessions
from pykafkad.metadata import events, quorum, quorum_states, record_codec, uuids, voters
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.controller import Controller
from pykafkad.server import logs
from pykafkad.server.client_metrics import ClientMetrics
from pykafkad.server.commits import Commits
from pykafkad.server.connection import SCRATCH_BYTES
from pykafkad.server.directories import Directories
from pykafkad.server.dispatch import Dispatcher
from pykafkad.server.groups import Groups
from pykafkad.server.housekeeping import Housekeeping
from pykafkad.server.incremental_tasks import IncrementalTasks
from pykafkad.server.logs import logger
from pykafkad.server.metadata_log import MetadataLog
from pykafkad.server.metrics import Metrics
from pykafkad.server.offload import Offload
from pykafkad.server.partitions import Partitions
from pykafkad.server.purgatory import Purgatory
from pykafkad.server.reactor import Reactor
from pykafkad.server.session import Sessions
from pykafkad.server.timers import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.config import Settings
    from pykafkad.log.directory import LogDirectory
    from pykafkad.metadata.image import Image, MetadataDelta
    from pykafkad.server.connection import Connection
    from pykafkad.server.data_snapshots import DataSnapshots
    from pykafkad.server.listeners import Listener
    from pykafkad.server.moves import Moves
    from pykafkad.server.session import Authorizer

log_lines = logger("server")

# The metadata log is thinned by its snapshots alone.
_METADATA_LOG_SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(8 * 1024 * 1024),
}
_BROKER_CONFIG = 4

_RETRIES_PER_TURN = 16
# Parked requests that are tried or answered in one turn: what they take is 50 ms at most.
_WAITS_PER_TURN = 500
_STOP_SECONDS = 5.0


class Node:
    """A broker that is also the controller of its quorum of one. `start`, then `run` until `stop`, then `close`."""

    def __init__(
        self,
        settings: Settings,
        listening: list[Listener],
        data_directories: Sequence[str],
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        random: Random | None = None,
        reactor: type = Reactor,
        authorizer: Authorizer | None = None,
    ) -> None:
        """Without an `authorizer` everybody may do everything."""
        self.settings = settings
        self.listeners = listening
        self.clock = clock or Clock()
        self.random = random or Random()
        self.now = self.clock.now()
        self.now_ms = self.clock.now_ms()
        self.metrics = Metrics()
        self.timers = Timers()
        self.node_id = settings.node_id
        self.disk = disk or Disk()
        self.stopping: str | None = None
        self.serving = False
        self._offline_logs: set[object] = set()
        self.fetch_sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots, self.random)
        self.reactor = reactor(
            self,
            max_frame_bytes=settings.socket_request_max_bytes,
            idle_seconds=settings.connections_max_idle_ms / 1000
            if settings.connections_max_idle_ms >= 0
            else float("inf"),
            max_connections=settings.max_connections,
        )
        self.offload = Offload(self.reactor.wake, self.unexpected)
        # What takes long without blocking has a thread of its own, so that syncs need not wait for it.
        self.cpu_offload = Offload(self.reactor.wake, self.unexpected)
        self.commits = Commits(self)
        self.tasks = IncrementalTasks(self)
        self.dispatcher = Dispatcher(self)
        self.serve = self.dispatcher.serve
        # The reactor serves these from what it read at once; only a limit below its buffer could be exceeded so.
        fast_paths = self.dispatcher.fast_paths if settings.socket_request_max_bytes >= SCRATCH_BYTES else {}
        self.sessions = Sessions(fast_paths, authorizer)
        self.reply = self.dispatcher.reply
        self.fail = self.dispatcher.fail
        self.purgatory = Purgatory(self.reply, self.fail)
        self.producer_ids = ProducerIds()
        self.groups = Groups(self)
        self.client_metrics = ClientMetrics(self)
        self.housekeeping = Housekeeping(self)
        self.directories = Directories(self, data_directories)
        self._moves: Moves | None = None
        self._data_snapshots: DataSnapshots | None = None
        self.partitions: Partitions | None = None
        self.controller: MetadataLog | None = None

    # --- start and stop -------------------------------------------------------------------------------------------

    @property
    def directory(self) -> LogDirectory | None:
        """The directory of the metadata log; None before the start."""
        return self.directories.metadata

    @property
    def moves(self) -> Moves:
        """Replicas on their way between directories."""
        if self._moves is None:
            from pykafkad.server.moves import Moves

            self._moves = Moves(self)
        return self._moves

    @property
    def data_snapshots(self) -> DataSnapshots:
        """Snapshots of the data, and the way back to them."""
        if self._data_snapshots is None:
            from pykafkad.server.data_snapshots import DataSnapshots

            self._data_snapshots = DataSnapshots(self)
        return self._data_snapshots

    @property
    def used_snapshots(self) -> DataSnapshots | None:
        """The same; None as long as nobody has asked for any."""
        return self._data_snapshots

    @property
    def cluster_id(self) -> str:
        """The cluster's id, as text."""
        return self.directory.meta["cluster.id"]

    @property
    def directory_id(self) -> bytes:
        """The id of the directory of the metadata log (KIP-858)."""
        return uuids.from_text(self.directory.meta["directory.id"])

    @property
    def image(self) -> Image:
        """The current picture of the cluster."""
        return self.controller.image

    @property
    def log_level(self) -> str:
        return logs.level()

    def set_log_level(self, level: str) -> None:
        """As the broker-logger resource of IncrementalAlterConfigs asks."""
        logs.configure(level)

    def start(self, *, stale_file: str | None = None) -> None:
        """Everything up to serving. Raises ConfigError, StorageFailure or OSError with what stands in the way.

        `stale_file`, what an earlier broker wrote when it was ready, goes as soon as the directory is known to be ours.
        """
        self.directories.open(self.settings.metadata_log_dir or self.directories.paths[0])
        if stale_file is not None:
            # It is no part of the data, which may live in memory.
            Disk().unlink(stale_file)
        plan = lambda key: self.timers.set(key, self.now)  # noqa: E731
        self.partitions = Partitions(self.directories, self.node_id, self.settings, plan, self.clock.now)
        self._start_metadata()
        self._bind()
        self._register()
        self.metadata_changed(self.image.take_delta(), loading=True)
        self.directories.tell_cordoned()
        if any(directory.futures for directory in self.directories.online):
            self.moves.resume()
        self.groups.take_over()
        self.housekeeping.start()
        self.controller.snapshots.begin()
        self.serving = True

    def _start_metadata(self) -> None:
        directory = self.directory
        settings = self.settings
        log_settings = {**_METADATA_LOG_SETTINGS, "segment.bytes": str(settings.metadata_log_segment_bytes)}
        log_settings["segment.ms"] = str(settings.metadata_log_segment_ms)
        if settings.internal_metadata_log_segment_bytes:
            log_settings["internal.segment.bytes"] = str(settings.internal_metadata_log_segment_bytes)
        log = directory.open_partition(
            *record_codec.LOG, record_codec.TOPIC_ID, config.topic_settings(self.settings, log_settings)
        )
        metadata = self.controller = MetadataLog(self, log)
        metadata.load()
        directory_id = self.directory_id
        voter_set = metadata.image.voters or [voters.Voter(self.node_id, directory_id, [])]
        is_new = metadata.image.offset < 0
        if is_new:
            metadata.format(voter_set)
        machine = quorum.Quorum(
            self.node_id,
            directory_id,
            voter_set,
            self.random,
            # A log without voters is one of a static quorum (kraft.version 0), and stays it.
            voters_in_log=not is_new,
            state_file=self._quorum_state(f"{directory.path}/{quorum.STATE_FILE}", len(voter_set)),
        )
        metadata.start(machine, Controller(self.node_id, self.cluster_id, self.settings, metadata.image, self.random))
        if machine.state != quorum_states.LEADER:
            named = ", ".join(f"{voter.id} with directory {uuids.to_text(voter.directory_id)}" for voter in voter_set)
            raise ConfigError(
                f"{directory.path}: its metadata log names as voters {named}; this is node {self.node_id} with directory "
                f"{uuids.to_text(directory_id)} ({directory.path}/meta.properties), which cannot lead alone"
            )

    def _quorum_state(self, path: str, voter_count: int) -> bytes | None:
        """The content of `quorum-state`. A lone voter does without a damaged one: nobody else counts its votes, and the
        log has its epoch."""
        content = self.disk.read(path)
        try:
            quorum.parse_state(content)
        except ValueError as error:
            if voter_count > 1:
                raise ConfigError(f"{path} is damaged: {error}") from None
            log_lines.warning("quorum-state-damaged", path=path, reason=error)
            return None
        return content

    def _bind(self) -> None:
        settings = self.settings
        # Kafka's default is not ours: unless it is set, the address decides.
        send_buffer_bytes = settings.socket_send_buffer_bytes if "socket.send.buffer.bytes" in settings.static else None
        for listener in self.listeners:
            listener.port = self.reactor.listen(
                listener.host,
                listener.port,
                listener,
                send_buffer_bytes=send_buffer_bytes,
                backlog=settings.socket_listen_backlog_size,
            )

    def _register(self) -> None:
        """Activate the controller, register this broker with it, and take it out of the fence."""
        incarnation_id = self.random.randbytes(16)
        endpoints = [
            Endpoint(each.name, *each.advertised((each.host or "localhost", each.port))) for each in self.listeners
        ]
        self.controller.submit(
            events.Activate(self.controller.quorum.epoch, incarnation_id, [], self.controller.bootstrap_records())
        )
        for other in list(self.image.brokers.values()):
            # Nobody but this node can tell this controller that it lives.
            if other.id != self.node_id:
                self.controller.submit(events.FenceBroker(other.id, other.epoch))
        before = self.image.brokers.get(self.node_id)
        self.controller.submit(
            events.RegisterBroker(
                self.node_id,
                incarnation_id,
                endpoints,
                self.directories.ids(),
                rack=self.settings.broker_rack,
                previous_broker_epoch=self.directories.broker_epoch,
            )
        )
        broker = self.image.brokers[self.node_id]
        self.controller.submit(events.UnfenceBroker(self.node_id, broker.epoch))
        self.directories.tell_lost(before.log_dirs if before is not None else [])

    def run(self) -> None:
        """Turn until told to stop."""
        turn = self.reactor.turn
        while self.stopping is None:
            turn(self._timeout())

    def stop(self, reason: str) -> None:
        """End the loop after the current turn; safe from a signal handler."""
        self.stopping = reason
        self.reactor.wake()

    def close(self) -> None:
        """Stop accepting, answer what can be answered, write and sync everything, mark the directory clean."""
        self.reactor.stop_listening()
        if self.partitions is not None:
            self.tasks.finish(self.clock.now() + _STOP_SECONDS)
            self.partitions.pending.finish()
        self.cpu_offload.close()
        self.purgatory.expire(float("inf"))
        self.end_turn()
        while self.commits.is_syncing:
            self.offload.close()
            self.commits.begin()
        if self.serving:
            # While there are connections: who waits in a group is told to look for its coordinator.
            self.controller.submit(events.StopBroker(self.node_id))
            self.groups.resign()
        deadline = self.clock.now() + _STOP_SECONDS
        # What was parked may have a long answer.
        self.tasks.finish(deadline)
        self.reactor.drain(lambda: deadline - self.clock.now())
        self.housekeeping.leave_removals()
        # A job that ends wakes the reactor, so the jobs come first.
        self.offload.close()
        self.housekeeping.compaction.close()
        self.reactor.close()
        if self.directory is not None:
            if self.controller is not None:
                self.controller.resign()
            broker = self.image.brokers.get(self.node_id) if self.controller else None
            self.directories.close(broker.epoch if broker else -1)

    # --- one turn -------------------------------------------------------------------------------------------------

    def begin_turn(self) -> float:
        """Read the clocks once for the whole turn."""
        self.now = self.clock.now()
        self.now_ms = self.clock.now_ms()
        return self.now

    def end_turn(self) -> None:
        """Offloaded results, timers, waits, writes, and the waits that the writes touched."""
        now = self.now
        self.offload.finished()
        self.cpu_offload.finished()
        for key in self.timers.due(now):
            self._fire(key)
        quorum_deadline = self.controller.next_deadline()
        if quorum_deadline is not None and quorum_deadline <= now:
            self.controller.tick()
        waits = self.purgatory
        left = _WAITS_PER_TURN
        if waits.count:
            left -= waits.expire(now, left)
            left -= waits.retry(now, left)
        self.commits.finish()
        if waits.count:
            for _ in range(_RETRIES_PER_TURN):
                left -= waits.retry(now, left)
                self.commits.finish()
        if not self.commits.is_idle:
            self.commits.begin()

    def _timeout(self) -> float | None:
        """How long the next wait for sockets may be."""
        if self.reactor.ready or self.reactor.resumable or self.purgatory.is_behind:
            return 0
        at = self.reactor.next_wake()
        for other in (self.timers.next_at(), self.purgatory.next_deadline(), self.controller.next_deadline()):
            if other is not None and other < at:
                at = other
        # Rounded up to the millisecond that epoll counts in, so that a deadline is past when it wakes.
        return max(0.0, at - self.clock.now() + 0.0005) if at != float("inf") else None

    def _fire(self, key: object) -> None:
        owner, inner = key
        try:
            owner.fired(inner)
        except Exception as error:
            self.unexpected(error, timer=inner)

    def unexpected(self, error: Exception, **where: object) -> None:
        """A bug of ours: counted, and logged once with its traceback."""
        self.metrics.unexpected_errors += 1
        log_lines.error("unexpected-error", error=error, traceback=self.traceback(error), **where)

    # --- what effects and handlers act on ---------------------------------------------------------------------------

    def log_failed(self, log: object, failure: StorageFailure) -> None:
        """A log went offline: said once, and whoever waits for it is told."""
        if log in self._offline_logs:
            return
        if failure.is_passing and log.offline is None:
            # It may go better the next time.
            self.directories.report(self.directories.of(log), failure)
            return
        self._offline_logs.add(log)
        self.metrics.writes_failed += 1
        log_lines.error("partition-offline", topic=log.topic, partition=log.partition, reason=failure)
        self.dispatcher.forget_topics()
        self.purgatory.touch(log)
        self.directories.report(self.directories.of(log), failure)

    def directory_failed(self, directory: LogDirectory, logs: list[object]) -> None:
        """A directory was given up: its logs are out of service, and whoever waits for them is told."""
        if self._moves is not None:
            self._moves.directory_failed(directory)
        self.dispatcher.forget_topics()
        for log in logs:
            self._offline_logs.add(log)
            self.purgatory.touch(log)

    def compute(self, token: object, job: Callable[[], object], answer: Callable[[object], object]) -> None:
        """Run `job()` beside the loop and reply with `answer(result)`."""

        def then(result: object) -> None:
            try:
                if isinstance(result, Exception):
                    raise result
                message = answer(result)
            except Exception as error:
                self.fail(token, error)
            else:
                self.reply(token, message)

        self.cpu_offload.submit(job, then)

    def abandon(self, token: object, reason: str) -> None:
        """A request that can't be answered truthfully: its connection is closed, and the client asks again."""
        connection = self.connection_of(token)
        if connection is not None:
            connection.close(reason)
            self.reactor.send_soon(connection)

    def connection_of(self, token: object) -> Connection | None:
        """The living connection whose last request `token` stands for, or is a part of."""
        token = getattr(token, "request_token", token)
        connection = self.reactor.connection(token.connection_id) if hasattr(token, "connection_id") else None
        return connection if connection is not None and connection.sequence == token.sequence else None

    def end_early(self, connection: Connection) -> None:
        """Answer a parked request whose wait is a maximum, if another request waits behind it."""
        delayed = connection.delayed
        if delayed is not None and delayed.operation.ends_early and connection.has_whole_frame():
            self.purgatory.end_early(delayed, self.now)

    def connection_lost(self, connection: Connection) -> None:
        """Nobody waits for its answers any more."""
        self.dispatcher.connection_lost(connection)
        self.client_metrics.disconnected(connection.id)

    def writable_by_clients(self, log: object) -> bool:
        """Whether a client's batch for `log` needs no check besides those of the log itself."""
        return log.offline is None and not log.topic.startswith("__") and log not in self.partitions.not_led_here

    def metadata_changed(self, delta: MetadataDelta, *, loading: bool = False) -> None:
        """Bring logs, settings and groups in step with the image."""
        image = self.image
        if any(kind == _BROKER_CONFIG for kind, _ in delta.configs):
            self.settings.set_dynamic(
                image.configs(_BROKER_CONFIG, ""), image.configs(_BROKER_CONFIG, str(self.node_id))
            )
            self.partitions.reconfigure_all(image)
            if self.serving:
                self.directories.settings_changed()
        if self._moves and delta.topics_deleted:
            for topic in delta.topics_deleted:
                for state in topic.partitions:
                    self._moves.cancel(topic.name, state.index)
        gone = self.partitions.apply(delta, image, loading=not self.serving)
        # Who waits at what this broker does not lead (any more) is told.
        for log in [*gone, *(self.partitions.not_led_here if delta.partitions else ())]:
            self.purgatory.touch(log)
        if gone:
            self.housekeeping.compaction.forget(gone)
        self.dispatcher.forget_topics()
        if "acls" in delta.others:
            self.sessions.acls_changed()
        if loading:
            return
        self.client_metrics.configs_changed(delta.configs)
        if delta.topics_deleted:
            self.housekeeping.plan_deletions()
            self.groups.topics_deleted([(topic.name, topic.id) for topic in delta.topics_deleted])
        if delta.topics_created:
            self.groups.take_over()

    @staticmethod
    def traceback(error: BaseException) -> str:
        """The traceback as text, for the log line of an unexpected error."""
        try:
            import traceback
        except OSError:
            # Without a free descriptor nothing can be imported; what is to be told must not become worse by that.
            return repr(error)
        return "".join(traceback.format_exception(error))
