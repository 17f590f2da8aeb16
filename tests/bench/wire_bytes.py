"""The few Kafka requests and answers that a benchmark needs, packed by hand.

It does not use `pykafkad.wire`, so that the bench does not share mistakes with the broker. Versions are fixed
to one old and one new form of Produce (7, 13) and Fetch (11, 17); the rest are the oldest non-flexible ones that
Kafka 4.3 still answers. Every request carries its 4-byte size; its correlation id is 0 (the generator patches it).
Positions in answers count from their size field.
"""

from __future__ import annotations

import struct
from collections import namedtuple

import crc32c

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 2, 3, 18, 19, 20
DESCRIBE_CONFIGS, DESCRIBE_QUORUM, DESCRIBE_TOPIC_PARTITIONS = 32, 55, 75
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
CLIENT_ID = "bench"
RECORD_VALUE_BYTES = 100
BATCH_HEADER_BYTES = 61

Template = namedtuple("Template", "request error_at least_size value_at value broker", defaults=(0, 0, 0))
Template.__doc__ = """A request to replay and what its answer must hold: an int16 error code of 0 at `error_at`, at
least `least_size` bytes, and where `value_at` is not 0 the int64 `value` there. Of several brokers number `broker` gets
it."""


# ---- primitives ----


def string(text):
    """A string with its int16 length."""
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def unsigned_varint(number):
    """A base-128 number, lowest group first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def varint(number):
    """A zigzag varint of a signed number of at most 64 bits."""
    return unsigned_varint((number << 1) ^ (number >> 63))


def compact_string(text):
    """A string of the flexible versions."""
    data = text.encode()
    return unsigned_varint(len(data) + 1) + data


def request(api_key, version, body, *, flexible=False):
    """A whole request: size, header (version 2 when flexible, else 1) and body."""
    header = struct.pack(">hhi", api_key, version, 0) + string(CLIENT_ID) + (b"\0" if flexible else b"")
    return struct.pack(">i", len(header) + len(body)) + header + body


# ---- records ----


def record(offset_delta, value):
    """One record without key and headers, at the batch's base timestamp."""
    body = b"\0" + varint(0) + varint(offset_delta) + varint(-1) + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(records, timestamp_ms):
    """A version 2 record batch of the encoded `records`: uncompressed, not idempotent, base offset 0."""
    checked = struct.pack(">hiqqqhii", 0, len(records) - 1, timestamp_ms, timestamp_ms, -1, -1, -1, len(records))
    checked += b"".join(records)
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c.crc32c(checked)) + checked


def batch_of_size(size_bytes, timestamp_ms):
    """A batch of exactly `size_bytes`: as many records with 100-byte values as fit, the last one filled up."""
    full = len(record(1 << 20, bytes(RECORD_VALUE_BYTES)))
    records = []
    left = size_bytes - BATCH_HEADER_BYTES
    while left >= 2 * full:
        records.append(record(len(records), bytes([97 + len(records) % 26]) * RECORD_VALUE_BYTES))
        left -= len(records[-1])
    for value_bytes in range(left, -1, -1):
        last = record(len(records), b"z" * value_bytes)
        if len(last) == left:
            return batch([*records, last], timestamp_ms)
    raise ValueError(f"no batch has exactly {size_bytes} bytes")


def record_count(encoded_batch):
    """How many records an encoded batch holds."""
    return struct.unpack_from(">i", encoded_batch, 57)[0]


# ---- Produce and Fetch ----


def produce(version, topic, topic_id, partition, encoded_batch, *, acks=-1, timeout_ms=30_000):
    """A Produce template for one partition: version 7 names the topic, version 13 gives its id."""
    if version == 7:
        body = struct.pack(">hhii", -1, acks, timeout_ms, 1) + string(topic)
        body += struct.pack(">iii", 1, partition, len(encoded_batch)) + encoded_batch
        error_at = 4 + 4 + 4 + len(string(topic)) + 4 + 4
        return Template(request(PRODUCE, 7, body), error_at, error_at + 2)
    if version != 13:
        raise ValueError(f"Produce version {version}: only 7 and 13 are offered here")
    body = b"\0" + struct.pack(">hi", acks, timeout_ms) + b"\2" + topic_id + b"\2" + struct.pack(">i", partition)
    body += unsigned_varint(len(encoded_batch) + 1) + encoded_batch + b"\0\0\0"
    error_at = 4 + 4 + 1 + 1 + 16 + 1 + 4
    return Template(request(PRODUCE, 13, body, flexible=True), error_at, error_at + 2)


def fetch(version, topic, topic_id, partition, offset, *, max_bytes, max_wait_ms=500, isolation_level=0):
    """A Fetch template for one partition without a session: version 11 names the topic, version 17 gives its id.

    Expects at least one batch header, whose base offset is `offset`: ask at the start of a batch. With an isolation
    level the aborted transactions stand before the records, and only the size is checked.
    """
    if version == 11:
        body = struct.pack(">iiiibii", -1, max_wait_ms, 1, 0x7FFFFFFF, isolation_level, 0, -1)
        body += struct.pack(">i", 1) + string(topic)
        body += struct.pack(">iiiqqi", 1, partition, -1, offset, -1, max_bytes) + struct.pack(">i", 0) + string("")
        error_at = 4 + 4 + 4 + 2 + 4 + 4 + len(string(topic)) + 4 + 4
        records_at = error_at + 2 + 8 + 8 + 8 + 4 + 4 + 4
        if isolation_level:
            return Template(request(FETCH, 11, body), error_at, records_at + BATCH_HEADER_BYTES)
        return Template(request(FETCH, 11, body), error_at, records_at + BATCH_HEADER_BYTES, records_at, offset)
    if version != 17:
        raise ValueError(f"Fetch version {version}: only 11 and 17 are offered here")
    partition_body = struct.pack(">iiqiqi", partition, -1, offset, -1, -1, max_bytes) + b"\0"
    body = struct.pack(">iiibii", max_wait_ms, 1, 0x7FFFFFFF, isolation_level, 0, -1)
    body += b"\2" + topic_id + b"\2" + partition_body + b"\0" + b"\1" + compact_string("") + b"\0"
    error_at = 4 + 4 + 1 + 4 + 2 + 4 + 1 + 16 + 1 + 4
    return Template(request(FETCH, 17, body, flexible=True), error_at, error_at + 2 + BATCH_HEADER_BYTES)


# ---- the rest: set-up and start-up ----


def api_versions():
    """An ApiVersions 0 template."""
    return Template(request(API_VERSIONS, 0, b""), 8, 14)


def create_topics(topics, configs, *, replicas=1, timeout_ms=120_000):
    """CreateTopics 7 for `{name: partitions}`, all with as many replicas and the same `{config: value}`."""
    encoded_configs = unsigned_varint(len(configs) + 1)
    for name, value in configs.items():
        encoded_configs += compact_string(name) + compact_string(value) + b"\0"
    body = unsigned_varint(len(topics) + 1)
    for name, partitions in topics.items():
        body += compact_string(name) + struct.pack(">ih", partitions, replicas) + b"\1" + encoded_configs + b"\0"
    return request(CREATE_TOPICS, 7, body + struct.pack(">i?", timeout_ms, False) + b"\0", flexible=True)


def validate_topics(names, partitions=3, timeout_ms=30_000):
    """A CreateTopics 7 template that validates topics of one replica and makes none."""
    body = unsigned_varint(len(names) + 1)
    for name in names:
        body += compact_string(name) + struct.pack(">ih", partitions, 1) + b"\1\1\0"
    body += struct.pack(">i?", timeout_ms, True) + b"\0"
    error_at = 4 + 4 + 1 + 4 + len(unsigned_varint(len(names) + 1)) + len(compact_string(names[0])) + 16
    return Template(request(CREATE_TOPICS, 7, body, flexible=True), error_at, error_at + 2 + 30 * (len(names) - 1))


def describe_configs(resources):
    """A DescribeConfigs 4 template for `[(type, name)]`: every setting, with synonyms and documentation."""
    body = unsigned_varint(len(resources) + 1)
    for kind, name in resources:
        body += struct.pack(">b", kind) + compact_string(name) + b"\0\0"
    error_at = 4 + 4 + 1 + 4 + len(unsigned_varint(len(resources) + 1))
    return Template(request(DESCRIBE_CONFIGS, 4, body + b"\1\1\0", flexible=True), error_at, 5_000 * len(resources))


def metadata_of(names):
    """A Metadata 12 template for the named topics, as clients of today ask; its answer's least size is that of an empty
    one."""
    body = unsigned_varint(len(names) + 1)
    for name in names:
        body += bytes(16) + compact_string(name) + b"\0"
    # The first error is behind the brokers, whose length is not known here. The checked position is the throttle time,
    # which is 0 like an error code without error.
    return Template(request(METADATA, 12, body + b"\0\0\0", flexible=True), 9, 25_000 * len(names))


def describe_topic_partitions(names, first, partition, limit):
    """A DescribeTopicPartitions 0 template: of the topics, the page that begins at the topic `first` and its
    `partition`."""
    body = unsigned_varint(len(names) + 1) + b"".join(compact_string(name) + b"\0" for name in names)
    body += struct.pack(">i", limit) + b"\1" + compact_string(first) + struct.pack(">i", partition) + b"\0\0"
    error_at = 4 + 4 + 1 + 4 + 1
    return Template(request(DESCRIBE_TOPIC_PARTITIONS, 0, body, flexible=True), error_at, min(25 * limit, 25_000))


def delete_topics(names, timeout_ms=30_000):
    """DeleteTopics 3."""
    body = struct.pack(">i", len(names)) + b"".join(string(name) for name in names) + struct.pack(">i", timeout_ms)
    return request(DELETE_TOPICS, 3, body)


def metadata(names):
    """Metadata 8 for the named topics, creating none."""
    body = struct.pack(">i", len(names)) + b"".join(string(name) for name in names) + b"\0\0\0"
    return request(METADATA, 8, body)


def list_offsets(topic, partitions):
    """ListOffsets 1 for the end of each of `partitions` partitions of one topic."""
    body = struct.pack(">ii", -1, 1) + string(topic) + struct.pack(">i", partitions)
    return request(LIST_OFFSETS, 1, body + b"".join(struct.pack(">iq", index, -1) for index in range(partitions)))


def describe_quorum():
    """DescribeQuorum 0 of the metadata log."""
    body = b"\2" + compact_string("__cluster_metadata") + b"\2" + struct.pack(">i", 0) + b"\0\0\0"
    return request(DESCRIBE_QUORUM, 0, body, flexible=True)


class Reader:
    """A cursor over an answer's body; `take(">hi")` unpacks and steps on."""

    def __init__(self, data, position=0):
        self.data = data
        self.position = position

    def take(self, layout):
        """The tuple that `layout` (struct notation) unpacks at the cursor."""
        values = struct.unpack_from(layout, self.data, self.position)
        self.position += struct.calcsize(layout)
        return values

    def bytes(self, size):
        """The next `size` bytes."""
        self.position += size
        return bytes(self.data[self.position - size : self.position])

    def string(self):
        """A nullable string with an int16 length."""
        (size,) = self.take(">h")
        return None if size < 0 else self.bytes(size).decode()

    def unsigned_varint(self):
        """A base-128 number."""
        number = shift = 0
        while True:
            (byte,) = self.take(">B")
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def compact_string(self):
        """A nullable string of the flexible versions."""
        size = self.unsigned_varint()
        return None if size == 0 else self.bytes(size - 1).decode()

    def skip_tags(self):
        """Steps over tagged fields."""
        for _ in range(self.unsigned_varint()):
            self.unsigned_varint()
            self.bytes(self.unsigned_varint())


def parse_create_topics(answer):
    """`[(name, topic_id, error_code, error_message)]` of a CreateTopics 7 answer (correlation id included)."""
    reader = Reader(answer, 4)
    reader.skip_tags()
    reader.take(">i")
    rows = []
    for _ in range(reader.unsigned_varint() - 1):
        name, topic_id = reader.compact_string(), reader.bytes(16)
        (error_code,) = reader.take(">h")
        rows.append((name, topic_id, error_code, reader.compact_string()))
        reader.take(">ih")
        for _ in range(max(reader.unsigned_varint() - 1, 0)):
            reader.compact_string(), reader.compact_string(), reader.take(">?b?"), reader.skip_tags()
        reader.skip_tags()
    return rows


def parse_delete_topics(answer):
    """`{name: error_code}` of a DeleteTopics 3 answer."""
    reader = Reader(answer, 8)
    return {reader.string(): reader.take(">h")[0] for _ in range(reader.take(">i")[0])}


def parse_placement(answer):
    """`{node_id: port}` and `{name: {partition: (error_code, leader, isr)}}` of a Metadata 8 answer; a topic's own
    error stands as partition -1."""
    reader = Reader(answer, 8)
    ports = {}
    for _ in range(reader.take(">i")[0]):
        (node_id,) = reader.take(">i")
        reader.string()
        (ports[node_id],) = reader.take(">i")
        reader.string()
    reader.string(), reader.take(">i")
    topics = {}
    for _ in range(reader.take(">i")[0]):
        (error_code,) = reader.take(">h")
        partitions = topics.setdefault(reader.string(), {})
        if error_code:
            partitions[-1] = error_code, -1, ()
        reader.take(">?")
        for _ in range(reader.take(">i")[0]):
            partition_error, index, leader, _epoch = reader.take(">hiii")
            _replicas, isr, _offline = (reader.take(f">{reader.take('>i')[0]}i") for _ in range(3))
            partitions[index] = partition_error, leader, isr
        reader.take(">i")
    return ports, topics


def parse_metadata(answer):
    """`{name: {partition: error_code}}` of a Metadata 8 answer; a topic's own error stands as partition -1."""
    return {
        name: {index: row[0] for index, row in partitions.items()}
        for name, partitions in parse_placement(answer)[1].items()
    }


def parse_quorum_leader(answer):
    """The node that leads the quorum, of a DescribeQuorum 0 answer; -1 for none."""
    reader = Reader(answer, 4)
    reader.skip_tags()
    reader.take(">h"), reader.unsigned_varint(), reader.compact_string(), reader.unsigned_varint()
    _index, error_code, leader = reader.take(">ihi")
    return -1 if error_code else leader


def parse_list_offsets(answer):
    """`{partition: error_code}` of a ListOffsets 1 answer about one topic."""
    reader = Reader(answer, 8)
    reader.string()
    rows = [reader.take(">ihqq") for _ in range(reader.take(">i")[0])]
    return {index: error_code for index, error_code, _, _ in rows}


def next_offset(template, answer):
    """The offset after the last whole batch of the answer to a Fetch 11 template; None without a whole batch."""
    end = None
    position = template.value_at - 4
    while position + BATCH_HEADER_BYTES <= len(answer):
        base_offset, length = struct.unpack_from(">qi", answer, position)
        if position + 12 + length > len(answer):
            break
        end = base_offset + struct.unpack_from(">i", answer, position + 23)[0] + 1
        position += 12 + length
    return end
