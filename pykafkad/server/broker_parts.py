"""The parts of a broker that are made when they are first used: who never needs them does not load them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.topics import PartitionState
    from pykafkad.server.broker import Broker
    from pykafkad.server.data_snapshots import DataSnapshots
    from pykafkad.server.full_disk import FullDisk
    from pykafkad.server.internal_topics import InternalTopics
    from pykafkad.server.moves import Moves
    from pykafkad.server.other_brokers import OtherBrokers
    from pykafkad.server.replication import Replication
    from pykafkad.server.share_groups import ShareGroups
    from pykafkad.server.transaction_markers import TransactionMarkers
    from pykafkad.server.unmade_partitions import UnmadePartitions


class BrokerParts:
    """What a `Broker` is besides: each property makes its part when somebody asks."""

    def __init__(self) -> None:
        self._offline_logs: set[PartitionLog] = set()
        """Those of which `log_failed` has told."""
        self._moves: Moves | None = None
        self._data_snapshots: DataSnapshots | None = None
        self._internal_topics: InternalTopics | None = None
        self._share_groups: ShareGroups | None = None
        self._transaction_markers: TransactionMarkers | None = None
        self._other_brokers: OtherBrokers | None = None
        self._replication: Replication | None = None
        self._full_disk: FullDisk | None = None
        self._unmade_partitions: UnmadePartitions | None = None

    @property
    def _this(self) -> Broker:
        return self  # type: ignore[return-value]

    @property
    def moves(self) -> Moves:
        """Replicas on their way between directories."""
        if self._moves is None:
            from pykafkad.server.moves import Moves

            self._moves = Moves(self._this)
        return self._moves

    @property
    def data_snapshots(self) -> DataSnapshots:
        """Snapshots of the data, and the way back to them."""
        if self._data_snapshots is None:
            from pykafkad.server.data_snapshots import DataSnapshots

            self._data_snapshots = DataSnapshots(self._this)
        return self._data_snapshots

    @property
    def share_groups(self) -> ShareGroups:
        """The share coordinator's shards, the share partitions and the share sessions."""
        if self._share_groups is None:
            from pykafkad.server.share_groups import ShareGroups

            self._share_groups = ShareGroups(self._this)
        return self._share_groups

    @property
    def internal_topics(self) -> InternalTopics:
        """The internal topics of Streams applications that are being created."""
        if self._internal_topics is None:
            from pykafkad.server.internal_topics import InternalTopics

            self._internal_topics = InternalTopics(self._this.runtime, self._this.controller)
        return self._internal_topics

    @property
    def transaction_markers(self) -> TransactionMarkers:
        """What writes the ends of transactions into the partitions here."""
        if self._transaction_markers is None:
            from pykafkad.server.transaction_markers import TransactionMarkers

            self._transaction_markers = TransactionMarkers(self._this)
        return self._transaction_markers

    @property
    def other_brokers(self) -> OtherBrokers:
        """The way to the other brokers of the cluster."""
        if self._other_brokers is None:
            from pykafkad.server.other_brokers import OtherBrokers

            self._other_brokers = OtherBrokers(self._this)
        return self._other_brokers

    @property
    def used_snapshots(self) -> DataSnapshots | None:
        """The same; None as long as nobody has asked for any."""
        return self._data_snapshots

    @property
    def replication(self) -> Replication:
        """What partitions with several replicas need."""
        if self._replication is None:
            from pykafkad.server.replication import Replication

            self._replication = Replication(self._this)
        return self._replication

    @property
    def full_disk(self) -> FullDisk:
        """Logs that are out of service for lack of space, and come back."""
        if self._full_disk is None:
            from pykafkad.server.full_disk import FullDisk

            self._full_disk = FullDisk(self._this)
        return self._full_disk

    @property
    def unmade_partitions(self) -> UnmadePartitions:
        """Partitions that could not be made, and are made later."""
        if self._unmade_partitions is None:
            from pykafkad.server.unmade_partitions import UnmadePartitions

            self._unmade_partitions = UnmadePartitions(self._this)
        return self._unmade_partitions

    def hand_over(self, log: PartitionLog) -> None:
        """Have another replica lead a partition whose log is out of service until a restart, and nobody wait for this
        one. A log that lacks space comes back by itself, and others on the same disk lack it, too."""
        from pykafkad.log.reopening import can_reopen

        if not log.closed and not can_reopen(log) and set(log.replica.isr) - {self._this.node_id}:
            self._this.directories.name_again(log, is_lost=True)

    def role_changed(self, log: PartitionLog, state: PartitionState) -> None:
        """The metadata says something new of a partition; its replica knows that already."""
        this = self._this
        is_lost = this.node_id in state.lost
        if log.offline is None and is_lost:
            # An older request was late. The log is in service.
            this.directories.name_again(log, is_lost=False)
        elif log.offline is not None and not is_lost:
            self.hand_over(log)
        if self._replication is not None or len(state.replicas) > 1:
            self.replication.role_changed(log, state)

    def take_failed_logs(self) -> None:
        """Tell of logs that went out of service, whoever has used them: they come back only if the broker knows."""
        this = self._this
        failed = this.directories.failed_logs
        while failed:
            log = failed.pop()
            if log.offline is not None and this.partitions.get(log.topic, log.partition) is log:
                this.log_failed(log, log.offline)

    def replica_gone(self, log: PartitionLog) -> None:
        """The partition is gone from this broker."""
        self._offline_logs.discard(log)
        if self._replication is not None:
            self._replication.forget(log)
