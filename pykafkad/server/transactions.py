"""The transaction coordinator's place in the shell.

A transactional id lives in the shard of the partition of `__transaction_state` that the Java hash of it names."""

from __future__ import annotations

from pykafkad import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pykafkad.server.broker import Broker


class Transactions:
    """The shards of `__transaction_state` that this broker leads."""

    __slots__ = ("_broker",)

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def error_for(self, transactional_id: str) -> int:
        """NONE if this broker coordinates the id, or the error that its clients are told."""
        return self.shard_for(transactional_id)[1]

    def shard_for(self, transactional_id: str) -> tuple[Any, int]:
        """The shard of a transactional id and NONE, or None and an error code."""
        return None, errors.NOT_COORDINATOR

    @property
    def is_loading(self) -> bool:
        """Whether a shard is being loaded."""
        return False

    def shards(self) -> Iterable[Any]:
        """All shards that are loaded."""
        return ()

    def submit(self, transactional_id: str, event: Any) -> object:
        """Hand an event to the shard of a transactional id; `error_for` has said NONE."""
        raise AssertionError(f"no shard for {transactional_id}: {event}")

    def submit_many(
        self, entries: list[tuple[str, Any]], combine: Callable[[list[Any]], object], token: object
    ) -> object:
        """Several events of one request; `combine` makes the answer of their answers."""
        raise AssertionError(f"no shard for {entries}")

    def read(self, transactional_id: str, token: object) -> None:
        """Hold the answer until everything that it shows of the transactional id is committed."""

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[tuple[str, int]],
        verify_only: bool,
        then: Callable[[dict[tuple[str, int], int]], object],
    ) -> None:
        """Add partitions to the producer's transaction, or ask whether they belong to it. `then` gets an error code for
        each partition, once: at once, or when the transaction's record is committed."""
        error = self.error_for(transactional_id)
        then(dict.fromkeys(partitions, error))
