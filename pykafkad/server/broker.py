"""The broker's half of a process: partitions, coordinators, sessions and housekeeping; it serves clients.

It wires its parts and holds no logic of any API. It learns of the metadata as the controller commits it."""

from __future__ import annotations

from pykafkad import uuids
from pykafkad.errors import StorageFailure
from pykafkad.handlers import table
from pykafkad.handlers.fetch_sessions import FetchSessions
from pykafkad.handlers.services import BrokerServices
from pykafkad.handlers.table import BROKER_LISTENER
from pykafkad.metadata import events
from pykafkad.metadata.image import TYPE_BROKER
from pykafkad.metadata.topics import TOPICS_NAMED
from pykafkad.server import listeners
from pykafkad.server.broker_parts import BrokerParts
from pykafkad.server.client_metrics import ClientMetrics
from pykafkad.server.commits import Commits
from pykafkad.server.compaction import Compaction
from pykafkad.server.connection import SCRATCH_BYTES
from pykafkad.server.coordinator_host import Groups
from pykafkad.server.dispatch import Dispatcher, controller_request
from pykafkad.server.fetch_fast_path import FetchFastPath
from pykafkad.server.frame_buffers import FrameBuffers
from pykafkad.server.heartbeat_fast_path import HeartbeatFastPath
from pykafkad.server.log_writer import LogWriter
from pykafkad.server.partitions import Partitions
from pykafkad.server.peer_types import PLAIN_TEXT
from pykafkad.server.produce_fast_path import ProduceFastPath
from pykafkad.server.producer_id_blocks import ProducerIdBlocks
from pykafkad.server.purgatory import Purgatory
from pykafkad.server.runtime import RuntimeNode
from pykafkad.server.session import Sessions
from pykafkad.server.socket_server import SocketServer
from pykafkad.server.transactions import Transactions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.handlers.context import Context
    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.image import Image, MetadataDelta
    from pykafkad.server.connection import Connection
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.server.directories import Directories
    from pykafkad.server.housekeeping import Housekeeping
    from pykafkad.server.listeners import Listener
    from pykafkad.server.local_links import LocalLinks
    from pykafkad.server.logs import Logs
    from pykafkad.server.peer_types import Security
    from pykafkad.server.runtime import Runtime
    from pykafkad.server.session import Authorizer, FastPath
    from pykafkad.server.watched_fast_paths import WatchedFastPaths


FAST_PATHS: dict[str, Callable[[Broker], ProduceFastPath | FetchFastPath | HeartbeatFastPath]] = {
    "Produce": ProduceFastPath,
    "Fetch": FetchFastPath,
    "ConsumerGroupHeartbeat": HeartbeatFastPath,
}
"""What serves the commonest requests of an API that `has_fast_path`."""

SHARE_STATE_TOPIC = "__share_group_state"

_RETRIES_PER_TURN = 16


class Broker(BrokerParts, RuntimeNode):
    """A broker that is registered with `controller`. `bind`, then `start`, then turns until `close`."""

    peer_security: Security = PLAIN_TEXT
    """How it reaches other brokers."""

    local_links: LocalLinks | None = None
    """What connects it to the others, if all of them are in this process and have no listener for each other."""

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        listening: list[Listener],
        directories: Directories,
        housekeeping: Housekeeping,
        controller: ControllerNode,
        authorizer: Authorizer | None = None,
        logs: Logs | None = None,
    ) -> None:
        """Without an `authorizer` everybody may do everything; without `logs` it writes to those of the runtime."""
        super().__init__()
        self.runtime = runtime
        self.settings = settings
        self.node_id = settings.node_id
        self.listeners = listening
        self.directories = directories
        self.controller = controller
        self.serving = False
        self.tells_topics = True
        """Whether the log lines about topics that come and go are this broker's to write."""
        self.incarnation_id = b""
        """Of the registration of this start."""
        self._log_dirs_before: list[bytes] = []
        # How many more delayed operations may be tried in the turn of that number.
        self._waits_turn = -1
        self._waits_left = 0
        self.fetch_sessions = FetchSessions(settings.max_incremental_fetch_session_cache_slots, runtime.random)
        self.commits = Commits(self)
        self.log_writer = LogWriter(runtime.reactor, self.commits.mark, FrameBuffers())
        self.purgatory = Purgatory(runtime.replies.reply, runtime.replies.fail)
        self.logs = logs or runtime.logs
        self.metrics = runtime.metrics
        self.producer_ids = ProducerIdBlocks(self)
        self.groups = Groups(self)
        self.transactions = Transactions(self)
        self.client_metrics = ClientMetrics(self)
        self.housekeeping = housekeeping
        self.compaction = Compaction(self)
        plan = lambda key: runtime.timers.set(key, runtime.now)  # noqa: E731
        self.partitions = Partitions(
            directories, self.node_id, settings, plan, runtime.clock.now, self.commits, self.log_writer
        )
        housekeeping.partitions, housekeeping.log_failed = self.partitions, self.log_failed
        self.services = self._make_services()
        self.dispatcher = Dispatcher(
            runtime, self.services, BROKER_LISTENER, self.forward,
            purgatory=self.purgatory, commits=self.commits, logs=self.logs, release=settings.release,
        )  # fmt: skip
        self.serve = self.dispatcher.serve
        answered = {row.key: row for row in table.answered_on(BROKER_LISTENER, settings.release) if row.has_fast_path}
        self._fast_paths = {key: FAST_PATHS[row.name](self) for key, row in answered.items()}
        self.fast_paths: dict[int, FastPath] = {
            key << 16 | version: fast_path.serve
            for key, fast_path in self._fast_paths.items()
            for version in table.fast_versions(answered[key], fast_path.versions, settings.release)
        }
        self._watched_fast_paths: WatchedFastPaths | None = None
        self.sessions = self._make_sessions(authorizer)
        self.socket_server = SocketServer.of(self, runtime.reactor, settings)
        self._prepare_logins()
        self.socket_server.frame_buffers = self.log_writer.frame_buffers
        directories.broker = self
        controller.on_committed(self)

    def _prepare_logins(self) -> None:
        for each in self.listeners:
            if each.has_sasl:
                from pykafkad.server.logins import prepare

                prepare(self, each, self.socket_server.logins)

    def _make_sessions(self, authorizer: Authorizer | None) -> Sessions:
        # The reactor serves these from what it read at once; only a limit below its buffer could be exceeded so.
        fits = self.settings.socket_request_max_bytes >= SCRATCH_BYTES
        sessions = Sessions(self.fast_paths if fits else {}, authorizer)
        if authorizer is not None and fits:
            from pykafkad.server.watched_fast_paths import WatchedFastPaths

            self._watched_fast_paths = sessions.watched_fast_paths = WatchedFastPaths(self, authorizer)
        return sessions

    def _make_services(self) -> BrokerServices:
        return BrokerServices(
            call_later=self.runtime.call_later,
            check_live_settings=lambda live: self.socket_server.check_live_settings(live),
            client_metrics=self.client_metrics,
            clock=self.runtime,
            compute=self.runtime.replies.compute,
            controller=self.controller,
            directories=self.directories,
            fetch_sessions=self.fetch_sessions,
            groups=self.groups,
            log_failed=self.log_failed,
            logs=self.logs,
            mark_written=self.commits.mark,
            node_id=self.node_id,
            open_data_snapshots=lambda: self.data_snapshots,
            open_moves=lambda: self.moves,
            open_replication=lambda: self.replication,
            open_share_groups=lambda: self.share_groups,
            open_transaction_markers=lambda: self.transaction_markers,
            partitions=self.partitions,
            producer_ids=self.producer_ids,
            purgatory=self.purgatory,
            quotas=None,
            resume=self.runtime.replies.resume,
            settings=self.settings,
            transactions=self.transactions,
        )

    def forward(self, context: Context, message: Any) -> object:
        """Hand a request over to the controller."""
        return self.controller.submit(controller_request(context, message))

    def forget_topics(self) -> None:
        """The metadata changed: what the fast paths looked up by name must be looked up again."""
        for fast_path in self._fast_paths.values():
            fast_path.forget()
        if self._watched_fast_paths is not None:
            self._watched_fast_paths.forget()

    # --- its parts --------------------------------------------------------------------------------------------------

    @property
    def directory(self) -> LogDirectory:
        """The directory of the metadata log."""
        return self.directories.metadata

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

    # --- start and stop ---------------------------------------------------------------------------------------------

    def bind(self) -> None:
        """Listen. Raises OSError."""
        if self.settings.dynamic_broker:
            self._prepare_logins()
        listeners.bind(self.socket_server, self.listeners, self.settings, self.logs)

    def start(self, incarnation_id: bytes) -> None:
        """Register with the controller, leave the fence, and bring everything in step with the image."""
        self.register(incarnation_id)
        self.controller.submit(events.UnfenceBroker(self.node_id, self.image.brokers[self.node_id].epoch))
        self.begin_serving()

    def load(self) -> None:
        """Open what is there, in a process that serves already."""
        self.services.cluster_id = self.cluster_id
        self.services.image = self.image
        self._follow(self.image.whole_delta(), loading=True)

    def register(self, incarnation_id: bytes) -> None:
        """Register with the controller. The broker stays fenced until it says that it is ready."""
        self.incarnation_id = incarnation_id
        self.services.cluster_id = self.cluster_id
        self.services.image = self.image
        directories = self.directories
        before = self.image.brokers.get(self.node_id)
        self._log_dirs_before = before.log_dirs if before is not None else []
        self.controller.submit(
            events.RegisterBroker(
                self.node_id,
                incarnation_id,
                listeners.endpoints(self.listeners),
                directories.ids(),
                rack=self.settings.broker_rack,
                previous_broker_epoch=directories.broker_epoch,
            )
        )

    def begin_serving(self) -> None:
        """The broker is registered and unfenced: coordinate what it leads."""
        directories = self.directories
        directories.tell_lost(self._log_dirs_before)
        self._follow(self.image.take_delta(), loading=True)
        directories.tell_cordoned()
        if any(directory.futures for directory in directories.online):
            self.moves.resume()
        self.groups.follow()
        self._follow_share_groups()
        self.transactions.follow()
        self.compaction.start()
        self.serving = True

    def stop_listening(self) -> None:
        """Take no new connections."""
        self.socket_server.stop_listening()

    def finish_work(self) -> None:
        """Open the logs that new partitions still wait for, so that their creation is answered."""
        self.partitions.finish_pending()

    def resign(self) -> None:
        """Answer every delayed request; the members of groups are told to look for their coordinator."""
        if self._moves is not None:
            self._moves.stop()
        self.purgatory.expire(float("inf"))
        self.runtime.end_turn()
        self.commits.write_all()
        while self.commits.is_syncing:
            self.runtime.offload.close()
            self.commits.begin()
        if self.serving:
            self.controller.submit(events.StopBroker(self.node_id))
            self.groups.resign()
            self.transactions.resign()
            if self._share_groups is not None:
                self._share_groups.resign()

    def abandon(self) -> None:
        """Leave everything as it is, as a process does that is killed: nothing that waits goes on."""
        for host in (self.groups, self.transactions, *([self._share_groups.states] if self._share_groups else ())):
            host.abandon()
        if self._moves is not None:
            self._moves.stop()
        self.compaction.close()
        self.log_writer.close()
        self.cancel_work()

    def cancel_work(self) -> None:
        """Ask no other broker any more, and fetch from none; bring no log back."""
        for part in (self._replication, self._other_brokers, self._full_disk, self._unmade_partitions):
            if part is not None:
                part.close()

    def close(self) -> None:
        """Leave the directories as the next start expects them."""
        self.compaction.close()
        self.log_writer.close()
        broker = self.image.brokers.get(self.node_id)
        self.directories.epoch_at_close = broker.epoch if broker else -1

    # --- one turn ---------------------------------------------------------------------------------------------------

    def end_turn(self, now: float) -> None:
        """Delayed operations, writes, and the delayed operations that the writes concern."""
        if self.log_writer.done:
            self.log_writer.collect()
        waits = self.purgatory
        if waits.count:
            left = self._waits_left_of_turn()
            left -= waits.expire(now, left)
            left -= waits.retry(now, left)
            self._waits_left = left
        self.commits.finish()
        if waits.count:
            left = self._waits_left_of_turn()
            for _ in range(_RETRIES_PER_TURN):
                left -= waits.retry(now, left)
                self.commits.finish()
                if not waits.is_touched:
                    break
            self._waits_left = left
        if not self.commits.is_idle:
            self.commits.begin()
        if self.directories.failed_logs:
            self.take_failed_logs()

    def _waits_left_of_turn(self) -> int:
        """How many delayed operations may still be tried in this turn, which may be ended several times."""
        if self._waits_turn != self.runtime.turns:
            self._waits_turn = self.runtime.turns
            self._waits_left = self.runtime.waits_per_turn
        return self._waits_left

    def next_deadline(self) -> float | None:
        """When the next delayed operation ends; at once while some of this turn are left."""
        return 0.0 if self.purgatory.is_behind else self.purgatory.next_deadline()

    # --- what effects and handlers act on ---------------------------------------------------------------------------

    def log_failed(self, log: PartitionLog, failure: StorageFailure) -> None:
        """A log could not be read or written. If it is out of service now, tell of that once, and wake the requests
        that wait for it."""
        if log in self._offline_logs:
            return
        if log.offline is None:
            # The next attempt may succeed.
            self.directories.report(self.directories.of(log), failure, is_in_service=True)
            return
        self._offline_logs.add(log)
        self.runtime.metrics.writes_failed += 1
        self.logs.error("server", "partition-offline", topic=log.topic, partition=log.partition, reason=failure)
        self.forget_topics()
        self.purgatory.touch(log)
        self.directories.report(self.directories.of(log), failure)
        if log.offline.lacks_space:
            self.full_disk.add(log)
        self.hand_over(log)

    def log_recovered(self, log: PartitionLog) -> None:
        """A log is back in service: those who wait for it go on, and what coordinates by it is loaded again."""
        self._offline_logs.discard(log)
        self.logs.info("server", "partition-online", topic=log.topic, partition=log.partition)
        self.commits.recovered(log)
        self.role_taken(log)
        if self._replication is not None:
            self._replication.log_recovered(log)

    def role_taken(self, log: PartitionLog) -> None:
        """A log does now what the metadata said before."""
        self.forget_topics()
        self.purgatory.touch(log)
        self.groups.log_recovered(log)
        self.transactions.log_recovered(log)
        if self._share_groups is not None:
            self._share_groups.states.log_recovered(log)

    def directory_failed(self, directory: LogDirectory, logs: list[PartitionLog]) -> None:
        """A directory was given up: its logs are out of service; wake the requests that wait for them."""
        if self._moves is not None:
            self._moves.directory_failed(directory)
        self.forget_topics()
        for log in logs:
            self._offline_logs.add(log)
            self.purgatory.touch(log)

    def end_early(self, connection: Connection) -> None:
        """Answer a delayed request whose wait is a maximum, if another request waits behind it."""
        delayed = connection.delayed
        if delayed is not None and delayed.operation.ends_early and connection.has_whole_frame():
            self.purgatory.end_early(delayed, self.runtime.now)

    def connection_lost(self, connection: Connection) -> None:
        """Nobody waits for its answers any more."""
        self.dispatcher.connection_lost(connection)
        self.client_metrics.disconnected(connection.id)
        if self._share_groups is not None:
            self._share_groups.connection_lost(connection.id)

    def writable_by_clients(self, log: PartitionLog) -> bool:
        """Whether a client's batch for `log` needs no check besides those of the log itself."""
        # One that does not commit alone is not led here, or lacks replicas for acks=all, or waits for followers.
        return log.offline is None and not log.topic.startswith("__") and log.replica.commits_alone

    def metadata_changed(self, delta: MetadataDelta) -> bool:
        """Committed records changed the image. Whether partitions are brought in step with it in later turns."""
        postponed = self.partitions.postponed
        self._follow(delta, loading=False)
        return self.partitions.postponed > postponed

    def after_opening(self, answer: Callable[[], object]) -> None:
        """Call `answer` when all partitions that wait now are in step with the metadata."""
        self.partitions.after_pending(answer)

    def _follow(self, delta: MetadataDelta, *, loading: bool) -> None:
        """Bring logs, settings and groups in step with the image."""
        image = self.image
        if any(kind == TYPE_BROKER for kind, _ in delta.configs):
            self.settings.set_dynamic(image.configs(TYPE_BROKER, ""), image.configs(TYPE_BROKER, str(self.node_id)))
            are_own = (TYPE_BROKER, str(self.node_id)) in delta.configs
            self.socket_server.settings_changed(self.settings, are_own=are_own)
            self.partitions.reconfigure_all(image)
            if self.serving:
                self.directories.settings_changed()
        if self._moves and delta.topics_deleted:
            for topic in delta.topics_deleted:
                for state in topic.partitions:
                    self._moves.cancel(topic.name, state.index)
        gone = self.partitions.apply(delta, image, loading=not self.serving)
        # Requests that wait for a partition which this broker does not lead (any more) are answered.
        # Of those that it has followed before there may be thousands.
        for log in [*gone, *self.partitions.not_led_among(delta.partitions)]:
            self.purgatory.touch(log)
        if delta.brokers:
            # What waits for followers does not wait for those that are gone.
            self.purgatory.touch(image)
        if gone:
            self.compaction.forget(gone)
        self.forget_topics()
        if delta.acls:
            self.sessions.acls_changed()
        if "client_quotas" in delta.others:
            self.sessions.quotas_changed(self)
        if loading:
            return
        if self.tells_topics:
            self._tell_topics(delta)
        self.client_metrics.configs_changed(delta.configs)
        if delta.topics_deleted:
            self.housekeeping.plan_deletions()
        self.groups.metadata_changed(delta)
        self.transactions.metadata_changed(delta)
        self._follow_share_groups(delta)

    def _tell_topics(self, delta: MetadataDelta) -> None:
        askers = self.image.topic_askers
        for event, topics in (("topic-deleted", delta.topics_deleted), ("topic-created", delta.topics_created)):
            for topic in topics[:TOPICS_NAMED]:
                asked = {} if askers is None else askers.take(topic.id)
                self.logs.info("server", event, topic=topic.name, partitions=len(topic.partitions), **asked)
            if len(topics) > TOPICS_NAMED:
                self.logs.info("server", event, more=len(topics) - TOPICS_NAMED)

    def _follow_share_groups(self, delta: MetadataDelta | None = None) -> None:
        """Bring the share coordinator in step with the image. It is made when its topic is there."""
        if self._share_groups is not None:
            if delta is not None:
                self._share_groups.metadata_changed(delta)
        elif SHARE_STATE_TOPIC in self.image.topics:
            self.share_groups.follow()
