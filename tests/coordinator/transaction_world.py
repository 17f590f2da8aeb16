"""Drives one `TransactionShard`: sends events, performs effects as the shell does, keeps markers, moves the time."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.clock import ManualClock
from pykafkad.coordinator import events, transaction_events as asked, transaction_records
from pykafkad.coordinator.transaction_shard import TransactionShard
from pykafkad.effects import Append, Reply, SetTimer, Tell, WriteMarkers
from pykafkad.errors import name
from pykafkad.wire import messages
from tests.coordinator.world import TimedWorld, as_batches


class Settings:
    """The broker settings that a shard reads, with Kafka's defaults."""

    transaction_abort_timed_out_transaction_cleanup_interval_ms = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms = 3_600_000
    transactional_id_expiration_ms = 604_800_000
    message_max_bytes = 1_048_588


class TransactionWorld(TimedWorld):
    """A shard, its log as bytes, its timers, the replies by token, and the markers in the partitions.

    `outcome(partition)` says what the write of a marker comes to; `held` markers are written by `write_markers`."""

    def __init__(self, version: int = 2, **settings: int) -> None:
        self.settings = Settings()
        for key, value in settings.items():
            setattr(self.settings, key, value)
        self.clock = ManualClock()
        self.version = version
        self.next_id = 1_000
        self.ids_left = 1_000_000
        self.log: list[tuple[bytes, bytes | None]] = []
        self.timers: dict[object, float] = {}
        self.replies: dict[object, object] = {}
        self.tokens = 0
        self.told: list[tuple[str, dict[str, object]]] = []
        self.markers: list[tuple[tuple[str, int], int, int, bool]] = []
        self.held: list[WriteMarkers] = []
        self.holds_markers = False
        self.outcome = lambda place: "NONE"
        self.shard = self.new_shard()
        self.send(events.Loaded())

    def new_shard(self) -> TransactionShard:
        return TransactionShard(3, self.settings, self.take_id, lambda: self.version)

    def take_id(self) -> int | None:
        if not self.ids_left:
            return None
        self.ids_left -= 1
        self.next_id += 1
        return self.next_id

    # Events.

    def send(self, event: object) -> list[object]:
        effects = self.shard.step(event, self.clock.now(), self.clock.now_ms())
        for effect in effects:
            if type(effect) is Append:
                assert effect.log == ("__transaction_state", 3) and effect.records
                for record in effect.records:
                    self.log.append(transaction_records.encode(record, self.version))
                    self.shard.apply(record)
            elif type(effect) is Reply:
                assert effect.token not in self.replies, f"{effect.token} answered twice"
                self.replies[effect.token] = effect.message
            elif type(effect) is SetTimer:
                self.timers[effect.key] = effect.at
            elif type(effect) is WriteMarkers:
                self.held.append(effect)
            elif type(effect) is Tell:
                self.told.append((effect.event, effect.fields))
            else:
                raise AssertionError(effect)
        if not self.holds_markers:
            self.write_markers()
        return effects

    def write_markers(self) -> None:
        """Write what is held; what the shard wants then is written too."""
        while self.held:
            effect = self.held.pop(0)
            outcome = {}
            for place in effect.partitions:
                outcome[place] = getattr(errors, self.outcome(place))
                if not outcome[place]:
                    self.markers.append((place, effect.producer_id, effect.producer_epoch, effect.is_commit))
            self.send(asked.MarkersWritten(effect.transactional_id, effect.producer_id, effect.producer_epoch, outcome))

    def replayed(self) -> TransactionShard:
        """A fresh shard loaded from the bytes of the log."""
        shard = self.new_shard()
        shard.load(as_batches(self.log))
        return shard

    def restart(self) -> None:
        """Drop all state but the log and the markers."""
        self.shard = self.replayed()
        self.timers.clear()
        self.held.clear()
        self.send(events.Loaded())

    # Requests: each returns its answer.

    def ask(self, make: object) -> object:
        self.tokens += 1
        self.send(make(self.tokens))
        return self.replies[self.tokens]

    def init(
        self,
        transactional_id: str = "t",
        expected: tuple[int, int] | None = None,
        timeout_ms: int = 60_000,
        *,
        knows_fenced: bool = True,
    ) -> tuple[str, int, int]:
        """The error's name, the producer id and the epoch."""
        producer_id, epoch = expected or (-1, -1)
        request = messages.InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer = self.ask(lambda token: asked.InitProducerId(token, request, knows_fenced))
        return name(answer.error_code), answer.producer_id, answer.producer_epoch

    def add(
        self, producer: tuple[int, int], *places: tuple[str, int], transactional_id: str = "t", version: int = 0
    ) -> str:
        return name(
            self.ask(lambda token: asked.AddPartitions(token, transactional_id, *producer, list(places), version))
        )

    def verify(self, producer: tuple[int, int], *places: tuple[str, int], transactional_id: str = "t") -> list[str]:
        answer = self.ask(lambda token: asked.VerifyPartitions(token, transactional_id, *producer, list(places)))
        assert list(answer) == list(places)
        return [name(code) for code in answer.values()]

    def end(
        self,
        producer: tuple[int, int],
        commit: bool = True,
        *,
        transactional_id: str = "t",
        version: int = 0,
        knows_fenced: bool = True,
    ) -> tuple[str, int, int]:
        """The error's name, and the producer id and epoch to go on with."""
        request = messages.EndTxnRequest(
            transactional_id=transactional_id, producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )
        answer = self.ask(lambda token: asked.EndTxn(token, request, version, knows_fenced))
        return name(answer.error_code), answer.producer_id, answer.producer_epoch

    def state(self, transactional_id: str = "t") -> str | None:
        row = self.shard.describe(transactional_id)
        return None if row is None else row.transaction_state

    def producer(self, transactional_id: str = "t") -> tuple[int, int]:
        """Producer id and epoch of an id, by a new InitProducerId."""
        error, *producer = self.init(transactional_id)
        assert error == "NONE"
        return tuple(producer)

    def at_epoch(self, epoch: int, transactional_id: str = "t") -> tuple[int, int]:
        """A producer whose epoch is that high: the record is written as if it had come to it."""
        producer_id, _ = self.producer(transactional_id)
        transaction = self.shard.transactions[transactional_id]
        record = transaction.begin_anew(producer_id, epoch, transaction.timeout_ms, self.clock.now_ms())
        self.log.append(transaction_records.encode(record, self.version))
        self.shard.apply(record)
        return producer_id, epoch


def hard_state(shard: TransactionShard) -> dict[str, tuple[object, ...]]:
    """The state that a restart must restore."""
    return {
        key: (
            each.producer_id,
            each.previous_producer_id,
            each.next_producer_id,
            each.producer_epoch,
            each.timeout_ms,
            each.state,
            set(each.partitions),
            each.start_ms,
            each.update_ms,
            each.client_version,
        )
        for key, each in shard.transactions.items()
    }
