"""The events of a `TransactionShard`, besides `events.Loaded`, `events.Resigned`, `events.TopicsDeleted` and
`effects.TimerFired`.

The handler has already made the checks that do not depend on the transactional id (authorization, whether topics exist,
an empty id). A difference in behaviour between API versions is a named boolean. A `Reply` effect answers `token` in the
same step."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.wire import messages

    Place = tuple[str, int]


class _Event:
    __slots__: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class InitProducerId(_Event):
    """A producer begins, or goes on after an error (KIP-360). The reply is an InitProducerIdResponse.

    `knows_fenced`: the client knows PRODUCER_FENCED (v4+); older ones get INVALID_PRODUCER_EPOCH."""

    __slots__ = ("knows_fenced", "request", "token")

    def __init__(self, token: object, request: messages.InitProducerIdRequest, knows_fenced: bool) -> None:
        self.token = token
        self.request = request
        self.knows_fenced = knows_fenced


class AddPartitions(_Event):
    """Partitions are added to the producer's transaction, all or none. The reply is an error code.

    `client_version` is the transaction version of the client: 2 if a broker adds them while it takes a produced batch
    (KIP-890), else 0."""

    __slots__ = ("client_version", "partitions", "producer_epoch", "producer_id", "token", "transactional_id")

    def __init__(
        self,
        token: object,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[Place],
        client_version: int,
    ) -> None:
        self.token = token
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.partitions = partitions
        self.client_version = client_version


class VerifyPartitions(_Event):
    """A broker asks whether partitions belong to the producer's open transaction (KIP-890). The reply is a dict of
    `(topic, partition)` to error code."""

    __slots__ = ("partitions", "producer_epoch", "producer_id", "token", "transactional_id")

    def __init__(
        self,
        token: object,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[Place],
    ) -> None:
        self.token = token
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.partitions = partitions


class EndTxn(_Event):
    """The producer ends its transaction. The reply is an EndTxnResponse.

    `client_version` is the transaction version of the client: 2 from v5 on, else 0. `knows_fenced`: the client knows
    PRODUCER_FENCED (v2+); older ones get INVALID_PRODUCER_EPOCH."""

    __slots__ = ("client_version", "knows_fenced", "request", "token")

    def __init__(self, token: object, request: messages.EndTxnRequest, client_version: int, knows_fenced: bool) -> None:
        self.token = token
        self.request = request
        self.client_version = client_version
        self.knows_fenced = knows_fenced


class MarkersWritten(_Event):
    """The outcome of `effects.WriteMarkers`: an error code for each partition. Producer id and epoch are those of the
    effect."""

    __slots__ = ("errors", "producer_epoch", "producer_id", "transactional_id")

    def __init__(self, transactional_id: str, producer_id: int, producer_epoch: int, errors: dict[Place, int]) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.errors = errors
