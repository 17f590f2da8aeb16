"""The newest offset of every key in the dirty part of a log: what compaction compares records with.

Kept in many small dicts instead of a large one, because a large one that grows, or goes, holds the loop for as long as
it takes to move a million entries. Keys longer than `MAX_KEY_BYTES` are replaced by a digest, so that the memory of an
entry is bounded, and with it that of the whole map: `log.cleaner.dedupe.buffer.size`."""

from __future__ import annotations

from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# What one entry takes at most: key, offset, and their part of a half-filled dict.
ENTRY_BYTES = 208
MAX_KEY_BYTES = 64
_DIGEST_BYTES = 32
# A power of two, so that a mask picks the dict.
SHARDS = 256
SHARD_MASK = SHARDS - 1
# A byte tells of 16 neighbouring offsets, or of so many more that there are at most 2**20 bytes.
_BLOCK_BITS = 4
_MAX_BLOCK_BITS = 20


def long_key(key: bytes) -> bytes:
    """What stands for a key of more than `MAX_KEY_BYTES`: longer than any digest that a short key could equal by
    chance."""
    return blake2b(key, digest_size=_DIGEST_BYTES).digest() + len(key).to_bytes(8, "big")


class OffsetMap:
    """`shards[hash(key) & SHARD_MASK][key]` is the newest offset of `key`; `latest_offset` the last that was looked at.

    `max_entries` may be passed by what one step adds.
    """

    __slots__ = ("_block_bits", "_first_offset", "_live", "latest_offset", "max_entries", "readers", "shards")

    def __init__(self, buffer_bytes: int, load_factor: float) -> None:
        self.shards: list[dict[bytes, int]] = [{} for _ in range(SHARDS)]
        # The dicts' own `get`, so that a look-up is one call.
        self.readers = [shard.get for shard in self.shards]
        places = buffer_bytes / ENTRY_BYTES
        # Any number may be set. With one entry a run comes at least a step further; a NaN is below nothing and above
        # nothing, so it is that.
        self.max_entries = int(max(1, min(places * load_factor, places)))
        self.latest_offset = -1
        self._live = bytearray()
        self._first_offset = self._block_bits = 0

    def __len__(self) -> int:
        return sum(map(len, self.shards))

    def get(self, key: bytes) -> int:
        """The newest offset of a key, -1 without one."""
        if len(key) > MAX_KEY_BYTES:
            key = long_key(key)
        return self.shards[hash(key) & SHARD_MASK].get(key, -1)

    def complete(self, first_offset: int) -> Iterator[None]:
        """Generator, in small steps: every keyed record from `first_offset` to `latest_offset` has been entered; note
        where the newest ones lie, for `has_newest`."""
        span = self.latest_offset - first_offset + 1
        bits = max(_BLOCK_BITS, span.bit_length() - _MAX_BLOCK_BITS)
        live = bytearray((max(span, 0) >> bits) + 1)
        for shard in self.shards:
            for offset in shard.values():
                live[offset - first_offset >> bits] = 1
            yield
        self._live, self._first_offset, self._block_bits = live, first_offset, bits

    def has_newest(self, first_offset: int, last_offset: int) -> bool:
        """Whether a record in this range may be the newest of its key; False only if none is, without a look at the
        records."""
        if not self._live or first_offset < self._first_offset or last_offset > self.latest_offset:
            return True
        first_block, last_block = (
            first_offset - self._first_offset >> self._block_bits,
            last_offset - self._first_offset >> self._block_bits,
        )
        return self._live.find(1, first_block, last_block + 1) >= 0

    def release(self) -> Iterator[None]:
        """Generator: give the memory back in small steps."""
        while self.shards:
            self.readers.pop()
            self.shards.pop()
            yield
