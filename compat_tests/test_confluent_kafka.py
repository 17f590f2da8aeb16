"""confluent-kafka 2.16, on librdkafka: producing, consuming, groups and administration."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

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
LARGEST_REQUEST = {"message.max.bytes": 2_000_000}


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    """An admin client."""
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def topic(admin: AdminClient, fresh_name: FreshName) -> str:
    """A topic with one partition."""
    return create(admin, fresh_name())


def create(admin: AdminClient, name: str, partitions: int = 1, config: dict[str, str] | None = None) -> str:
    """Create a topic and wait until its partitions have leaders."""
    done(admin.create_topics([NewTopic(name, partitions, 1, config=config or {})]))
    wait_until(lambda: len(admin.list_topics(name).topics[name].partitions) == partitions, "the topic is there")
    # Kafka names a leader before that leader accepts records; a record without acks that is sent too early is lost
    # silently.
    wait_until(lambda: are_led(admin, name, partitions), "its leaders know of it")
    return name


def are_led(admin: AdminClient, name: str, partitions: int) -> bool:
    """Whether the leaders of all partitions return their end offsets."""
    futures = admin.list_offsets({TopicPartition(name, number): OffsetSpec.latest() for number in range(partitions)})
    return all(future.exception(100) is None for future in futures.values())


def done(futures: dict) -> dict:
    """The results of an admin call that returns a future for each resource."""
    return {key: future.result(100) for key, future in futures.items()}


def error_of(futures: dict) -> int:
    """The error code of the only future, which must fail."""
    (future,) = futures.values()
    with pytest.raises(KafkaException) as caught:
        future.result(100)
    return caught.value.args[0].code()


def send_all(bootstrap: str, messages: Iterable[dict], **config: object) -> list[Message]:
    """Produce and wait; returns the delivered messages in order; the first error is raised."""
    producer = Producer({"bootstrap.servers": bootstrap, **LARGEST_REQUEST, **config})
    reports: list[tuple] = []
    for message in messages:
        producer.produce(on_delivery=lambda error, sent: reports.append((error, sent)), **message)
    assert producer.flush(120) == 0
    for error, _ in reports:
        if error is not None:
            raise KafkaException(error)
    return [sent for _, sent in reports]


def read_all(bootstrap: str, topic: str, count: int, partitions: int = 1, **config: object) -> list[Message]:
    """The first `count` records of `topic`."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, **config}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    messages: list[Message] = []
    deadline = time.monotonic() + 120
    while len(messages) < count:
        assert time.monotonic() < deadline, f"only {len(messages)} of {count} records arrived"
        for message in consumer.consume(count - len(messages), 0.5):
            assert message.error() is None, message.error()
            messages.append(message)
    consumer.close()
    return messages


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_and_acks(bootstrap: str, topic: str, compression: str, acks: str) -> None:
    """Records of every shape are read back unchanged and in order, with every codec and every acks."""
    messages = [{"topic": topic, "key": s.key, "value": s.value, "headers": s.headers} for s in SAMPLES]
    send_all(bootstrap, messages, **{"acks": acks, "compression.type": compression, "linger.ms": 20})
    records = read_all(bootstrap, topic, len(SAMPLES))
    seen = [(record.key(), record.value(), record.headers() or []) for record in records]
    assert seen == [tuple(sample) for sample in SAMPLES]
    assert [record.offset() for record in records] == list(range(len(SAMPLES)))


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_sizes_from_one_byte_to_one_megabyte(bootstrap: str, topic: str, compression: str) -> None:
    """Records of one byte to one megabyte are read back unchanged."""
    messages = [{"topic": topic, "value": value_of(size)} for size in SIZES]
    sent = send_all(bootstrap, messages, **{"compression.type": compression})
    assert [report.offset() for report in sent] == list(range(len(SIZES)))
    assert [record.value() for record in read_all(bootstrap, topic, len(SIZES))] == [value_of(size) for size in SIZES]


def test_a_record_larger_than_the_topic_allows(bootstrap: str, admin: AdminClient, fresh_name: FreshName) -> None:
    """The topic's `max.message.bytes` applies: MESSAGE_TOO_LARGE."""
    topic = create(admin, fresh_name(), config={"max.message.bytes": "2000"})
    with pytest.raises(KafkaException) as caught:
        send_all(bootstrap, [{"topic": topic, "value": b"x" * 3000}])
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert send_all(bootstrap, [{"topic": topic, "value": b"x" * 1000}])[0].offset() == 0


def test_idempotent_producer(bootstrap: str, admin: AdminClient, fresh_name: FreshName) -> None:
    """Many small batches in flight to several partitions arrive once and in order."""
    topic = create(admin, fresh_name(), 3)
    config = {"enable.idempotence": True, "batch.num.messages": 10, "linger.ms": 0}
    messages = [{"topic": topic, "value": b"%d" % number, "partition": number % 3} for number in range(3000)]
    send_all(bootstrap, messages, **config)
    records = read_all(bootstrap, topic, 3000, 3)
    for partition in range(3):
        values = [int(record.value()) for record in records if record.partition() == partition]
        assert values == list(range(partition, 3000, 3))


def test_equal_keys_go_to_one_partition(bootstrap: str, admin: AdminClient, fresh_name: FreshName) -> None:
    """The key decides the partition, with either hash that a client may use."""
    topic = create(admin, fresh_name(), 4)
    for partitioner in ("consistent_random", "murmur2_random"):
        messages = [{"topic": topic, "key": b"key-%d" % (n % 10), "value": b"v"} for n in range(100)]
        sent = send_all(bootstrap, messages, partitioner=partitioner)
        by_key: dict[bytes, set[int]] = {}
        for report in sent:
            by_key.setdefault(report.key(), set()).add(report.partition())
        assert all(len(partitions) == 1 for partitions in by_key.values())


def test_long_poll_wakes_for_a_record(bootstrap: str, topic: str) -> None:
    """A waiting fetch is answered when a record arrives."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "fetch.wait.max.ms": 50_000})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(1.0) is None
    send_all(bootstrap, [{"topic": topic, "value": b"awaited"}])
    started = time.monotonic()
    message = consumer.poll(40.0)
    assert message is not None and message.value() == b"awaited"
    assert time.monotonic() - started < 30
    consumer.close()


def test_end_of_partition(bootstrap: str, topic: str) -> None:
    """A reader gets an event at the end of a partition."""
    send_all(bootstrap, [{"topic": topic, "value": b"v"}])
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    first, second = consumer.consume(2, 100)
    assert first.value() == b"v"
    assert second.error().code() == KafkaError._PARTITION_EOF and second.offset() == 1
    consumer.close()


def test_seek_and_watermarks(bootstrap: str, topic: str) -> None:
    """Seek by offset and by time; the low and high watermark."""
    base_ms = int(time.time() * 1000) - 3_600_000
    messages = [{"topic": topic, "value": b"%d" % n, "timestamp": base_ms + n * 1000} for n in range(50)]
    send_all(bootstrap, messages, **{"batch.num.messages": 1})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "auto.offset.reset": "error"})
    partition = TopicPartition(topic, 0)
    assert consumer.get_watermark_offsets(partition, timeout=100) == (0, 50)
    for at_ms, offset in ((base_ms, 0), (base_ms + 10_001, 11), (base_ms + 49_000, 49)):
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, at_ms)], timeout=100)
        assert found.offset == offset
    (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, base_ms + 50_000)], timeout=100)
    assert found.offset == -1
    consumer.assign([TopicPartition(topic, 0, 42)])
    assert next_message(consumer).value() == b"42"
    consumer.seek(TopicPartition(topic, 0, 7))
    assert next_message(consumer).value() == b"7"
    consumer.seek(TopicPartition(topic, 0, 51))
    with pytest.raises(KafkaException) as caught:
        next_message(consumer)
    assert caught.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
    consumer.close()


def next_message(consumer: Consumer) -> Message:
    """The next record; an error event is raised."""
    for _ in range(100):
        message = consumer.poll(1.0)
        if message is not None:
            if message.error() is not None:
                raise KafkaException(message.error())
            return message
    raise AssertionError("no record arrived")


def test_commit_and_resume(bootstrap: str, topic: str, fresh_name: FreshName) -> None:
    """A group continues where it committed."""
    group = fresh_name("group")
    send_all(bootstrap, [{"topic": topic, "value": b"%d" % number} for number in range(10)])
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    settings["auto.offset.reset"] = "earliest"
    for start in (0, 4, 8):
        consumer = Consumer(settings)
        consumer.subscribe([topic])
        for offset in range(start, min(start + 4, 10)):
            message = next_message(consumer)
            assert message.offset() == offset
        consumer.commit(message=message, asynchronous=False)
        (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=100)
        assert committed.offset == min(start + 4, 10)
        consumer.close()


class Member(GroupMember):
    """A member of a group on confluent-kafka."""

    def __init__(self, name: str, bootstrap: str, topic: str, group: str, **config: object) -> None:
        super().__init__(name)
        self.topic = topic
        self.config = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 60_000,
            **{key.replace("_", "."): value for key, value in config.items()},
        }

    def open(self) -> None:
        self.consumer = Consumer(self.config)
        self.consumer.subscribe(
            [self.topic],
            on_assign=lambda _, added: self.assigned(partition.partition for partition in added),
            on_revoke=lambda _, gone: self.revoked(partition.partition for partition in gone),
        )

    def poll_once(self) -> Iterable[tuple[int, int]]:
        messages = self.consumer.consume(100, 0.1)
        return [(message.partition(), message.offset()) for message in messages if message.error() is None]

    def close(self) -> None:
        self.consumer.close()


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_group_grows_and_shrinks(bootstrap: str, admin: AdminClient, fresh_name: FreshName, strategy: str) -> None:
    """Every partition has exactly one owner at any size of the group, and every record is read exactly once."""
    topic, group, partitions = create(admin, fresh_name(), 6), fresh_name("group"), 6
    members: list[Member] = []
    everyone: list[Member] = []
    expected: list[tuple[int, int]] = []

    def send_and_settle() -> None:
        wait_for_exact_ownership(members, partitions)
        messages = [{"topic": topic, "value": b"v", "partition": n % partitions} for n in range(60)]
        expected.extend((report.partition(), report.offset()) for report in send_all(bootstrap, messages))
        wait_until(lambda: sum(len(member.received) for member in everyone) >= len(expected), "all records are read")

    for number in range(3):
        kept = [(other, other.owned) for other in members]
        for other in members:
            other.lost.clear()
        member = Member(f"member-{number}", bootstrap, topic, group, partition_assignment_strategy=strategy)
        members.append(member)
        everyone.append(member)
        member.start()
        send_and_settle()
        for other, owned_before in kept:
            moved = owned_before - other.owned if strategy == "cooperative-sticky" else owned_before
            assert other.lost == moved
    (described,) = done(admin.describe_consumer_groups([group])).values()
    assert (described.state, len(described.members)) == (ConsumerGroupState.STABLE, 3)
    owned = sorted(p.partition for member in described.members for p in member.assignment.topic_partitions)
    assert owned == list(range(partitions))
    while len(members) > 1:
        members.pop(0).leave()
        send_and_settle()
    members.pop().leave()
    assert_each_once(everyone, expected)


def test_static_members(bootstrap: str, admin: AdminClient, fresh_name: FreshName) -> None:
    """A static member that returns gets its partitions back; a second member with its name fences the first."""
    topic, group = create(admin, fresh_name(), 4), fresh_name("group")
    members = [Member(f"s{n}", bootstrap, topic, group, group_instance_id=f"i-{n}") for n in range(2)]
    for member in members:
        member.start()
    wait_for_exact_ownership(members, 4)
    owned = members[0].owned
    members[1].lost.clear()
    members[0].leave()
    returned = Member("s0 again", bootstrap, topic, group, group_instance_id="i-0")
    returned.start()
    wait_for_exact_ownership([returned, members[1]], 4)
    assert returned.owned == owned and members[1].lost == set()
    for member in (returned, members[1]):
        member.leave()


def test_member_that_dies_is_replaced(bootstrap: str, admin: AdminClient, fresh_name: FreshName) -> None:
    """A member that stops polling loses its partitions to the others after `max.poll.interval.ms`."""
    topic, group = create(admin, fresh_name(), 4), fresh_name("group")
    timeouts = {"session_timeout_ms": 2000, "max_poll_interval_ms": 3000}
    survivor = Member("survivor", bootstrap, topic, group, **timeouts)
    silent = Member("silent", bootstrap, topic, group, **timeouts)
    survivor.start()
    silent.start()
    wait_for_exact_ownership([survivor, silent], 4)
    ends = threading.Event()

    def without_polling() -> list[tuple[int, int]]:
        ends.wait()
        time.sleep(0.1)
        return []

    silent.poll_once = without_polling  # type: ignore[method-assign]
    try:
        wait_until(lambda: len(survivor.owned) == 4, "the survivor owns everything")
    finally:
        ends.set()
    survivor.leave()
    silent.leave()


def test_topic_administration(admin: AdminClient, fresh_name: FreshName) -> None:
    """Topics are created, described, extended and deleted; each invalid request has its error."""
    topic = create(admin, fresh_name(), 2)
    assert error_of(admin.create_topics([NewTopic(topic, 1, 1)])) == KafkaError.TOPIC_ALREADY_EXISTS
    assert error_of(admin.create_topics([NewTopic("no/good", 1, 1)])) == KafkaError.TOPIC_EXCEPTION
    assert error_of(admin.create_topics([NewTopic(fresh_name(), 1, 3)])) == KafkaError.INVALID_REPLICATION_FACTOR
    bad = NewTopic(fresh_name(), 1, 1, config={"retention.ms": "x"})
    assert error_of(admin.create_topics([bad])) == KafkaError.INVALID_CONFIG
    assert error_of(admin.create_partitions([NewPartitions(topic, 1)])) == KafkaError.INVALID_PARTITIONS
    done(admin.create_partitions([NewPartitions(topic, 3)]))
    wait_until(lambda: len(admin.list_topics(topic).topics[topic].partitions) == 3, "the topic has grown")
    done(admin.delete_topics([topic]))
    assert error_of(admin.delete_topics([topic])) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_config_administration(admin: AdminClient, fresh_name: FreshName) -> None:
    """Configs are described with their source and changed one at a time."""
    topic = create(admin, fresh_name(), config={"retention.ms": "5000"})

    def described() -> dict[str, ConfigEntry]:
        (entries,) = done(admin.describe_configs([ConfigResource("topic", topic)])).values()
        return entries

    assert (described()["retention.ms"].value, described()["retention.ms"].source) == ("5000", 1)
    assert (described()["segment.bytes"].value, described()["segment.bytes"].source) == ("1073741824", 5)
    changes = [ConfigEntry("retention.ms", "7000", incremental_operation=AlterConfigOpType.SET)]
    changes.append(ConfigEntry("segment.bytes", "2000000", incremental_operation=AlterConfigOpType.SET))
    done(admin.incremental_alter_configs([ConfigResource("topic", topic, incremental_configs=changes)]))
    wait_until(lambda: described()["segment.bytes"].value == "2000000", "the change is seen")
    assert described()["retention.ms"].value == "7000"
    wrong = [ConfigEntry("retention.ms", "x", incremental_operation=AlterConfigOpType.SET)]
    resource = ConfigResource("topic", topic, incremental_configs=wrong)
    assert error_of(admin.incremental_alter_configs([resource])) == KafkaError.INVALID_CONFIG


def test_offset_administration(bootstrap: str, admin: AdminClient, fresh_name: FreshName) -> None:
    """Offsets of partitions and groups are listed and changed, and records are deleted."""
    topic, group = create(admin, fresh_name(), config={"retention.ms": "-1"}), fresh_name("group")
    send_all(bootstrap, [{"topic": topic, "value": b"v", "timestamp": 1000 + n} for n in range(5)])
    partition = TopicPartition(topic, 0)
    specs = {"earliest": 0, "latest": 5, "max_timestamp": 4}
    for name, offset in specs.items():
        found = done(admin.list_offsets({partition: getattr(OffsetSpec, name)()}))[partition]
        assert found.offset == offset
    done(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 3)])]))
    (listed,) = done(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])).values()
    assert [(p.topic, p.partition, p.offset) for p in listed.topic_partitions] == [(topic, 0, 3)]
    assert group in {entry.group_id for entry in admin.list_consumer_groups().result(100).valid}
    done(admin.delete_consumer_groups([group]))
    assert error_of(admin.delete_consumer_groups([group])) == KafkaError.GROUP_ID_NOT_FOUND
    (deleted,) = done(admin.delete_records([TopicPartition(topic, 0, 2)])).values()
    assert deleted.low_watermark == 2
    assert error_of(admin.delete_records([TopicPartition(topic, 0, 9)])) == KafkaError.OFFSET_OUT_OF_RANGE


def test_cluster(bootstrap: str, admin: AdminClient) -> None:
    """The cluster is the one broker that was asked."""
    cluster = admin.describe_cluster().result(100)
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [bootstrap]
    assert cluster.controller.id == 1 and len(cluster.cluster_id) == 22


def test_a_transactional_producer_commits_and_aborts(bootstrap: str, topic: str, fresh_name: FreshName) -> None:
    """A committed transaction is read whole; of an aborted one nothing is."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": fresh_name("id")})
    # The first transaction waits until the topic of transactions is created.
    producer.init_transactions(200)
    for number in range(6):
        producer.begin_transaction()
        for each in range(20):
            producer.produce(topic, f"{number}.{each}".encode())
        if number % 2:
            producer.abort_transaction(100)
        else:
            producer.commit_transaction(100)
    committed = [f"{number}.{each}".encode() for number in (0, 2, 4) for each in range(20)]
    group = {"group.id": fresh_name("group"), "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **group})
    consumer.subscribe([topic])
    read: list[bytes] = []
    deadline = time.monotonic() + 100
    while len(read) < len(committed) and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            read.append(message.value())
    consumer.close()
    assert sorted(read) == sorted(committed)


def test_a_second_transactional_producer_fences_the_first(bootstrap: str, topic: str, fresh_name: FreshName) -> None:
    """The first can neither go on nor commit; its open transaction is aborted."""
    settings = {"bootstrap.servers": bootstrap, "transactional.id": fresh_name("id")}
    first, second = Producer(settings), Producer(settings)
    first.init_transactions(200)
    first.begin_transaction()
    first.produce(topic, b"of the first")
    first.flush(100)
    second.init_transactions(200)
    with pytest.raises(KafkaException) as caught:
        first.commit_transaction(100)
    assert caught.value.args[0].fatal()
    second.begin_transaction()
    second.produce(topic, b"of the second")
    second.commit_transaction(100)


def test_a_consumer_of_the_newer_protocol_reads(bootstrap: str, topic: str, fresh_name: FreshName) -> None:
    """A consumer group of KIP-848."""
    produced = Producer({"bootstrap.servers": bootstrap})
    produced.produce(topic, b"v")
    produced.flush()
    settings = {"group.id": fresh_name("group"), "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.subscribe([topic])
    message = consumer.poll(120)
    consumer.close()
    assert message is not None and message.error() is None
    assert message.value() == b"v"
