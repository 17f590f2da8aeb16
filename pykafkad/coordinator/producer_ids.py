"""Producer ids, handed out from the block that this broker was given last.

A block is recorded by the metadata controller before any of its ids is used, so an id is never given out twice, neither
across brokers nor across restarts: what was left of a block when a broker stopped is lost.
"""

from __future__ import annotations


class ProducerIds:
    """The rest of a block: ids from `next_id` to `end_id`, exclusive."""

    __slots__ = ("end_id", "next_id")

    def __init__(self) -> None:
        self.next_id = self.end_id = 0

    def take(self) -> int | None:
        """An id that was never given out, or None when the block is used up."""
        if self.next_id == self.end_id:
            return None
        self.next_id += 1
        return self.next_id - 1

    def refill(self, first_id: int, count: int) -> None:
        """Go on with a new block."""
        if count < 1:
            raise ValueError(f"a block of producer ids has at least one, not {count}")
        self.next_id = first_id
        self.end_id = first_id + count
