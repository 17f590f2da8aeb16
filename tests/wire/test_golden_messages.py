"""Messages encode to the bytes that Kafka's protocol description prescribes.

The bytes are written by hand from the description.
"""

from __future__ import annotations

import pytest

from pykafkad.wire import messages

GOLDEN = [
    (
        "HeartbeatRequest",
        0,
        dict(group_id="g", generation_id=7, member_id="m"),
        "0001 67  00000007  0001 6d",
    ),
    (
        "HeartbeatRequest",
        3,
        dict(group_id="g", generation_id=7, member_id="m"),
        "0001 67  00000007  0001 6d  ffff",
    ),
    (
        "HeartbeatRequest",
        4,
        dict(group_id="g", generation_id=7, member_id="m", group_instance_id="i"),
        "02 67  00000007  02 6d  02 69  00",
    ),
    (
        # The cluster id is tagged: tag 0, size 2, compact string "c". The replica state is the default and so left out.
        "FetchRequest",
        15,
        dict(max_wait_ms=1, min_bytes=2, max_bytes=3, isolation_level=1, cluster_id="c"),
        "00000001 00000002 00000003 01 00000000 ffffffff  01  01  01  01 00 02 02 63",
    ),
    (
        "FetchRequest",
        15,
        dict(replica_state=messages.FetchRequest.ReplicaState(replica_id=5, replica_epoch=6), cluster_id="c"),
        "00000000 00000000 7fffffff 00 00000000 ffffffff  01  01  01  "
        "02  00 02 02 63  01 0d 00000005 0000000000000006 00",
    ),
    (
        "ProduceResponse",
        9,
        dict(
            responses=[
                messages.ProduceResponse.TopicProduceResponse(
                    name="t",
                    partition_responses=[
                        messages.ProduceResponse.PartitionProduceResponse(index=1, base_offset=5, log_start_offset=2)
                    ],
                )
            ],
            throttle_time_ms=9,
        ),
        "02 02 74  02 00000001 0000 0000000000000005 ffffffffffffffff 0000000000000002 01 00 00  00  00000009 00",
    ),
    (
        # A nullable struct has a byte before it: -1 for null, 1 for present.
        "ConsumerGroupHeartbeatResponse",
        0,
        dict(
            member_id="m",
            member_epoch=1,
            assignment=messages.ConsumerGroupHeartbeatResponse.Assignment(
                topic_partitions=[
                    messages.ConsumerGroupHeartbeatResponse.TopicPartitions(
                        topic_id=bytes(range(16)), partitions=[0, 1]
                    )
                ]
            ),
        ),
        "00000000 0000 00 02 6d 00000001 00000000  "
        "01 02 000102030405060708090a0b0c0d0e0f 03 00000000 00000001 00 00  00",
    ),
    ("ConsumerGroupHeartbeatResponse", 0, {}, "00000000 0000 00 00 00000000 00000000 ff 00"),
    ("OffsetCommitKey", 0, dict(group="g", topic="t", partition=3), "0001 67 0001 74 00000003"),
    ("TopicRecord", 0, dict(name="t", topic_id=bytes(15) + b"\1"), "02 74 0000000000000000 0000000000000001 00"),
    ("EndTxnMarker", 0, dict(coordinator_epoch=4), "00000004"),
    (
        "RequestHeader",
        2,
        dict(request_api_key=18, request_api_version=3, correlation_id=1, client_id="c"),
        "0012 0003 00000001 0001 63 00",
    ),
    (
        "JoinGroupRequest",
        1,
        dict(
            group_id="g",
            session_timeout_ms=1,
            rebalance_timeout_ms=2,
            protocol_type="p",
            protocols=[messages.JoinGroupRequest.JoinGroupRequestProtocol(name="n", metadata=b"\x09\x08")],
        ),
        "0001 67 00000001 00000002 0000 0001 70 00000001 0001 6e 00000002 0908",
    ),
]


@pytest.mark.parametrize(("name", "version", "fields", "text"), GOLDEN, ids=lambda value: str(value)[:30])
def test_golden_bytes(name: str, version: int, fields: dict[str, object], text: str) -> None:
    """Encoding gives the bytes, and decoding the bytes gives the same message."""
    cls = messages.stored_class(name)
    message = cls(**fields)
    assert messages.encode(message, version).hex() == text.replace(" ", "")
    assert messages.decode(cls, version, bytes.fromhex(text)) == message
