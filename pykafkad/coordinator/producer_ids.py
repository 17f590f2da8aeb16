"""Producer ids, taken from the block that the controller has assigned to this broker.

The controller writes a block to the metadata log before any of its ids is used. So no id is used twice, neither by two
brokers nor after a restart. The unused ids of a block are lost when its broker stops.
"""

from __future__ import annotations


class ProducerIds:
    """The unused ids of a block: `next_id` up to `end_id`, exclusive."""

    __slots__ = ("end_id", "next_id")

    def __init__(self) -> None:
        self.next_id = self.end_id = 0

    def take(self) -> int | None:
        """The next unused id, or None when the block is used up."""
        if self.next_id == self.end_id:
            return None
        self.next_id += 1
        return self.next_id - 1

    def refill(self, first_id: int, count: int) -> None:
        """Continue with a new block."""
        if count < 1:
            raise ValueError(f"a block of producer ids has at least one, not {count}")
        self.next_id = first_id
        self.end_id = first_id + count
