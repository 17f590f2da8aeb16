"""Where the replicas of new partitions go: striped over brokers and racks (as Kafka's StripedReplicaPlacer).

Each partition starts one rack and, inside a rack, one broker further than the one before, from a random first place, so
that leaders are even; the first replica is always on an unfenced broker; racks take turns; fenced brokers are the last
resort."""

from __future__ import annotations

from pykafkad.errors import INVALID_REPLICATION_FACTOR, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from pykafkad.metadata.brokers import Broker

# Directory ids that name no directory (KIP-858): not placed yet by a broker without ids, left to the broker, and gone.
MIGRATING_DIRECTORY = b"\0" * 16
UNASSIGNED_DIRECTORY = b"\0" * 15 + b"\1"
LOST_DIRECTORY = b"\0" * 15 + b"\2"
_RESERVED_IDS = 100


class _Ring:
    """Brokers of one rack and kind; each pass over the partitions begins one place further."""

    __slots__ = ("brokers", "index", "offset", "turn")

    def __init__(self, brokers: list[int], random: Random) -> None:
        self.brokers = brokers
        self.index = 0
        self.turn = 0
        self.offset = int(random.random() * len(brokers))

    def next(self, turn: int) -> int | None:
        brokers = self.brokers
        if not brokers:
            return None
        if self.turn != turn:
            self.turn = turn
            self.index = 0
            self.offset = (self.offset + 1) % len(brokers)
        if self.index >= len(brokers):
            return None
        broker = brokers[(self.index + self.offset) % len(brokers)]
        self.index += 1
        return broker


class _Racks:
    __slots__ = ("offset", "racks", "random", "turn", "unfenced")

    def __init__(self, brokers: list[Broker], random: Random) -> None:
        by_rack: dict[str | None, tuple[list[int], list[int]]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, ([], []))[broker.fenced].append(broker.id)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self.racks = [
            (_Ring(sorted(by_rack[name][0]), random), _Ring(sorted(by_rack[name][1]), random)) for name in names
        ]
        self.random = random
        self.turn = 0
        self.unfenced = sum(len(rack[0].brokers) for rack in self.racks)
        self.offset = int(random.random() * len(self.racks))

    def place(self, replication_factor: int) -> list[int]:
        """Replicas of the next partition, the preferred leader first."""
        if self.turn == self.unfenced and self.unfenced > 1:
            self._shuffle()
            self.turn = 0
        count = len(self.racks)
        self.offset %= count
        first = self.offset
        while (broker := self.racks[first][0].next(self.turn)) is None:
            first = (first + 1) % count
        replicas = [broker]
        skip, index = first, self.offset
        while len(replicas) < replication_factor:
            broker = None
            if index == skip:
                skip = None
            else:
                unfenced, fenced = self.racks[index]
                broker = unfenced.next(self.turn)
                if broker is None:
                    broker = fenced.next(self.turn)
            index = (index + 1) % count
            if broker is not None:
                replicas.append(broker)
        self.turn += 1
        self.offset += 1
        return replicas

    def _shuffle(self) -> None:
        """After as many partitions as there are brokers: another order, so that the same pairs do not come again."""
        self.random.shuffle(self.racks)
        for rack in self.racks:
            for ring in rack:
                self.random.shuffle(ring.brokers)


def place(brokers: list[Broker], partitions: int, replication_factor: int, random: Random) -> list[list[int]]:
    """Replica lists for `partitions` new partitions. Raises `KafkaError` (INVALID_REPLICATION_FACTOR)."""
    if replication_factor <= 0:
        text = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        raise KafkaError(INVALID_REPLICATION_FACTOR, text)
    if all(broker.fenced for broker in brokers):
        text = "All brokers are currently fenced, or have all their log directories cordoned."
        raise KafkaError(INVALID_REPLICATION_FACTOR, text)
    if replication_factor > len(brokers):
        text = (
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} broker(s) "
            "are registered or some brokers have all their log directories cordoned."
        )
        raise KafkaError(INVALID_REPLICATION_FACTOR, text)
    racks = _Racks(brokers, random)
    return [racks.place(replication_factor) for _ in range(partitions)]


def usable(brokers: dict[int, Broker]) -> list[Broker]:
    """Brokers that may get replicas: those with a log directory that is not cordoned."""
    return [
        broker
        for broker in brokers.values()
        if not broker.in_controlled_shutdown
        and not (broker.log_dirs and set(broker.log_dirs) <= set(broker.cordoned_log_dirs))
    ]


def directory(broker: Broker | None) -> bytes:
    """The directory of a new replica: the broker's only one, or left for the broker to choose."""
    if broker is None:
        return UNASSIGNED_DIRECTORY
    if not broker.log_dirs:
        return MIGRATING_DIRECTORY
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY


def names_directory(directory_id: bytes) -> bool:
    """Whether an id is a directory's own: the first hundred numbers stand for something else."""
    return int.from_bytes(directory_id, "big") >= _RESERVED_IDS


def has_online_directory(broker: Broker, directory_id: bytes) -> bool:
    """Whether a replica in that directory can be served: a directory that the broker registered, or one still to be
    chosen."""
    if directory_id == LOST_DIRECTORY:
        return False
    return (
        directory_id in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)
        or not broker.log_dirs
        or directory_id in broker.log_dirs
    )
