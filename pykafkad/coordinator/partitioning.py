"""The partition of an internal topic that holds the state of a group or of a transactional id.

The arithmetic is Kafka's, so that this broker and Kafka find the same state in the same files."""

from __future__ import annotations

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: a polynomial with base 31 over UTF-16 units, wrapped to a signed 32-bit integer."""
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
    """The partition of a group id or transactional id in a topic with `count` partitions.

    A negative hash is replaced by its absolute value. The smallest 32-bit integer has none and becomes 0. (The
    producer's partitioner clears the sign bit instead.)
    """
    value = java_hash(key)
    return (0 if value == -0x8000_0000 else abs(value)) % count
