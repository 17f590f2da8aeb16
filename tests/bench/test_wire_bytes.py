"""The hand-packed requests equal bytes written by hand, and kafka-python reads them."""

import struct
import warnings

import pytest

from pykafkad.wire import messages
from tests.bench import wire_bytes

with warnings.catch_warnings():
    # kafka-python reads its schemas with a function that the standard library deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import MemoryRecords

TOPIC_ID = bytes(range(16))


def test_produce_7_is_byte_for_byte_what_the_protocol_says():
    """Produce 7: header 1, no transaction, acks -1, timeout 30 000, one topic, one partition, the batch."""
    template = wire_bytes.produce(7, "t", TOPIC_ID, 3, b"BATCH")
    expected = (
        "0000 0007 00000000 0005 62656e6368 ffff ffff 00007530 00000001 0001 74 00000001 00000003 00000005 4241544348"
    )
    body = bytes.fromhex(expected)
    assert template.request == struct.pack(">i", len(body)) + body


def test_fetch_11_is_byte_for_byte_what_the_protocol_says():
    """Fetch 11 without a session: replica -1, wait 500, min 1, no limit, uncommitted, session 0 epoch -1."""
    template = wire_bytes.fetch(11, "t", TOPIC_ID, 3, 9, max_bytes=4096)
    expected = (
        "0001 000b 00000000 0005 62656e6368 ffffffff 000001f4 00000001 7fffffff 00 00000000 ffffffff 00000001 0001 74"
        "00000001 00000003 ffffffff 0000000000000009 ffffffffffffffff 00001000 00000000 0000"
    )
    body = bytes.fromhex(expected)
    assert template.request == struct.pack(">i", len(body)) + body


def test_flexible_forms_carry_the_topic_id():
    """Produce 13 and Fetch 17 name a topic by its id, in compact arrays that end in tag sections."""
    produce = wire_bytes.produce(13, "t", TOPIC_ID, 3, b"BATCH").request
    assert produce.endswith(b"\2" + TOPIC_ID + b"\2" + struct.pack(">i", 3) + b"\6BATCH\0\0\0")
    fetch = wire_bytes.fetch(17, "t", TOPIC_ID, 3, 9, max_bytes=4096).request
    assert fetch.endswith(
        b"\2" + TOPIC_ID + b"\2" + struct.pack(">iiqiqi", 3, -1, 9, -1, -1, 4096) + b"\0\0" + b"\1\1\0"
    )


def test_the_checked_positions_of_a_produce_answer():
    """In a Produce 7 answer the error code follows the partition index."""
    template = wire_bytes.produce(7, "topic", TOPIC_ID, 0, b"")
    answer = struct.pack(">iii", 0, 0, 1) + wire_bytes.string("topic") + struct.pack(">iih", 1, 0, 77)
    assert struct.unpack_from(">h", answer, template.error_at) == (77,)


def test_the_checked_positions_of_a_fetch_answer():
    """In a Fetch 11 answer the batch follows offsets, aborted transactions, the preferred replica and a size."""
    template = wire_bytes.fetch(11, "topic", TOPIC_ID, 0, 42, max_bytes=1)
    answer = struct.pack(">iiihii", 0, 0, 0, 0, 0, 1) + wire_bytes.string("topic")
    answer += struct.pack(">iihqqqiii", 1, 0, 55, 1, 1, 0, -1, -1, 100) + struct.pack(">q", 42)
    assert struct.unpack_from(">h", answer, template.error_at) == (55,)
    assert struct.unpack_from(">q", answer, template.value_at) == (template.value,)


@pytest.mark.parametrize("size_bytes", [300, 1024, 4096, 16384, 65536])
def test_a_batch_has_the_size_asked_for_and_another_codec_reads_it(size_bytes):
    """kafka-python accepts the checksum and reads every record."""
    encoded = wire_bytes.batch_of_size(size_bytes, 1_700_000_000_000)
    assert len(encoded) == size_bytes
    batch = MemoryRecords(encoded).next_batch()
    assert batch.validate_crc()
    records = list(batch)
    assert len(records) == wire_bytes.record_count(encoded)
    assert [record.offset for record in records] == list(range(len(records)))
    assert {record.timestamp for record in records} == {1_700_000_000_000}


def test_varints_are_zigzag_base_128():
    """The protocol's examples: 300, and the small signed numbers."""
    assert wire_bytes.unsigned_varint(300) == b"\xac\x02"
    assert [wire_bytes.varint(number) for number in (0, -1, 1, -2)] == [b"\0", b"\1", b"\2", b"\3"]


def test_a_create_topics_answer_is_parsed():
    """CreateTopics 7: ids and error codes, past configs and tagged fields."""
    topic = wire_bytes.compact_string("a") + TOPIC_ID + struct.pack(">h", 36) + wire_bytes.compact_string("there")
    topic += struct.pack(">ih", 1, 1) + b"\2" + wire_bytes.compact_string("k") + b"\0" + b"\0\5\0" + b"\0"
    topic += b"\1\0\2\0\1"
    answer = struct.pack(">i", 0) + b"\0" + struct.pack(">i", 0) + b"\2" + topic + b"\0"
    assert wire_bytes.parse_create_topics(answer) == [("a", TOPIC_ID, 36, "there")]


def test_a_metadata_answer_has_each_partitions_error():
    """Metadata 8: partitions with their error codes; the topic's own error as partition -1."""
    answer = struct.pack(">iii", 0, 0, 1) + struct.pack(">i", 1) + wire_bytes.string("h") + struct.pack(">ih", 9092, -1)
    answer += struct.pack(">hi", -1, 1) + struct.pack(">i", 2)
    partition = struct.pack(">hiii", 5, 0, -1, 0) + struct.pack(">iiiii", 1, 1, 1, 1, 0)
    answer += struct.pack(">h", 0) + wire_bytes.string("a") + struct.pack(">?i", False, 1) + partition + bytes(4)
    answer += struct.pack(">h", 3) + wire_bytes.string("b") + struct.pack(">?i", False, 0) + bytes(4)
    assert wire_bytes.parse_metadata(answer) == {"a": {0: 5}, "b": {-1: 3}}
    ports, topics = wire_bytes.parse_placement(answer)
    assert ports == {1: 9092} and topics == {"a": {0: (5, -1, (1,))}, "b": {-1: (3, -1, ())}}


def test_the_leader_of_the_quorum_is_asked_for():
    """DescribeQuorum 0, as another codec has it."""
    asked = messages.decode(
        messages.DescribeQuorumRequest, 0, wire_bytes.describe_quorum()[4 + 8 + 2 + len(wire_bytes.CLIENT_ID) + 1 :]
    )
    assert [(each.topic_name, [row.partition_index for row in each.partitions]) for each in asked.topics] == [
        ("__cluster_metadata", [0])
    ]
    response = messages.DescribeQuorumResponse
    for code, leader in ((0, 3), (6, -1)):
        row = response.PartitionData(partition_index=0, error_code=code, leader_id=3)
        answer = response(topics=[response.TopicData(topic_name="__cluster_metadata", partitions=[row])])
        assert wire_bytes.parse_quorum_leader(bytes(5) + messages.encode(answer, 0)) == leader


def test_a_consumer_continues_after_the_last_whole_batch():
    """Kafka may send a part of the last batch, which is fetched again."""
    template = wire_bytes.fetch(11, "topic", TOPIC_ID, 0, 0, max_bytes=1)
    batches = b""
    for base_offset in (5, 5 + 2, 5 + 4):
        batches += (
            struct.pack(">q", base_offset) + wire_bytes.batch([wire_bytes.record(i, b"v") for i in (0, 1)], 0)[8:]
        )
    answer = bytes(template.value_at - 4) + batches[:-1]
    assert wire_bytes.next_offset(template, answer) == 9
    assert wire_bytes.next_offset(template, answer[: template.value_at + 10]) is None


def test_requests_of_administrators_are_valid():
    """The requests decode to the intended values, and the error code is at the checked position."""
    names = [f"topic-{number}" for number in range(200)]
    resources = [(wire_bytes.BROKER_RESOURCE, "1"), *((wire_bytes.TOPIC_RESOURCE, name) for name in names)]
    described = messages.DescribeConfigsResponse
    pages = messages.DescribeTopicPartitionsResponse
    created = messages.CreateTopicsResponse
    for template, request, version, answer in (
        (
            wire_bytes.describe_configs(resources),
            messages.DescribeConfigsRequest,
            4,
            described(results=[described.DescribeConfigsResult(error_code=42)] * 201),
        ),
        (
            wire_bytes.describe_topic_partitions(names, "topic-7", 5, 2000),
            messages.DescribeTopicPartitionsRequest,
            0,
            pages(topics=[pages.DescribeTopicPartitionsResponseTopic(error_code=42)]),
        ),
        (
            wire_bytes.validate_topics(names),
            messages.CreateTopicsRequest,
            7,
            created(topics=[created.CreatableTopicResult(name=name, error_code=42) for name in names]),
        ),
        (wire_bytes.metadata_of(names), messages.MetadataRequest, 12, None),
    ):
        asked = messages.decode(request, version, template.request[4 + 8 + 2 + len(wire_bytes.CLIENT_ID) + 1 :])
        if answer is not None:
            whole = bytes(9) + messages.encode(answer, version)
            assert struct.unpack_from(">h", whole, template.error_at) == (42,)
        if request is messages.CreateTopicsRequest:
            assert asked.validate_only and len(asked.topics) == 200
        elif request is messages.DescribeTopicPartitionsRequest:
            assert (asked.cursor.topic_name, asked.cursor.partition_index, asked.response_partition_limit) == (
                "topic-7",
                5,
                2000,
            )
        elif request is messages.DescribeConfigsRequest:
            assert (
                asked.include_synonyms and asked.include_documentation and asked.resources[0].configuration_keys is None
            )
        else:
            assert [topic.name for topic in asked.topics] == names and not asked.allow_auto_topic_creation
