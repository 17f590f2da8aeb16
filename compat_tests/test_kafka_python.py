"""kafka-python 3.0.x, with its own protocol implementation: producing, consuming, groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import pytest
from kafka import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import MessageSizeTooLargeError, OffsetOutOfRangeError, UnknownTopicOrPartitionError

from compat_tests.samples import (
    SAMPLES,
    SIZES,
    GroupMember,
    assert_each_once,
    value_of,
    wait_for_exact_ownership,
    wait_until,
)

FreshName = Callable[..., str]
POLL_TIMEOUT_MS = 100
REBALANCE_TIMEOUT_MS = 100_000


@pytest.fixture
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    """An admin client."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


@pytest.fixture
def topic(admin: KafkaAdminClient, fresh_name: FreshName) -> str:
    """A topic with one partition."""
    return create_topic(admin, fresh_name(), 1)


def create_topic(admin: KafkaAdminClient, name: str, partitions: int, **configs: str) -> str:
    """Create a topic; underscores in config names stand for dots."""
    renamed = {key.replace("_", "."): value for key, value in configs.items()}
    options = {"num_partitions": partitions, "replication_factor": 1, "configs": renamed}
    admin.create_topics({name: options}, wait_for_metadata=True)
    return name


def test_records_and_offsets_of_transactions(
    bootstrap: str, admin: KafkaAdminClient, topic: str, fresh_name: FreshName
) -> None:
    """What is read, transformed and written in one transaction counts once: an aborted round is done again."""
    target, group = create_topic(admin, fresh_name(), 2), fresh_name("group")
    with_values = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(40):
        with_values.send(topic, b"%d" % number)
    with_values.close()
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=fresh_name("id"))
    producer.init_transactions()
    source = TopicPartition(topic, 0)
    rounds = 0
    position = 0
    while position < 40:
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
        consumer.assign([source])
        committed = consumer.committed(source) or 0
        assert committed == position
        consumer.seek(source, committed)
        batch: list = []
        while not batch:
            batch = consumer.poll(1000, max_records=10).get(source, [])
        producer.begin_transaction()
        for record in batch:
            producer.send(target, b"%d" % (int(record.value) * 2), partition=int(record.value) % 2)
        offset = OffsetAndMetadata(batch[-1].offset + 1, "", -1)
        producer.send_offsets_to_transaction({source: offset}, consumer.group_metadata())
        rounds += 1
        if rounds % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
            position = batch[-1].offset + 1
        consumer.close()
    producer.close()
    assert rounds >= 8
    values = [int(record.value) for record in read_all(bootstrap, target, 2, isolation_level="read_committed")]
    assert sorted(values) == [2 * number for number in range(40)]


def read_all(bootstrap: str, topic: str, partitions: int = 1, **options: object) -> list:
    """Every record in `topic` from its start to its present end, by partition and offset."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest", **options)
    try:
        assigned = [TopicPartition(topic, partition) for partition in range(partitions)]
        consumer.assign(assigned)
        ends = consumer.end_offsets(assigned)
        records = []
        deadline = time.monotonic() + 120
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            assert time.monotonic() < deadline, f"only {len(records)} records arrived"
            for batch in consumer.poll(timeout_ms=500).values():
                records.extend(batch)
        return sorted(records, key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_and_acks(bootstrap: str, topic: str, compression: str | None, acks: int | str) -> None:
    """Records of every shape are read back unchanged and in order, with every codec and every acks."""
    options = {"acks": acks, "compression_type": compression, "enable_idempotence": False, "linger_ms": 20}
    # Kafka names a leader before that leader accepts records; a record without acks that is sent too early is lost
    # silently.
    assert read_all(bootstrap, topic) == []
    producer = KafkaProducer(bootstrap_servers=bootstrap, **options)
    # This client refuses records without key and value, and headers without value.
    samples = [s for s in SAMPLES if s[:2] != (None, None) and ("null", None) not in s.headers]
    for sample in samples:
        producer.send(topic, key=sample.key, value=sample.value, headers=sample.headers)
    producer.flush()
    producer.close()
    if acks == 0:
        wait_until(lambda: len(read_all(bootstrap, topic)) == len(samples), "records sent without acks arrive")
    records = read_all(bootstrap, topic)
    assert [(record.key, record.value, list(record.headers)) for record in records] == [tuple(s) for s in samples]
    assert [record.offset for record in records] == list(range(len(samples)))


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_sizes_from_one_byte_to_one_megabyte(bootstrap: str, topic: str, compression: str | None) -> None:
    """Records of one byte to one megabyte are read back unchanged."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=compression)
    sent = [producer.send(topic, value=value_of(size)) for size in SIZES]
    offsets = [future.get(100).offset for future in sent]
    producer.close()
    assert offsets == list(range(len(SIZES)))
    assert [record.value for record in read_all(bootstrap, topic)] == [value_of(size) for size in SIZES]


def test_a_record_larger_than_the_topic_allows(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """The topic's `max.message.bytes` applies: MESSAGE_TOO_LARGE, and the next record is accepted."""
    topic = create_topic(admin, fresh_name(), 1, max_message_bytes="2000")
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=False)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send(topic, value=b"x" * 3000).get(100)
    assert producer.send(topic, value=b"x" * 1000).get(100).offset == 0
    producer.close()


def test_idempotent_producer(bootstrap: str, topic: str) -> None:
    """The producer gets an id, and five requests in flight keep their order."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, batch_size=200)
    for number in range(500):
        producer.send(topic, value=b"%d" % number)
    producer.flush()
    producer.close()
    assert [record.value for record in read_all(bootstrap, topic)] == [b"%d" % number for number in range(500)]


def test_timestamps(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """CreateTime keeps the producer's timestamps; LogAppendTime uses the broker's clock."""
    created = create_topic(admin, fresh_name("created"), 1, retention_ms="-1")
    appended = create_topic(admin, fresh_name("appended"), 1, message_timestamp_type="LogAppendTime")
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    before = int(time.time() * 1000)
    for name in (created, appended):
        metadata = producer.send(name, value=b"v", timestamp_ms=1_000_000_000_000).get(100)
        assert (metadata.timestamp == 1_000_000_000_000) is (name == created)
    producer.close()
    (record,) = read_all(bootstrap, created)
    assert (record.timestamp, record.timestamp_type) == (1_000_000_000_000, 0)
    (record,) = read_all(bootstrap, appended)
    assert record.timestamp_type == 1 and before - 1000 <= record.timestamp <= int(time.time() * 1000) + 1000


def test_keyless_record_on_a_compacted_topic(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """A compacted topic accepts only records with a key."""
    topic = create_topic(admin, fresh_name(), 1, cleanup_policy="compact")
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=False)
    with pytest.raises(Exception, match="(?i)invalid.?record|InvalidRecord"):
        producer.send(topic, value=b"no key").get(100)
    assert producer.send(topic, key=b"k", value=b"v").get(100).offset == 0
    producer.close()


def test_automatic_creation(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """Producing to an unknown topic creates it with `num.partitions`."""
    topic = fresh_name()
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    assert producer.send(topic, value=b"first").get(100).offset == 0
    assert producer.partitions_for(topic) == {0}
    producer.close()
    assert topic in admin.list_topics()


def test_long_poll_wakes_for_a_record(bootstrap: str, topic: str) -> None:
    """A waiting fetch is answered when a record arrives, long before its maximum wait."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=60_000,
        request_timeout_ms=90_000,
    )
    consumer.assign([TopicPartition(topic, 0)])
    assert consumer.poll(timeout_ms=500) == {}
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(topic, value=b"awaited").get(100)
    assert consumer.poll(timeout_ms=30_000) != {}
    producer.close()
    consumer.close()


def test_seek(bootstrap: str, topic: str) -> None:
    """Seek by offset, to both ends, and by time, with every kind of answer to a look-up by time."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, batch_size=0)
    base_ms = int(time.time() * 1000) - 3_600_000
    for number in range(100):
        producer.send(topic, value=b"%d" % number, timestamp_ms=base_ms + number * 1000)
        producer.flush()
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="none")
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 42)
    assert next_record(consumer).value == b"42"
    consumer.seek_to_beginning(partition)
    assert next_record(consumer).value == b"0"
    consumer.seek_to_end(partition)
    assert consumer.position(partition) == 100
    for at_ms, offset in ((base_ms, 0), (base_ms - 5000, 0), (base_ms + 10_000, 10), (base_ms + 10_001, 11)):
        found = consumer.offsets_for_times({partition: at_ms})[partition]
        assert (found.offset, found.timestamp) == (offset, base_ms + offset * 1000)
    assert consumer.offsets_for_times({partition: base_ms + 100_000})[partition] is None
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 100}
    consumer.seek(partition, 101)
    with pytest.raises(OffsetOutOfRangeError):
        consumer.poll(timeout_ms=60_000)
    consumer.close()


def next_record(consumer: KafkaConsumer) -> object:
    """The next record that `consumer` reads."""
    for _ in range(100):
        for batch in consumer.poll(timeout_ms=1000, max_records=1).values():
            return batch[0]
    raise AssertionError("no record arrived")


def test_offset_reset(bootstrap: str, topic: str) -> None:
    """A consumer outside the log starts where `auto.offset.reset` says."""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(5):
        producer.send(topic, value=b"%d" % number).get(100)
    producer.close()
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest")
    consumer.assign([partition])
    consumer.seek(partition, 1000)
    assert next_record(consumer).offset == 0
    consumer.close()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="latest")
    consumer.assign([partition])
    consumer.seek(partition, 1000)
    wait_until(lambda: consumer.poll(timeout_ms=100) == {} and consumer.position(partition) == 5, "reset to the latest")
    consumer.close()


def test_commit_and_resume(bootstrap: str, topic: str, fresh_name: FreshName, admin: KafkaAdminClient) -> None:
    """A group continues where it committed, with its metadata; another group starts independently."""
    group = fresh_name("group")
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(20):
        producer.send(topic, value=b"%d" % number)
    producer.close()
    partition = TopicPartition(topic, 0)
    options = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = KafkaConsumer(topic, group_id=group, max_poll_records=1, **options)
    assert consumer.committed(partition) is None
    assert [next_record(consumer).offset for _ in range(7)] == list(range(7))
    consumer.commit({partition: OffsetAndMetadata(7, "seven", -1)})
    assert consumer.committed(partition) == 7
    assert consumer.committed(partition, metadata=True).metadata == "seven"
    consumer.close()
    consumer = KafkaConsumer(topic, group_id=group, **options)
    assert next_record(consumer).offset == 7
    consumer.close()
    consumer = KafkaConsumer(topic, group_id=fresh_name("other"), **options)
    assert next_record(consumer).offset == 0
    consumer.close()
    committed = admin.list_group_offsets({group: [partition, TopicPartition(topic, 1)]})[group]
    assert committed[partition].offset == 7
    assert committed[TopicPartition(topic, 1)].offset == -1


class Member(GroupMember):
    """A member of a group on kafka-python."""

    def __init__(self, name: str, bootstrap: str, topic: str, group: str, **options: object) -> None:
        super().__init__(name)
        self.topic = topic
        self.options = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "auto_offset_reset": "earliest",
            "partition_assignment_strategy": [RangePartitionAssignor],
            "heartbeat_interval_ms": 200,
            "session_timeout_ms": 60_000,
            **options,
        }

    def open(self) -> None:
        self.consumer = KafkaConsumer(**self.options)
        coordinator = self.consumer._coordinator
        join = coordinator.ensure_active_group
        # A rebalance may continue after the end of a poll. kafka-python 3.0.12 then has two faults on any broker: it
        # forgets to look for the result if new metadata caused the rebalance, and it joins once more if the rebalance
        # ended before the next poll.
        coordinator.ensure_active_group = lambda timeout_ms: join(REBALANCE_TIMEOUT_MS)
        self.consumer.subscribe([self.topic], listener=Listener(self))

    def poll_once(self) -> Iterable[tuple[int, int]]:
        polled = self.consumer.poll(timeout_ms=POLL_TIMEOUT_MS)
        return [(record.partition, record.offset) for batch in polled.values() for record in batch]

    def close(self) -> None:
        self.consumer.close()


class Listener(ConsumerRebalanceListener):
    """Passes added and revoked partitions on to a member."""

    def __init__(self, member: Member) -> None:
        self.member = member

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Called with the added partitions."""
        self.member.assigned(partition.partition for partition in assigned)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Called with the revoked partitions."""
        self.member.revoked(partition.partition for partition in revoked)


@pytest.mark.parametrize("assignor", [RangePartitionAssignor, CooperativeStickyAssignor], ids=["eager", "cooperative"])
def test_group_grows_and_shrinks(
    bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName, assignor: type
) -> None:
    """Every partition has exactly one owner at any size of the group, and every record is read exactly once."""
    topic, group, partitions = create_topic(admin, fresh_name(), 6), fresh_name("group"), 6
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    members: list[Member] = []
    everyone: list[Member] = []
    expected = []

    def send_and_settle() -> None:
        wait_for_exact_ownership(members, partitions)
        for number in range(60):
            sent = producer.send(topic, partition=number % partitions, value=b"%d" % number).get(100)
            expected.append((sent.partition, sent.offset))
        wait_until(lambda: sum(len(member.received) for member in everyone) >= len(expected), "all records are read")

    for number in range(3):
        member = Member(f"member-{number}", bootstrap, topic, group, partition_assignment_strategy=[assignor])
        kept = [(other, other.owned) for other in members]
        for other in members:
            other.lost.clear()
        members.append(member)
        everyone.append(member)
        member.start()
        send_and_settle()
        for other, owned_before in kept:
            if assignor is CooperativeStickyAssignor:
                assert other.lost == owned_before - other.owned, "cooperative: only partitions that move are revoked"
            else:
                assert other.lost == owned_before, "eager: all partitions are revoked first"
    described = admin.describe_groups([group])[group]
    assert (described["group_state"], len(described["members"])) == ("Stable", 3)
    while len(members) > 1:
        members.pop(0).leave()
        send_and_settle()
    members.pop().leave()
    producer.close()
    assert_each_once(everyone, expected)
    assert admin.describe_groups([group])[group]["group_state"] == "Empty"


def test_static_member_returns_without_a_rebalance(
    bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName
) -> None:
    """A static member that returns within its session gets its partitions again, and the other members notice
    nothing.
    """
    topic, group = create_topic(admin, fresh_name(), 4), fresh_name("group")
    members = [Member(f"s{n}", bootstrap, topic, group, group_instance_id=f"instance-{n}") for n in range(2)]
    for member in members:
        member.start()
    wait_for_exact_ownership(members, 4)
    owned = members[0].owned
    members[1].lost.clear()
    members[0].leave()
    returned = Member("s0 again", bootstrap, topic, group, group_instance_id="instance-0")
    returned.start()
    wait_for_exact_ownership([returned, members[1]], 4)
    assert returned.owned == owned and members[1].lost == set()
    for member in (returned, members[1]):
        member.leave()
    described = admin.describe_groups([group])[group]["members"]
    assert sorted(member["group_instance_id"] for member in described) == ["instance-0", "instance-1"]


def test_a_group_follows_new_partitions(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """When a topic grows, the group rebalances and reads the new partitions too."""
    topic, group = create_topic(admin, fresh_name(), 1), fresh_name("group")
    member = Member("member", bootstrap, topic, group, metadata_max_age_ms=500)
    member.start()
    wait_for_exact_ownership([member], 1)
    admin.create_partitions({topic: 3})
    wait_for_exact_ownership([member], 3)
    member.leave()


def test_unknown_topic(bootstrap: str, admin: KafkaAdminClient, fresh_name: FreshName) -> None:
    """A request for an unknown partition is UNKNOWN_TOPIC_OR_PARTITION."""
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([fresh_name()])
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.create_partitions({fresh_name(): 2})
