"""The actions that a pure state machine asks for, as values.

A machine's `step(event, now, now_ms)` returns a list of effects, and `server/machine_runner.py` performs them. **List
order is causal order**: a `Reply` or `Send` after an `Append` or `Persist` in the same list is sent only when that
write is as durable as the policy asks. Effects are never reordered.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from pykafkad.wire import messages


class _Effect:
    """Equality and a readable form, so that tests compare effects as values."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class StoredRecord(_Effect):
    """A typed record of an internal log.

    `key` is a wire message, or None in the metadata log. `value` None is a tombstone.
    """

    __slots__ = ("key", "value")

    def __init__(self, key: object, value: object) -> None:
        self.key = key
        self.value = value


class EncodedRecord(StoredRecord):
    """A record whose key and value are known as bytes already: `encoded`."""

    __slots__ = ("encoded",)

    def __init__(self, record: StoredRecord, encoded: tuple[bytes, bytes | None]) -> None:
        super().__init__(record.key, record.value)
        self.encoded = encoded


class Append(_Effect):
    """Writes `records` (a list of `StoredRecord`) as one batch to `log`, a `(topic, partition)`.

    The machine's own `apply` is called for each record right after the local write. With `producer`, a producer id and
    its epoch, the batch belongs to that producer's transaction. `body`, if it is known already, is what stands behind
    the header of the batch: all the records as bytes, with one timestamp.
    """

    __slots__ = ("body", "log", "producer", "records")

    def __init__(
        self,
        log: tuple[str, int],
        records: list[StoredRecord],
        producer: tuple[int, int] | None = None,
        body: bytes | bytearray | None = None,
    ) -> None:
        self.log = log
        self.records = records
        self.producer = producer
        self.body = body


class Prune(_Effect):
    """Deletes the records of `log`, a `(topic, partition)`, before `offset`. The machine needs them no more."""

    __slots__ = ("log", "offset")

    def __init__(self, log: tuple[str, int], offset: int) -> None:
        self.log = log
        self.offset = offset


INITIALIZE_STATE = "initialize"
DELETE_STATE = "delete"


class AskShareState(_Effect):
    """Asks the share coordinator to begin or to delete the delivery state of share partitions (`action`).

    `topics` maps topic ids to partitions with their start offsets (-1: none). `then(failures)` turns the outcome into
    an event."""

    __slots__ = ("action", "group_id", "state_epoch", "then", "topics")

    def __init__(
        self,
        action: str,
        group_id: str,
        topics: dict[bytes, dict[int, int]],
        state_epoch: int,
        then: Callable[[dict[tuple[bytes, int], tuple[int, str | None]]], object],
    ) -> None:
        self.action = action
        self.group_id = group_id
        self.topics = topics
        self.state_epoch = state_epoch
        self.then = then


class CreateInternalTopics(_Effect):
    """Creates the topics that the topology of a streams group needs, once the records before it are committed.

    `topics` are rows of a CreateTopics request. `token` names the request whose client asks for them: it needs the
    permission to create them. `response` is the answer that the `Reply` after this effect sends; its status
    MISSING_INTERNAL_TOPICS can still say what stands in the way. The same topics are asked for again with each
    heartbeat until they exist."""

    __slots__ = ("group_id", "response", "token", "topics")

    def __init__(
        self,
        token: object,
        group_id: str,
        topics: list[messages.CreateTopicsRequest.CreatableTopic],
        response: messages.StreamsGroupHeartbeatResponse,
    ) -> None:
        self.token = token
        self.group_id = group_id
        self.topics = topics
        self.response = response


class Compute(_Effect):
    """Goes on with a computation in each turn until it has ended. `steps` yields between its parts, and reads nothing
    that changes meanwhile. `then(outcome)` turns what it returns into an event; None stands for one that has failed.
    `refused` is the event if it never begins, because the records before it were refused, or if a bug ends the step of
    the other event."""

    __slots__ = ("refused", "steps", "then")

    def __init__(self, steps: Generator[None, None, object], then: Callable[[object], object], refused: object) -> None:
        self.steps = steps
        self.then = then
        self.refused = refused


class Later(_Effect):
    """Delivers `event` to the machine in a later turn. `refused` is the event if the records before it were refused, or
    if a bug ends the step of the other event."""

    __slots__ = ("event", "refused")

    def __init__(self, event: object, refused: object) -> None:
        self.event = event
        self.refused = refused


class Reply(_Effect):
    """Answers the request of `token`. A reply to a closed connection is dropped."""

    __slots__ = ("message", "token")

    def __init__(self, token: object, message: object) -> None:
        self.token = token
        self.message = message


class Send(_Effect):
    """Sends `request` to another node. `then(answer)` turns the answer into an event."""

    __slots__ = ("peer", "request", "then")

    def __init__(self, peer: int, request: object, then: Callable[[Any], object]) -> None:
        self.peer = peer
        self.request = request
        self.then = then


class Persist(_Effect):
    """Replaces the machine's small file `name` by `value` (bytes).

    It is written, synced and renamed before later effects.
    """

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: bytes) -> None:
        self.name = name
        self.value = value


class WriteMarkers(_Effect):
    """Writes the end of a transaction into `partitions`, a list of `(topic, partition)`, wherever they are led.

    The machine then gets `transaction_events.MarkersWritten` with an error code for each partition."""

    __slots__ = (
        "is_commit",
        "partitions",
        "producer_epoch",
        "producer_id",
        "transaction_version",
        "transactional_id",
    )

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        is_commit: bool,
        partitions: list[tuple[str, int]],
        transaction_version: int,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.is_commit = is_commit
        self.partitions = partitions
        self.transaction_version = transaction_version


TOLD_PER_STEP = 20
"""The most `Tell` effects of one step, for those that a machine has one for each member or transaction."""


class Tell(_Effect):
    """Something that people want to know: the shell writes it to the log at level info. `event` is its word; `fields`
    are named values."""

    __slots__ = ("event", "fields")

    def __init__(self, event: str, fields: dict[str, object]) -> None:
        self.event = event
        self.fields = fields


class SetTimer(_Effect):
    """Delivers `TimerFired(key)` to the machine at monotonic second `at`.

    It replaces an older timer of the same key.
    """

    __slots__ = ("at", "key")

    def __init__(self, key: object, at: float) -> None:
        self.key = key
        self.at = at


class CancelTimer(_Effect):
    """Removes the timer of `key`, if there is one."""

    __slots__ = ("key",)

    def __init__(self, key: object) -> None:
        self.key = key


class TimerFired(_Effect):
    """The event of a `SetTimer` that is due."""

    __slots__ = ("key",)

    def __init__(self, key: object) -> None:
        self.key = key
