"""ApiVersions: the APIs that a broker lists, and its answer to a version it does not know."""

from __future__ import annotations

import struct
from typing import Any

from compat_tests.scenarios.exchange import CLOSED, OFFERED, Exchange, versions
from compat_tests.scenarios.registry import scenario
from pykafkad.handlers import table
from pykafkad.wire import messages

UNSUPPORTED_VERSION = 35
# The APIs that pykafkad promises to serve; the rest of Kafka's list is not compared.
PROMISED = {
    *range(4),
    *range(8, 52),
    55,
    57,
    60,
    61,
    64,
    65,
    66,
    68,
    69,
    *range(74, 82),
    *range(83, 93),
}

# A feature is listed and finalized once its APIs are served, because clients rely on it.
PROMISED_FEATURES = (
    "eligible.leader.replicas.version",
    "group.version",
    "kraft.version",
    "metadata.version",
    "share.version",
    "streams.version",
    "transaction.version",
)


def of_promised(answer: Any) -> Any:
    """The answer reduced to the APIs and features that pykafkad promises."""
    answer.api_keys = [row for row in answer.api_keys if row.api_key in PROMISED]
    answer.supported_features = [row for row in answer.supported_features if row.name in PROMISED_FEATURES]
    answer.finalized_features = [row for row in answer.finalized_features if row.name in PROMISED_FEATURES]
    return answer


@scenario
def served_apis(broker: Exchange) -> None:
    """Every version lists the same APIs; features are listed from version 3 on."""
    for version in versions("ApiVersions"):
        fields = {"client_software_name": "scenario", "client_software_version": "1.0"}
        answer = of_promised(broker.ask("ApiVersions", version, **fields))
        assert answer.error_code == 0
        assert OFFERED.get() is not None or {row.api_key for row in answer.api_keys} == PROMISED


@scenario
def bad_software_names(broker: Exchange) -> None:
    """Names and versions outside [a-zA-Z0-9](?:[a-zA-Z0-9\\-.]*[a-zA-Z0-9])? are INVALID_REQUEST (KIP-511)."""
    for version in (3, 4):
        for name, software_version in (
            ("", "1"),
            ("a", ""),
            ("a b", "1"),
            ("-a", "1"),
            ("a-", "1"),
            ("a.b-c", "1.0-x"),
        ):
            fields = {"client_software_name": name, "client_software_version": software_version}
            of_promised(broker.ask("ApiVersions", version, note=f"{name!r} {software_version!r}", **fields))


@scenario
def version_above_ours(broker: Exchange) -> None:
    """A version that is too new is answered in version 0, with error 35 and the range of ApiVersions alone."""
    # Kafka 4.4 has version 5.
    for version in (6, 99, 32767):
        connection = broker.connect()
        # The body is never read, so it may hold anything.
        frame = struct.pack(">hhih", 18, version, 7, 1) + b"c" + b"\0" + b"\xff" * 20
        connection.socket.sendall(struct.pack(">i", len(frame)) + frame)
        connection.expect("ApiVersions", 0, 7)
        answer = connection.receive()
        broker.record(f"ApiVersions v{version}", answer, 0)
        assert answer.error_code == UNSUPPORTED_VERSION
        assert [row.api_key for row in answer.api_keys] == [18]
        # The connection stays open.
        of_promised(broker.ask("ApiVersions", 0, on=connection, note="afterwards"))


@scenario
def keys_of_controllers(broker: Exchange) -> None:
    """APIs between controllers and removed APIs get no answer on a broker's listener: the connection closes."""
    for row in table.UNANSWERED:
        for version in (0, 1, 2, 3, 4):
            connection = broker.connect()
            frame = struct.pack(">hhih", row.key, version, 7, 1) + b"c" + b"\0" * 20
            connection.socket.sendall(struct.pack(">i", len(frame)) + frame)
            connection.expect(row.name, version, 7)
            answer = connection.receive()
            broker.record(f"{row.name} v{version}", answer, version)
            assert answer == CLOSED
            connection.socket.close()


@scenario
def null_client_id(broker: Exchange) -> None:
    """A null client id is allowed."""
    for version in (0, 3):
        connection = broker.connect()
        body = messages.encode(
            messages.ApiVersionsRequest(client_software_name="a", client_software_version="b"), version
        )
        tags = b"\0" if version == 3 else b""
        frame = struct.pack(">hhih", 18, version, 9, -1) + tags + body
        connection.socket.sendall(struct.pack(">i", len(frame)) + frame)
        connection.expect("ApiVersions", version, 9)
        answer = connection.receive()
        broker.record(f"ApiVersions v{version}", of_promised(answer), version)
        assert answer.error_code == 0


@scenario
def unknown_tags(broker: Exchange) -> None:
    """Unknown tagged fields are skipped: in the header, at the end of a body, and in a nested struct."""
    tags = b"\2" + b"\5\3abc" + b"\x64\0"
    body = messages.encode(messages.ApiVersionsRequest(client_software_name="a", client_software_version="b"), 3)
    connection = broker.connect()
    # The last byte of a flexible body is its count of tagged fields.
    frame = struct.pack(">hhih", 18, 3, 11, 1) + b"c" + tags + body[:-1] + tags
    connection.socket.sendall(struct.pack(">i", len(frame)) + frame)
    connection.expect("ApiVersions", 3, 11)
    broker.record("ApiVersions v3", of_promised(connection.receive()), 3)
    name = broker.topic()
    topic = bytes((len(name) + 1,)) + name.encode() + tags
    frame = struct.pack(">hhih", 3, 9, 12, 1) + b"c" + tags + b"\2" + topic + b"\0\0\0" + tags
    connection.socket.sendall(struct.pack(">i", len(frame)) + frame)
    connection.expect("Metadata", 9, 12)
    broker.record("Metadata v9", connection.receive(), 9)
