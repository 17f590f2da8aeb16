"""The placement of the replicas of new partitions: striped over racks and brokers, like Kafka's StripedReplicaPlacer.

The first partition begins at a random rack, and at a random broker within each rack. Each further partition begins one
rack further, and one broker further within each rack, so that leaders are spread evenly. The replicas of a partition go
to the racks in turn. The first replica is always on an unfenced broker. Fenced brokers are used only when a rack has no
unfenced one left."""

from __future__ import annotations

from pykafkad.errors import INVALID_REPLICATION_FACTOR, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from pykafkad.metadata.brokers import Broker

# Directory ids that name no directory (KIP-858). A broker without directory ids has not placed the replica yet
# (MIGRATING), the broker is to choose the directory (UNASSIGNED), or the directory has failed (LOST).
MIGRATING_DIRECTORY = b"\0" * 16
UNASSIGNED_DIRECTORY = b"\0" * 15 + b"\1"
LOST_DIRECTORY = b"\0" * 15 + b"\2"
_RESERVED_IDS = 100


class _Ring:
    """The fenced or the unfenced brokers of one rack. Each partition (`turn`) begins one broker further."""

    __slots__ = ("brokers", "index", "offset", "turn")

    def __init__(self, brokers: list[int], random: Random) -> None:
        self.brokers = brokers
        self.index = 0
        self.turn = 0
        self.offset = int(random.random() * len(brokers))

    def next(self, turn: int) -> int | None:
        """The next broker for the partition of this turn. None when all were returned."""
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
    """The brokers by rack, and the position at which the next partition begins."""

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
        """The replicas of the next partition, the preferred leader first."""
        if self.turn == self.unfenced and self.unfenced > 1:
            self._shuffle()
            self.turn = 0
        count = len(self.racks)
        self.offset %= count
        first = self.offset
        while (broker := self.racks[first][0].next(self.turn)) is None:
            first = (first + 1) % count
        replicas = [broker]
        skip: int | None = first
        index = self.offset
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
        """Change the order. This happens after as many partitions as there are unfenced brokers; otherwise the same
        brokers would hold the replicas of the same partitions again."""
        self.random.shuffle(self.racks)
        for rack in self.racks:
            for ring in rack:
                self.random.shuffle(ring.brokers)


def place(brokers: list[Broker], partitions: int, replication_factor: int, random: Random) -> list[list[int]]:
    """The replica lists of `partitions` new partitions. Raises `KafkaError(INVALID_REPLICATION_FACTOR)`."""
    if replication_factor <= 0:
        text = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        raise KafkaError(INVALID_REPLICATION_FACTOR, text)
    if all(broker.fenced for broker in brokers):
        text = "All brokers are currently fenced, or have all their log directories cordoned."
        raise KafkaError(INVALID_REPLICATION_FACTOR, text)
    if replication_factor > len(brokers):
        text = (
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
        raise KafkaError(INVALID_REPLICATION_FACTOR, text)
    racks = _Racks(brokers, random)
    return [racks.place(replication_factor) for _ in range(partitions)]


def usable(brokers: dict[int, Broker]) -> list[Broker]:
    """The brokers that may get replicas: they do not shut down, and have a log directory that is not cordoned."""
    return [
        broker
        for broker in brokers.values()
        if not broker.in_controlled_shutdown
        and not (broker.log_dirs and set(broker.log_dirs) <= set(broker.cordoned_log_dirs))
    ]


def directory(broker: Broker | None) -> bytes:
    """The directory id of a new replica: the broker's only directory, or UNASSIGNED for the broker to choose."""
    if broker is None:
        return UNASSIGNED_DIRECTORY
    if not broker.log_dirs:
        return MIGRATING_DIRECTORY
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY


def names_directory(directory_id: bytes) -> bool:
    """Whether an id names a directory. The first hundred numbers are reserved for other meanings."""
    return int.from_bytes(directory_id, "big") >= _RESERVED_IDS


def has_online_directory(broker: Broker, directory_id: bytes) -> bool:
    """Whether the broker can serve a replica in the directory: it registered the directory, or has yet to choose
    one."""
    if directory_id == LOST_DIRECTORY:
        return False
    return (
        directory_id in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)
        or not broker.log_dirs
        or directory_id in broker.log_dirs
    )
