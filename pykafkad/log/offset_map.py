"""The newest offset of every key in the dirty part of a log, which compaction compares records with.

The map has many small dicts instead of a large one, because a large dict that grows or is freed blocks the loop for as
long as a million entries take. Keys longer than `MAX_KEY_BYTES` are replaced by a digest. So the size of an entry is
bounded, and the whole map stays below `log.cleaner.dedupe.buffer.size`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The most memory that one entry takes: key, offset, and its share of a half-filled dict.
ENTRY_BYTES = 208
MAX_KEY_BYTES = 64
_DIGEST_BYTES = 32
# A power of two, so that a mask picks the dict.
SHARDS = 256
SHARD_MASK = SHARDS - 1
# Each byte of the block map covers 16 neighbouring offsets, or more, so that there are at most 2**20 bytes.
_BLOCK_BITS = 4
_MAX_BLOCK_BITS = 20


def long_key(key: bytes) -> bytes:
    """The digest that replaces a key of more than `MAX_KEY_BYTES`."""
    # Imported with the first long key: hashlib loads OpenSSL, which takes 5 ms and a megabyte of every start.
    from hashlib import blake2b

    return blake2b(key, digest_size=_DIGEST_BYTES).digest() + len(key).to_bytes(8, "big")


class OffsetMap:
    """`shards[hash(key) & SHARD_MASK][key]` is the newest offset of `key`; `latest_offset` is the last offset entered.

    The map may exceed `max_entries` by the keys of one step.
    """

    __slots__ = ("_block_bits", "_first_offset", "_live", "latest_offset", "max_entries", "readers", "shards")

    def __init__(self, buffer_bytes: int, load_factor: float) -> None:
        self.shards: list[dict[bytes, int]] = [{} for _ in range(SHARDS)]
        # Bound methods, so that a look-up is one call.
        self.readers = [shard.get for shard in self.shards]
        places = buffer_bytes / ENTRY_BYTES
        # The settings may be any numbers, even NaN. At least one entry is allowed, so that each run makes progress.
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
        """Prepare `has_newest`, once all records from `first_offset` to `latest_offset` are entered.

        A generator of small steps: it notes in which blocks of offsets the newest records lie."""
        span = self.latest_offset - first_offset + 1
        bits = max(_BLOCK_BITS, span.bit_length() - _MAX_BLOCK_BITS)
        live = bytearray((max(span, 0) >> bits) + 1)
        for shard in self.shards:
            for offset in shard.values():
                live[offset - first_offset >> bits] = 1
            yield
        self._live, self._first_offset, self._block_bits = live, first_offset, bits

    def has_newest(self, first_offset: int, last_offset: int) -> bool:
        """Whether a record in this range of offsets may be the newest of its key. False is certain, True is not."""
        if not self._live or first_offset < self._first_offset or last_offset > self.latest_offset:
            return True
        first_block, last_block = (
            first_offset - self._first_offset >> self._block_bits,
            last_offset - self._first_offset >> self._block_bits,
        )
        return self._live.find(1, first_block, last_block + 1) >= 0

    def release(self) -> Iterator[None]:
        """Free the memory. A generator of small steps."""
        while self.shards:
            self.readers.pop()
            self.shards.pop()
            yield
