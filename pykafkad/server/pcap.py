"""A wire trace as a capture file, which Wireshark and tshark read.

The packets are made up around what was recorded: each connection opens and sends whole TCP segments with right lengths,
sequence numbers and checksums. What arrived by TLS stands there as it was inside. The broker's port is 9092, where
Wireshark looks for Kafka. Of a frame that was not kept whole the packets are there in their length, and end where its
bytes do, as if the capture had cut them off."""

from __future__ import annotations

from struct import Struct, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pykafkad.server.exchanges import Exchange

KAFKA_PORT = 9092
SEGMENT_BYTES = 60_000
MOST_MISSING_BYTES = 1 << 20
"""A frame that was not kept whole is left out if more than this is missing."""

_MAGIC = 0xA1B2C3D4
_RAW_IP = 101
_SNAP_BYTES = 262_144
_GLOBAL = Struct("<IHHiIII")
_PACKET = Struct("<IIII")
_TCP = Struct(">HHIIBBHHH")
_TCP_PROTOCOL = 6
_SYN, _ACK, _PUSH = 2, 16, 8
_HEADER_WORDS = 5
_WINDOW = 65535
_FIRST_SEQUENCE = 1000


def write(exchanges: Iterable[Exchange]) -> bytes:
    """The content of a capture file."""
    out = bytearray(_GLOBAL.pack(_MAGIC, 2, 4, 0, 0, _SNAP_BYTES, _RAW_IP))
    # A broker that takes another one's place counts its connections anew.
    flows: dict[tuple[int, str], _Flow] = {}
    events = [
        (at, number, is_answer, exchange)
        for number, exchange in enumerate(exchanges)
        for at, is_answer in _events(exchange)
    ]
    for at, _, is_answer, exchange in sorted(events, key=lambda event: event[:3]):
        seconds, rest = divmod(at, 1000)
        stamp = int(seconds), int(rest * 1000)
        which = exchange.connection_id, exchange.peer
        flow = flows.get(which)
        if flow is None:
            flow = flows[which] = _Flow(exchange)
            for packet in flow.opening():
                out += _PACKET.pack(*stamp, len(packet), len(packet)) + packet
        for packet, missing in flow.data(*_frame(exchange, is_answer), is_answer):
            out += _PACKET.pack(*stamp, len(packet), len(packet) + missing) + packet
    return bytes(out)


def _events(exchange: Exchange) -> Iterator[tuple[float, bool]]:
    yield exchange.time_ms, False
    if exchange.answer is not None:
        yield exchange.time_ms + (exchange.duration_ms or 0.0), True


def _frame(exchange: Exchange, is_answer: bool) -> tuple[bytes, int]:
    """What is there of a frame, its size first, and how many bytes are missing; nothing if those are too many."""
    kept = (exchange.answer or b"") if is_answer else exchange.request
    missing = (exchange.answer_bytes if is_answer else exchange.request_bytes) - len(kept)
    return (pack(">i", len(kept) + missing) + kept, missing) if kept and missing <= MOST_MISSING_BYTES else (b"", 0)


class _Flow:
    """The packets of one connection."""

    def __init__(self, exchange: Exchange) -> None:
        host, _, port = exchange.peer.rpartition(":")
        self._client = _address(host), int(port)
        server = _address(exchange.local_address[0])
        if len(server) != len(self._client[0]):
            server = bytes(3) + b"\x01" if len(self._client[0]) == 4 else bytes(15) + b"\x01"
        self._server = server, KAFKA_PORT
        self._sequences = [_FIRST_SEQUENCE, _FIRST_SEQUENCE]

    def opening(self) -> Iterator[bytes]:
        """The handshake."""
        sequences = self._sequences
        yield self._packet(False, _SYN, b"", acknowledged=0)
        sequences[0] += 1
        yield self._packet(True, _SYN | _ACK, b"")
        sequences[1] += 1
        yield self._packet(False, _ACK, b"")

    def data(self, content: bytes, missing: int, from_server: bool) -> Iterator[tuple[bytes, int]]:
        """The segments of a frame of which so many bytes are missing, each with how many its end lacks."""
        whole = len(content) + missing
        for start in range(0, whole, SEGMENT_BYTES):
            part = content[start : start + SEGMENT_BYTES]
            size = min(SEGMENT_BYTES, whole - start)
            yield self._packet(from_server, _ACK | _PUSH, part, size - len(part)), size - len(part)
            self._sequences[from_server] = (self._sequences[from_server] + size) & 0xFFFFFFFF

    def _packet(
        self, from_server: bool, flags: int, content: bytes, missing: int = 0, acknowledged: int | None = None
    ) -> bytes:
        (source, source_port), (target, target_port) = (
            (self._server, self._client) if from_server else (self._client, self._server)
        )
        if acknowledged is None:
            acknowledged = self._sequences[not from_server]
        fields = [
            source_port,
            target_port,
            self._sequences[from_server],
            acknowledged,
            _HEADER_WORDS << 4,
            flags,
            _WINDOW,
            0,
            0,
        ]
        length = _TCP.size + len(content) + missing
        if len(source) == 4:
            pseudo = source + target + pack(">BBH", 0, _TCP_PROTOCOL, length)
            header = pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, _TCP_PROTOCOL, 0) + source + target
            header = header[:10] + pack(">H", checksum(header)) + header[12:]
        else:
            pseudo = source + target + pack(">IHBB", length, 0, 0, _TCP_PROTOCOL)
            header = pack(">IHBB", 0x60000000, length, _TCP_PROTOCOL, 64) + source + target
        # The checksum is that of zeros in place of what is missing.
        fields[7] = checksum(pseudo + _TCP.pack(*fields) + content)
        return header + _TCP.pack(*fields) + content


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071) of a header whose own field of it is zero."""
    if len(data) % 2:
        data += b"\0"
    # The sum of 16-bit words with end-around carry is the number modulo 65535.
    rest = int.from_bytes(data, "big") % 0xFFFF
    return 0xFFFF - rest if rest or not any(data) else 0


def _address(host: str) -> bytes:
    """The bytes of an address; that of this machine for a name."""
    from ipaddress import ip_address

    try:
        return ip_address(host.strip("[]").partition("%")[0]).packed
    except ValueError:
        return b"\x7f\0\0\x01"
