"""The message classes and the compiled codec: round trips of every version, limits, and malformed bytes."""

from __future__ import annotations

import copy
import os
import random
import subprocess
import sys
import traceback
import tracemalloc

import pytest

from pykafkad.errors import ProtocolError
from pykafkad.wire import compiler, messages, notation, primitives, stub
from tests import seeds
from tests.rows import in_turn
from tests.wire.values import Values, every_version

NAMES = messages.all_names()
SOME_NAMES = seeds.sampled(NAMES, 5)


# Round trips of every message and version.


@in_turn("name", NAMES)
@pytest.mark.long
def test_every_version_round_trips(name):
    """Values stay the same through encoding and decoding, also with bytes around them.

    Decoding returns the end position.
    """
    cls = messages.stored_class(name)
    for version in messages.known_versions(cls):
        for seed in seeds.sampled(range(3), 3):
            message = Values((name, version, seed)).message(cls, version)
            data = bytes(messages.encode(message, version))
            decoded, end = messages.decoder(cls, version)(b"##" + data + b"##", 2)
            assert decoded == message
            assert end == len(data) + 2
            assert messages.encode(decoded, version) == data
        assert messages.decode(cls, version, messages.encode(cls(), version)) == cls()


def drain(generator):
    """The result of a generator, and its number of yields."""
    count = 0
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            return stop.value, count
        count += 1


@in_turn("name", SOME_NAMES)
def test_the_incremental_form_gives_the_same_result(name):
    """The generators for long messages give the results of the plain functions."""
    cls = messages.stored_class(name)
    versions = messages.known_versions(cls)
    for version in dict.fromkeys((versions[0], versions[-1])):
        message = Values((name, version, 1)).message(cls, version)
        data = bytes(messages.encode(message, version))
        assert drain(messages.incremental(cls, version, "decode")(data, 0))[0] == (message, len(data))
        chunks = [bytearray(b"#")]
        drain(messages.incremental(cls, version, "encode")(message, chunks))
        assert b"".join(chunks) == b"#" + data


def test_the_incremental_form_yields_for_each_element():
    request = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="t")] * 50)
    assert drain(messages.incremental(type(request), 12, "encode")(request, [bytearray()]))[1] > 50
    assert drain(messages.incremental(type(request), 12, "decode")(messages.encode(request, 12), 0))[1] > 50


def test_all_apis_of_kafka_are_there():
    """Kafka 4.3.1 has the API keys 0 to 92. Keys 4 to 7 have no versions left."""
    rows = messages.all_apis()
    assert [key for key, _, _, _ in rows] == [key for key in range(93) if key not in (4, 5, 6, 7)]
    assert len(NAMES) == len(set(NAMES))
    for key, name, versions, flexible in rows:
        request, response = messages.request_class(key), messages.response_class(key)
        assert (request.__name__, response.__name__) == (name + "Request", name + "Response")
        assert messages.valid_versions(request) == messages.valid_versions(response) == versions
        assert messages.flexible_from(request) == messages.flexible_from(response) == flexible
    assert rows[0] == (0, "Produce", range(3, 14), 9)


def test_stored_types_lead_to_classes():
    """The record type in the key or the frame of an internal log's record gives its class."""
    groups = messages.stored_types("stored_groups.txt")
    assert groups[1] == {"Key": messages.OffsetCommitKey, "Value": messages.OffsetCommitValue}
    assert groups[2]["Value"] is messages.GroupMetadataValue
    assert messages.stored_types("stored_metadata.txt")[2] == {"Record": messages.TopicRecord}
    assert messages.record_type(messages.PartitionRecord) == 3
    with pytest.raises(TypeError, match="no type number"):
        messages.record_type(messages.EndTxnMarker)


# Classes.


def test_messages_are_constructed_compared_and_printed():
    """Unset fields have the schema's default. Equality is by value. The text shows the fields that are not default."""
    first = messages.FetchRequest(max_wait_ms=5, topics=[messages.FetchRequest.FetchTopic(topic="t")])
    assert first.max_bytes == 0x7FFFFFFF and first.session_epoch == -1 and first.cluster_id is None
    assert first == messages.FetchRequest(max_wait_ms=5, topics=[messages.FetchRequest.FetchTopic(topic="t")])
    assert first != messages.FetchRequest(max_wait_ms=6) and first != 5
    assert repr(first) == "FetchRequest(max_wait_ms=5, topics=[FetchRequest.FetchTopic(topic='t')])"
    assert messages.FetchRequest().topics is not messages.FetchRequest().topics
    with pytest.raises(TypeError):
        messages.FetchRequest(nothing=1)
    with pytest.raises(AttributeError):
        first.nothing = 1


def test_a_shared_default_struct_cannot_be_changed():
    """All messages share one default instance, so changing it would change them all."""
    partition = messages.FetchResponse.PartitionData()
    with pytest.raises(AttributeError, match="shared default"):
        partition.current_leader.leader_id = 3
    member = messages.ConsumerGroupDescribeResponse.Member()
    for change in (member.assignment.topic_partitions.append, member.assignment.topic_partitions.extend):
        with pytest.raises(AttributeError, match="shared default"):
            change([])
    assert copy.deepcopy(member) == member and copy.copy(partition) == partition
    partition.current_leader = messages.FetchResponse.LeaderIdAndEpoch(leader_id=3)
    assert messages.FetchResponse.PartitionData().current_leader.leader_id == -1


def test_unknown_names_and_versions_are_refused():
    """The error names what does not exist."""
    with pytest.raises(AttributeError, match="UpdateMetadataRequest"):
        messages.UpdateMetadataRequest  # noqa: B018
    with pytest.raises(ProtocolError, match="no message is named"):
        messages.stored_class("Nothing")
    for key in (-1, 4, 95):
        with pytest.raises(ProtocolError, match="no API has key"):
            messages.request_class(key)
    with pytest.raises(ProtocolError, match="FetchRequest has versions 0-18, not -1"):
        messages.decoder(messages.FetchRequest, -1)
    with pytest.raises(ProtocolError, match="versions 0-18, not 19"):
        messages.encoder(messages.FetchRequest, 19)
    with pytest.raises(TypeError, match="not a message class"):
        messages.valid_versions(int)


# Encoding.


def test_a_value_that_the_version_does_not_carry_is_an_error():
    """A field with `drop` is left out instead."""
    with pytest.raises(ProtocolError, match="FetchRequest.forgotten_topics_data is set"):
        messages.encode(messages.FetchRequest(forgotten_topics_data=[messages.FetchRequest.ForgottenTopic()]), 4)
    dropped = messages.decode(
        messages.FetchRequest, 4, messages.encode(messages.FetchRequest(session_id=4, rack_id="r"), 4)
    )
    assert dropped.session_id == 0 and dropped.rack_id == ""


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (dict(group_id=None), "HeartbeatRequest v0 cannot be encoded"),
        (dict(generation_id=2**31), "HeartbeatRequest v0 cannot be encoded"),
        (dict(generation_id="1"), "HeartbeatRequest v0 cannot be encoded"),
        (dict(group_id="\ud800"), "HeartbeatRequest v0 cannot be encoded"),
        (dict(group_id="x" * 32768), "HeartbeatRequest.group_id has 32768 bytes"),
    ],
)
def test_values_of_the_wrong_type_are_errors(fields, reason):
    """The `ProtocolError` names the message."""
    with pytest.raises(ProtocolError, match=reason):
        messages.encode(messages.HeartbeatRequest(**fields), 0)


def test_a_uuid_must_have_16_bytes():
    """`struct` would pad or cut other lengths."""
    with pytest.raises(ProtocolError, match="topic_id"):
        messages.encode(messages.TopicRecord(topic_id=b"short"), 0)


class _Slice:
    def __init__(self, size: int) -> None:
        self.chunk_size = size


def test_a_file_slice_becomes_a_chunk_of_its_own():
    """The encoder writes the slice's length but does not read its bytes."""
    response = messages.FetchResponse
    values = (_Slice(300), b"abc", None, _Slice(0))
    data = [response.PartitionData(partition_index=index, records=records) for index, records in enumerate(values)]
    message = response(responses=[response.FetchableTopicResponse(topic="t", partitions=data)])
    chunks = [bytearray(b"head")]
    messages.encoder(response, 12)(message, chunks)
    assert [type(chunk) for chunk in chunks] == [bytearray, _Slice, bytearray]
    assert chunks[0].startswith(b"head") and chunks[0].endswith(bytes([0xAD, 0x02])), "length 300 + 1 as a varint"
    joined = bytes(chunks[0][4:]) + b"\7" * 300 + bytes(chunks[2])
    decoded = messages.decode(response, 12, joined)
    assert [each.records for each in decoded.responses[0].partitions] == [b"\7" * 300, b"abc", None, b""]


# Decoding.


def test_records_decode_to_a_view_of_the_frame():
    """Records are not copied. The view is writable when the buffer is."""
    request = messages.ProduceRequest
    topic = request.TopicProduceData(name="t", partition_data=[request.PartitionProduceData(records=b"12345")])
    frame = messages.encode(request(topic_data=[topic]), 9)
    records = messages.decode(request, 9, frame).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview) and not records.readonly
    records[0] = 0x39
    assert b"92345" in frame


def test_invalid_utf8_is_replaced():
    """Each invalid byte becomes U+FFFD, as in Java."""
    assert messages.decode(messages.HeartbeatRequest, 0, b"\0\2\xffa" + bytes(4) + b"\0\0").group_id == "\ufffda"


def test_unknown_tags_are_skipped_in_every_struct():
    """A newer peer may send unknown tagged fields (KIP-482), with long tag numbers and sizes too."""
    plain = "02 67 00000007 02 6d 00".replace(" ", "")
    tags = "02  05 03 aabbcc  ff01 8101" + "00" * 129
    data = bytes.fromhex((plain + tags).replace(" ", ""))
    assert messages.decode(messages.HeartbeatRequest, 4, data) == messages.HeartbeatRequest(
        group_id="g", generation_id=7, member_id="m"
    )
    partition = "00" * 30 + "00" + "ffffffff" + "00" + "01 07 01 ff"
    nested = bytes.fromhex("00000000 0000 00000000  02 02 74 02" + partition + "00 00")
    assert messages.decode(messages.FetchResponse, 12, nested).responses[0].partitions == [
        messages.FetchResponse.PartitionData(last_stable_offset=0, log_start_offset=0, aborted_transactions=None)
    ]


@pytest.mark.parametrize(
    ("name", "version", "text", "reason"),
    [
        ("HeartbeatRequest", 0, "ffff 00000007 0001 6d", "group_id is null"),
        ("HeartbeatRequest", 4, "00 00000007 02 6d 00 00", "group_id is null"),
        ("HeartbeatRequest", 0, "7fff 67", "group_id claims 32767"),
        ("HeartbeatRequest", 4, "ffffffff0f 67", "group_id has 4294967294 bytes; 32767"),
        ("HeartbeatRequest", 4, "ffffffffff01 67", "longer than five bytes"),
        ("HeartbeatRequest", 4, "ffffffff7f 67", "32 bits"),
        ("HeartbeatRequest", 4, "02 67 00000007 02 6d 00 01 05 7f", "claims 127"),
        ("FetchRequest", 12, "00" * 25 + "00", "topics is null"),
        ("FetchRequest", 15, "00" * 21 + "0101 01 01 00 03 02 63 00", "declares its end"),
        ("OffsetFetchRequest", 1, "0000 ffffffff", "topics is null"),
        ("MetadataResponse", 0, "7fffffff", "elements"),
        ("MetadataResponse", 0, "00020000 00", "claims"),
    ],
)  # fmt: skip
def test_errors_of_malformed_bytes_name_the_field(name, version, text, reason):
    """Forbidden nulls, lengths beyond the message, endless varints: each error names the field and the position."""
    with pytest.raises(ProtocolError, match=reason):
        messages.decoder(messages.stored_class(name), version)(bytes.fromhex(text.replace(" ", "")), 0)


@in_turn("name", SOME_NAMES)
def test_a_truncated_message_is_an_error(name):
    """A message that ends early is a `ProtocolError` at every possible end."""
    cls = messages.stored_class(name)
    for version in messages.known_versions(cls):
        data = bytes(messages.encode(Values((name, version)).message(cls, version), version))
        decode = messages.decoder(cls, version)
        for end in range(0, len(data), 1 + len(data) // 100):
            with pytest.raises(ProtocolError):
                decode(data[:end], 0)


def test_a_truncated_large_message_is_an_error_at_every_byte():
    """No position is left out, for one message of each kind of length."""
    for version in (4, 12, 18):
        data = bytes(messages.encode(Values("whole").message(messages.FetchRequest, version), version))
        for end in range(len(data)):
            with pytest.raises(ProtocolError):
                messages.decoder(messages.FetchRequest, version)(data[:end], 0)


@in_turn("name", SOME_NAMES)
def test_flipped_bytes_give_a_value_or_a_protocol_error(name):
    """Damage anywhere decodes to some value or raises `ProtocolError`, never another exception."""
    cls = messages.stored_class(name)
    dice = random.Random(name)
    for version in messages.known_versions(cls):
        data = messages.encode(Values((name, version)).message(cls, version), version)
        decode = messages.decoder(cls, version)
        for _ in range(20 if data else 0):
            damaged = bytearray(data)
            for _ in range(dice.choice((1, 1, 4))):
                damaged[dice.randrange(len(damaged))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
            try:
                decode(damaged, 0)
            except ProtocolError:
                pass


def test_false_lengths_allocate_nothing():
    """A few bytes that claim millions of elements or gigabytes are refused before allocating."""
    lies = [
        (messages.MetadataResponse, 0, "7fffffff"),
        (messages.MetadataResponse, 9, "00000000 ffffffff0f"),
        (messages.FetchRequest, 4, "00" * 17 + "000fffff"),
        (messages.SyncGroupRequest, 4, "01 00000000 01 00 ffffffff0f"),
        (messages.ProduceRequest, 9, "00 0001 00000000 02 02 74 02 00000000 ffffffff0f"),
        (messages.OffsetFetchRequest, 1, "0000 00000001 0000 000fffff"),
    ]
    for cls, version, text in lies:
        decode = messages.decoder(cls, version)
        data = bytes.fromhex(text.replace(" ", ""))
        tracemalloc.start()
        try:
            with pytest.raises(ProtocolError):
                decode(data, 0)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 100_000, (cls, peak)


def test_the_elements_of_a_message_are_limited():
    """All arrays of a message together have at most `MAX_ELEMENTS`, even where the bytes would allow more."""
    most = primitives.MAX_ELEMENTS
    decode = messages.decoder(messages.SyncGroupRequest, 0)
    head = b"\0\0" + bytes(4) + b"\0\0"
    message, _ = decode(head + (1000).to_bytes(4, "big") + bytes(6 * 1000), 0)
    assert len(message.assignments) == 1000
    with pytest.raises(ProtocolError, match=f"more than {most} elements"):
        decode(head + (most + 1).to_bytes(4, "big") + bytes(6 * (most + 1)), 0)
    # Each of the two arrays is within the limit, but not both together.
    offsets = messages.decoder(messages.OffsetFetchRequest, 1)
    half = most // 2
    partitions = half.to_bytes(4, "big") + bytes(4 * half)
    with pytest.raises(ProtocolError, match="elements"):
        offsets(b"\0\0" + (2).to_bytes(4, "big") + 2 * (b"\0\0" + partitions), 0)


def test_only_decode_refuses_bytes_after_the_message():
    """`decoder` functions return the end position. `decode` requires that it is the end of the buffer."""
    data = bytes(messages.encode(messages.HeartbeatRequest(), 0))
    assert messages.decoder(messages.HeartbeatRequest, 0)(data + b"x", 0)[1] == len(data)
    with pytest.raises(ProtocolError, match="1 bytes are left"):
        messages.decode(messages.HeartbeatRequest, 0, data + b"x")


# The rest of the codec.


def test_tracebacks_show_the_compiled_lines():
    """The traceback of a compiled function shows the source line, although no file holds it."""
    try:
        messages.encode(messages.HeartbeatRequest(generation_id="x"), 0)
    except ProtocolError as error:
        text = "".join(traceback.format_exception(error))
    assert "HeartbeatRequest v0 encode" in text and "out += pack_ih(m0.generation_id, len(v2))" in text


def test_source_returns_the_text_of_a_compiled_function():
    """`describe-apis --source` prints the function that runs."""
    assert "unpack_from_iiqiqiB" in compiler.source(messages.FetchRequest, 12, "decode")
    assert compiler.source(messages.FetchRequest, 12, "encode").startswith("def encode(m0, chunks):")
    with pytest.raises(ValueError, match="direction"):
        compiler.source(messages.FetchRequest, 12, "read")


def test_the_stub_is_fresh():
    """`messages.pyi` is what `python -m pykafkad.wire.stub` writes now."""
    with open(stub.PATH, encoding="utf-8") as stream:
        assert stream.read() == stub.text(), "run python -m pykafkad.wire.stub"


def test_every_schema_file_has_only_its_own_messages():
    """An API has one file, named by key and name. No message is in two files. All other files are known collections."""
    files = sorted(os.listdir(messages.DIRECTORY))
    assert set(files) == {file for _, file in messages._registry.apis().values()} | set(messages.COLLECTIONS)
    for file in files:
        with open(os.path.join(messages.DIRECTORY, file), encoding="utf-8") as stream:
            parsed = notation.parse(stream.read(), file)
        if file[:3].isdigit():
            assert {message.key for message in parsed.values()} == {int(file[:3])}
            assert [message.kind for message in parsed.values()] == ["request", "response"]
    assert len(every_version()) == sum(len(messages.valid_versions(messages.stored_class(name))) for name in NAMES)


def test_serving_imports_nothing_heavy_and_compiles_on_demand():
    """Importing and using the codec imports no slow modules. A schema is parsed on first use."""
    code = (
        "import sys; before = set(sys.modules); from pykafkad.wire import messages, frames\n"
        "assert not messages._registry.texts\n"
        "data = messages.encode(messages.ApiVersionsRequest(), 3)\n"
        "messages.decode(messages.ApiVersionsRequest, 3, data)\n"
        "assert len(messages._registry.texts) == 1, messages._registry.texts.keys()\n"
        "slow = {'typing', 'dataclasses', 're', 'enum', 'pathlib', 'inspect', 'linecache', 'logging', 'json'}\n"
        "slow.add('collections.abc')\n"
        "print(*sorted((set(sys.modules) - before) & slow))"
    )
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    result = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert (result.stdout.strip(), result.stderr) == ("", "")


def test_tags_count_as_elements_of_the_limit():
    """A tag section may claim as many tags as it has bytes, and reading each takes time."""
    most = primitives.MAX_ELEMENTS
    decode = messages.decoder(messages.ApiVersionsRequest, 3)
    for count in (1000, most + 1):
        data = bytearray(b"\2a\2b")
        primitives.append_uvarint(data, count)
        data += bytes(2 * count)
        if count > most:
            with pytest.raises(ProtocolError, match=f"more than {most} elements"):
                decode(data, 0)
        else:
            assert decode(data, 0)[1] == len(data)
