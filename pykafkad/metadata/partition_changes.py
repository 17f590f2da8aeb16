"""Changes of a partition's leader, ISR and eligible leader replicas (ELR), when brokers start, stop or fail, and when
replicas move.

The rules are those of Kafka's controller with eligible leader replicas (KIP-966). The leader is a replica of the ISR.
When the ISR is empty it is a replica of the ELR. Otherwise it is the last known leader, which may have lost records.
Otherwise, where the topic allows it, it is any active replica."""

from __future__ import annotations

from pykafkad import config
from pykafkad.metadata import record_codec
from pykafkad.metadata.features import ELIGIBLE_LEADER_REPLICAS
from pykafkad.metadata.image import TYPE_TOPIC
from pykafkad.metadata.placement import UNASSIGNED_DIRECTORY, directory as default_directory, has_online_directory
from pykafkad.metadata.topics import NO_LEADER, NO_LEADER_CHANGE
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pykafkad.config import Settings, TopicSettings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.image import Image
    from pykafkad.metadata.topics import PartitionState, Topic

RECOVERED, RECOVERING = 0, 1

# The kinds of election. PREFERRED: the first replica, if it can lead. ONLINE: the present leader, else another replica
# in sync. UNCLEAN: like ONLINE, else any active replica.
PREFERRED = "preferred"
ONLINE = "online"
UNCLEAN = "unclean"

_AT_ONCE = 32
"""Partitions per step."""


def unclean_elections_allowed(image: Image, settings: Settings, topic: Topic) -> bool:
    """Whether a replica that is not in sync may lead partitions of the topic when no replica in sync is left."""
    return config.topic_settings(settings, image.configs(TYPE_TOPIC, topic.name)).unclean_leader_election_enable


class PartitionChange:
    """Builds the record of a change of one partition.

    The caller sets the new values and then calls `record()`: `isr`, `replicas`, `removing`, `adding`, `directories`
    (broker id to 16-byte directory id), the kind of `election`, `acceptable` (whether a broker may lead), `lost`, a
    broker that stopped uncleanly and may have lost records, and `recovered`: a leader that was elected uncleanly has
    done what it can."""

    __slots__ = (
        "_elr_kept",
        "_image",
        "_minimum_isr",
        "_state",
        "_topic",
        "acceptable",
        "adding",
        "directories",
        "election",
        "isr",
        "lost",
        "recovered",
        "removing",
        "replicas",
    )

    def __init__(
        self,
        image: Image,
        settings: Settings,
        topic: Topic,
        state: PartitionState,
        topic_settings: TopicSettings | None = None,
    ) -> None:
        """`topic_settings` may be given by a caller that has computed them already."""
        self._image = image
        self._topic = topic
        self._state = state
        self._elr_kept = image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0
        if topic_settings is None:
            topic_settings = config.topic_settings(settings, image.configs(TYPE_TOPIC, topic.name))
        self._minimum_isr = min(topic_settings.min_insync_replicas, len(topic.partitions[0].replicas))
        self.isr = list(state.isr)
        self.replicas = list(state.replicas)
        self.removing = list(state.removing_replicas)
        self.adding = list(state.adding_replicas)
        self.directories = dict(zip(state.replicas, state.directories, strict=False))
        self.election = ONLINE
        self.lost = -1
        self.recovered = False
        self.acceptable: Callable[[int], bool] = lambda broker_id: may_lead(
            image, state, broker_id, self.directories.get(broker_id)
        )

    def record(self) -> StoredRecord | None:
        """The PartitionChangeRecord of the change. None when nothing changes."""
        state = self._state
        record = messages.PartitionChangeRecord(partition_id=state.index, topic_id=self._topic.id)
        self._complete_reassignment()
        elr = self._eligible()
        self._elect(record, elr)
        if record.leader == NO_LEADER_CHANGE and not set(state.replicas) <= set(self.replicas):
            # Naming the leader starts a new leader epoch, so that nobody fetches from a replica that is removed.
            record.leader = state.leader
        if not self._elr_kept:
            elr = []
        if elr != list(state.elr):
            record.eligible_leader_replicas = elr
        # Without ELR the last replica never leaves the ISR: only the ISR records that it has all committed records.
        if self.isr != list(state.isr) and (self.isr or self._elr_kept):
            record.isr = self.isr
        if self._elr_kept:
            self._remember_last_leader(record)
        if self.recovered and state.leader_recovery_state == RECOVERING and record.leader_recovery_state == -1:
            record.leader_recovery_state = RECOVERED
        for name, wanted in (
            ("replicas", self.replicas),
            ("removing_replicas", self.removing),
            ("adding_replicas", self.adding),
        ):
            if wanted != list(getattr(state, name)):
                setattr(record, name, wanted)
        brokers = self._image.brokers
        directories = [
            self.directories.get(replica) or default_directory(brokers.get(replica)) for replica in self.replicas
        ]
        if directories != list(state.directories):
            record.directories = directories
        unchanged = messages.PartitionChangeRecord(partition_id=state.index, topic_id=self._topic.id)
        return None if record == unchanged else record_codec.record(record)

    def _complete_reassignment(self) -> None:
        """End a reassignment: remove the replicas that leave once all new ones are in sync. When the number of replicas
        shrinks, all replicas that stay must be in sync."""
        if not self.removing and not self.adding:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        if not isr or not replicas or not set(self.adding) <= set(isr):
            return
        if len(self.adding) < len(self.removing) and not set(replicas) <= set(isr):
            return
        self.isr, self.replicas, self.removing, self.adding = isr, replicas, [], []

    def _eligible(self) -> list[int]:
        """The new ELR: replicas outside the ISR that have all committed records, because they left the ISR while it was
        smaller than the minimum.

        A broker that is a replica no longer deletes its log, so it leaves the ELR, too. Kafka 4.3 keeps it there. When
        it becomes a replica again while there is no leader, Kafka elects it without any record."""
        if not self._elr_kept or len(self.isr) >= self._minimum_isr:
            return []
        known = sorted({*self._state.elr, *self._state.isr} & {*self.replicas})
        return [replica for replica in known if replica not in self.isr and replica != self.lost]

    def _elect(self, record: messages.PartitionChangeRecord, elr: list[int]) -> None:
        """Set the leader, if it changes, and adjust the ISR and `elr` to it."""
        state = self._state
        leader, unclean = self._best(elr)
        if leader == state.leader:
            return
        record.leader = leader
        if leader in elr:
            self.isr = [leader]
            elr.remove(leader)
        elif unclean:
            self.isr = [leader]
            elr.clear()
            if state.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _best(self, elr: list[int]) -> tuple[int, bool]:
        """The new leader, and whether it may have lost committed records."""
        state = self._state
        candidates = [state.leader, *self.replicas]
        if self.election == PREFERRED:
            candidates.insert(0, self.replicas[0])
        source = self.isr or elr
        for replica in candidates:
            if replica in source and self.acceptable(replica):
                return replica, False
        last_known = state.last_known_elr
        if self._elr_kept and not source and len(last_known) == 1 and self.acceptable(last_known[0]):
            return last_known[0], True
        if self.election == UNCLEAN:
            for replica in self.replicas:
                if self.acceptable(replica):
                    return replica, True
        return NO_LEADER, False

    def _remember_last_leader(self, record: messages.PartitionChangeRecord) -> None:
        """Set the last known leader of a partition that loses its leader, and clear it when there is a leader again."""
        if record.leader == NO_LEADER and not self._state.last_known_elr:
            record.last_known_elr = [self._state.leader]
        elif record.leader >= 0 and self._state.last_known_elr:
            record.last_known_elr = []


def may_lead(
    image: Image,
    state: PartitionState,
    broker_id: int,
    directory: bytes | None = None,
    *,
    although_fenced: bool = False,
) -> bool:
    """Whether a broker is registered, active, and has the directory that holds the partition online; or `directory`,
    which is to hold it."""
    broker = image.brokers.get(broker_id)
    if broker is None or not (broker.active or although_fenced):
        return False
    if directory is None:
        position = state.replicas.index(broker_id) if broker_id in state.replicas else -1
        directory = state.directories[position] if 0 <= position < len(state.directories) else UNASSIGNED_DIRECTORY
    return has_online_directory(broker, directory)


def broker_changes(
    image: Image, settings: Settings, *, removed: int = -1, added: int = -1, lost: int = -1
) -> list[StoredRecord]:
    """The records of all partitions that change with a broker (given by its id).

    The broker `removed` leaves all ISRs and leads nothing. The broker `added` may lead partitions that have no leader.
    The broker `lost` stopped uncleanly and leaves all ISRs and ELRs."""
    steps = broker_changes_in_steps(image, settings, removed=removed, added=added, lost=lost)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            records: list[StoredRecord] = stop.value
            return records


def broker_changes_in_steps(
    image: Image, settings: Settings, *, removed: int = -1, added: int = -1, lost: int = -1
) -> Generator[None, None, list[StoredRecord]]:
    """The same, with a yield after some partitions: a broker may have any number of them."""
    records = []
    # Whoever loses the leadership of the quorum between two steps applies the changes of others.
    for topic in list(image.topics.values()):
        topic_settings = None
        for number, state in enumerate(list(topic.partitions), 1):
            if number % _AT_ONCE == 0:
                yield
            concerned = (
                state.leader == NO_LEADER
                if added != -1
                else removed in state.isr or lost in state.isr or lost in state.elr
            )
            if not concerned:
                continue
            if topic_settings is None:
                topic_settings = config.topic_settings(settings, image.configs(TYPE_TOPIC, topic.name))
            change = PartitionChange(image, settings, topic, state, topic_settings)
            change.isr = [replica for replica in state.isr if replica != removed and replica != lost]
            change.lost = lost
            change.election = UNCLEAN if topic_settings.unclean_leader_election_enable else ONLINE
            change.acceptable = _acceptable(image, state, (removed, lost), added)
            record = change.record()
            if record is not None:
                records.append(record)
        yield
    return records


def _acceptable(image: Image, state: PartitionState, refused: tuple[int, int], added: int) -> Callable[[int], bool]:
    return lambda broker_id: (
        broker_id not in refused and may_lead(image, state, broker_id, although_fenced=broker_id == added)
    )
