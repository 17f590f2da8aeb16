"""Which partition of an internal topic keeps the state of a key: Kafka's own arithmetic, so that both agree on files."""

from __future__ import annotations


def java_hash(text: str) -> int:
    """`String.hashCode` of Java: polynomial 31 over UTF-16 units, wrapped to a signed 32-bit integer."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & 0xFFFFFFFF
    else:
        units = text.encode("utf-16-le", "surrogatepass")
        for position in range(0, len(units), 2):
            value = (31 * value + units[position] + (units[position + 1] << 8)) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def partition_for(key: str, count: int) -> int:
    """The partition, of `count`, that a group id or transactional id belongs to.

    The hash is made positive by its arithmetic absolute value, where the smallest integer, which has none, becomes 0
    (unlike the sign-bit mask of the producer's partitioner).
    """
    value = java_hash(key)
    return (0 if value == -0x8000_0000 else abs(value)) % count
