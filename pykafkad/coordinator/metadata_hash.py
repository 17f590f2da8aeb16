"""The hash of the topics that a group subscribes to: when it changes, the group needs a new assignment.

The hash is stored with the group's epoch, so it is Kafka's: XXH3 (64 bits, seed 0) over the same bytes in the same
order. A broker that takes over the log finds it unchanged and leaves the group alone.
"""

from __future__ import annotations

from struct import Struct, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.coordinator.group_types import ClusterView, TopicView

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_LOW = 0xFFFF_FFFF
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MIX_1, _MIX_2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE = 64
_STRIPES_PER_BLOCK = (len(_SECRET) - _STRIPE) // 8
_BLOCK = _STRIPE * _STRIPES_PER_BLOCK
_EIGHT = Struct("<8Q")
_u64 = Struct("<Q").unpack_from
_u32 = Struct("<I").unpack_from


def of_topics(metadata: ClusterView, names: Iterable[str], cache: dict[str, int]) -> int:
    """The signed 64-bit hash of the topics with these names that exist, or 0 when there are none. `cache` has the
    hashes of single topics that have not changed since they were computed."""
    topics = sorted(name for name in names if name in metadata.topics)
    if not topics:
        return 0
    for name in topics:
        if name not in cache:
            cache[name] = of_topic(metadata, metadata.topics[name])
    return _signed(xxh3(pack(f"<{len(topics)}Q", *(cache[name] for name in topics))))


def of_topic(metadata: ClusterView, topic: TopicView) -> int:
    """The unsigned hash of a topic: its id, its name, and the racks of each partition's replicas."""
    partitions = topic.partitions
    most, least = int.from_bytes(topic.id[:8], "big"), int.from_bytes(topic.id[8:], "big")
    chunks = [pack("<BQQ", 0, most, least), _text(topic.name), pack("<i", len(partitions))]
    racks = {broker_id: broker.rack for broker_id, broker in metadata.brokers.items() if broker.rack is not None}
    if not racks:
        chunks.append(pack(f"<{len(partitions)}i", *range(len(partitions))))
    else:
        for index, partition in enumerate(partitions):
            chunks.append(pack("<i", index))
            for rack in sorted({racks[each] for each in partition.replicas if each in racks}):
                chunks += (pack("<i", len(rack)), _text(rack))
    return xxh3(b"".join(chunks))


def _text(text: str) -> bytes:
    """A text as the hash takes it: its UTF-16 units, then their number."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + pack("<i", len(units) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def xxh3(data: bytes) -> int:
    """XXH3 of the bytes, 64 bits, with seed 0."""
    size = len(data)
    if size <= 16:
        return _short(data, size)
    if size <= 128:
        total = size * _P64_1
        for step in range((size - 1) // 32, -1, -1):
            total += _mix(data, 16 * step, 32 * step) + _mix(data, size - 16 * (step + 1), 32 * step + 16)
        return _avalanche(total)
    if size <= 240:
        total = size * _P64_1 + sum(_mix(data, 16 * step, 16 * step) for step in range(8))
        total = _avalanche(total)
        total += sum(_mix(data, 16 * step, 16 * (step - 8) + 3) for step in range(8, size // 16))
        return _avalanche(total + _mix(data, size - 16, 136 - 17))
    return _long(data, size)


def _short(data: bytes, size: int) -> int:
    if size > 8:
        low = _u64(data, 0)[0] ^ _u64(_SECRET, 24)[0] ^ _u64(_SECRET, 32)[0]
        high = _u64(data, size - 8)[0] ^ _u64(_SECRET, 40)[0] ^ _u64(_SECRET, 48)[0]
        return _avalanche(size + int.from_bytes(low.to_bytes(8, "little"), "big") + high + _fold(low, high))
    if size >= 4:
        keyed: int = _u32(data, size - 4)[0] + (_u32(data, 0)[0] << 32) ^ _u64(_SECRET, 8)[0] ^ _u64(_SECRET, 16)[0]
        keyed ^= _rotated(keyed, 49) ^ _rotated(keyed, 24)
        keyed = keyed * _MIX_2 & _MASK
        keyed ^= (keyed >> 35) + size
        keyed = keyed * _MIX_2 & _MASK
        return keyed ^ keyed >> 28
    if size:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        value: int = combined ^ _u32(_SECRET, 0)[0] ^ _u32(_SECRET, 4)[0]
    else:
        value = _u64(_SECRET, 56)[0] ^ _u64(_SECRET, 64)[0]
    value = (value ^ value >> 33) * _P64_2 & _MASK
    value = (value ^ value >> 29) * _P64_3 & _MASK
    return value ^ value >> 32


def _long(data: bytes, size: int) -> int:
    lanes = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    blocks = (size - 1) // _BLOCK
    scramble = _EIGHT.unpack_from(_SECRET, len(_SECRET) - _STRIPE)
    for block in range(blocks):
        for stripe in range(_STRIPES_PER_BLOCK):
            lanes = _accumulated(lanes, data, block * _BLOCK + stripe * _STRIPE, 8 * stripe)
        for lane in range(8):
            value = lanes[lane] & _MASK
            lanes[lane] = ((value ^ value >> 47) ^ scramble[lane]) * _P32_1 & _MASK
    for stripe in range((size - 1 - blocks * _BLOCK) // _STRIPE):
        lanes = _accumulated(lanes, data, blocks * _BLOCK + stripe * _STRIPE, 8 * stripe)
    lanes = _accumulated(lanes, data, size - _STRIPE, len(_SECRET) - _STRIPE - 7)
    lanes = [lane & _MASK for lane in lanes]
    total = size * _P64_1
    secret = _EIGHT.unpack_from(_SECRET, 11)
    for lane in range(0, 8, 2):
        total += _fold(lanes[lane] ^ secret[lane], lanes[lane + 1] ^ secret[lane + 1])
    return _avalanche(total)


def _accumulated(lanes: list[int], data: bytes, position: int, secret_position: int) -> list[int]:
    """The lanes after one more stripe, not cut to 64 bits. Written out, because a topic of many partitions has many."""
    v0, v1, v2, v3, v4, v5, v6, v7 = _EIGHT.unpack_from(data, position)
    s0, s1, s2, s3, s4, s5, s6, s7 = _EIGHT.unpack_from(_SECRET, secret_position)
    s0 ^= v0
    s1 ^= v1
    s2 ^= v2
    s3 ^= v3
    s4 ^= v4
    s5 ^= v5
    s6 ^= v6
    s7 ^= v7
    return [
        lanes[0] + v1 + (s0 & _LOW) * (s0 >> 32),
        lanes[1] + v0 + (s1 & _LOW) * (s1 >> 32),
        lanes[2] + v3 + (s2 & _LOW) * (s2 >> 32),
        lanes[3] + v2 + (s3 & _LOW) * (s3 >> 32),
        lanes[4] + v5 + (s4 & _LOW) * (s4 >> 32),
        lanes[5] + v4 + (s5 & _LOW) * (s5 >> 32),
        lanes[6] + v7 + (s6 & _LOW) * (s6 >> 32),
        lanes[7] + v6 + (s7 & _LOW) * (s7 >> 32),
    ]


def _mix(data: bytes, position: int, secret_position: int) -> int:
    left: int = _u64(data, position)[0] ^ _u64(_SECRET, secret_position)[0]
    right: int = _u64(data, position + 8)[0] ^ _u64(_SECRET, secret_position + 8)[0]
    return _fold(left, right)


def _fold(left: int, right: int) -> int:
    product = left * right
    return product & _MASK ^ product >> 64


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK


def _avalanche(value: int) -> int:
    value &= _MASK
    value = (value ^ value >> 37) * _MIX_1 & _MASK
    return value ^ value >> 32
