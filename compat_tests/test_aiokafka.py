"""aiokafka 0.14, asynchronous, with its own protocol implementation, which uses old API versions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import pytest
from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    OffsetAndMetadata,
    TopicPartition,
)
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import (
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
)

from compat_tests.samples import SAMPLES, SIZES, value_of

FreshName = Callable[..., str]
GROUP_SECONDS = 120


@contextlib.asynccontextmanager
async def started(client: object) -> AsyncIterator:
    """Start a client and stop it at the end."""
    await client.start()
    try:
        yield client
    finally:
        closing = client.close if isinstance(client, AIOKafkaAdminClient) else client.stop
        await closing()


async def create(bootstrap: str, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
    """Create a topic."""
    async with started(AIOKafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        answer = await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configs or {})])
        assert [error[1] for error in answer.topic_errors] == [0], answer
    return name


def producer(bootstrap: str, **options: object) -> AIOKafkaProducer:
    """A producer, not yet started."""
    return AIOKafkaProducer(bootstrap_servers=bootstrap, **options)


def consumer(bootstrap: str, *topics: str, **options: object) -> AIOKafkaConsumer:
    """A consumer, not yet started."""
    return AIOKafkaConsumer(*topics, bootstrap_servers=bootstrap, auto_offset_reset="earliest", **options)


async def take(client: AIOKafkaConsumer, count: int) -> list:
    """The next `count` records."""
    return [await asyncio.wait_for(client.getone(), 100) for _ in range(count)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_and_acks(
    bootstrap: str, fresh_name: FreshName, compression: str | None, acks: int | str
) -> None:
    """Records of every shape are read back unchanged and in order, with every codec and every acks."""

    async def run() -> None:
        topic = await create(bootstrap, fresh_name())
        # The client asserts that a record has a key or a value.
        samples = [sample for sample in SAMPLES if sample[:2] != (None, None)]
        # Kafka names a leader before that leader accepts records; a record without acks that is sent too early is lost
        # silently.
        async with started(consumer(bootstrap)) as reader:
            assert await reader.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 0}
        async with started(producer(bootstrap, acks=acks, compression_type=compression, linger_ms=20)) as sender:
            for sample in samples:
                await sender.send(topic, key=sample.key, value=sample.value, headers=sample.headers)
            await sender.flush()
        async with started(consumer(bootstrap, topic)) as reader:
            records = await take(reader, len(samples))
        assert [(record.key, record.value, list(record.headers)) for record in records] == [tuple(s) for s in samples]
        assert [record.offset for record in records] == list(range(len(samples)))

    asyncio.run(run())


def test_sizes_from_one_byte_to_one_megabyte(bootstrap: str, fresh_name: FreshName) -> None:
    """Records of one byte to one megabyte are read back unchanged."""

    async def run() -> None:
        topic = await create(bootstrap, fresh_name())
        async with started(producer(bootstrap)) as sender:
            for offset, size in enumerate(SIZES):
                assert (await sender.send_and_wait(topic, value_of(size))).offset == offset
        async with started(consumer(bootstrap, topic)) as reader:
            assert [record.value for record in await take(reader, len(SIZES))] == [value_of(size) for size in SIZES]

    asyncio.run(run())


def test_a_record_larger_than_the_topic_allows(bootstrap: str, fresh_name: FreshName) -> None:
    """The topic's `max.message.bytes` applies: MESSAGE_TOO_LARGE, and the next record is accepted."""

    async def run() -> None:
        topic = await create(bootstrap, fresh_name(), configs={"max.message.bytes": "2000"})
        async with started(producer(bootstrap)) as sender:
            with pytest.raises(MessageSizeTooLargeError):
                await sender.send_and_wait(topic, b"x" * 3000)
            assert (await sender.send_and_wait(topic, b"x" * 1000)).offset == 0

    asyncio.run(run())


def test_idempotent_producer(bootstrap: str, fresh_name: FreshName) -> None:
    """An idempotent producer's records arrive once and in order."""

    async def run() -> None:
        topic = await create(bootstrap, fresh_name())
        async with started(producer(bootstrap, enable_idempotence=True, max_batch_size=200)) as sender:
            for number in range(500):
                await sender.send(topic, b"%d" % number)
        async with started(consumer(bootstrap, topic)) as reader:
            assert [record.value for record in await take(reader, 500)] == [b"%d" % n for n in range(500)]

    asyncio.run(run())


def test_seek(bootstrap: str, fresh_name: FreshName) -> None:
    """Seek by offset, by time and to both ends; an offset outside the log without a reset policy is an error."""

    async def run() -> None:
        topic = await create(bootstrap, fresh_name())
        base_ms = int(time.time() * 1000) - 3_600_000
        async with started(producer(bootstrap)) as sender:
            for number in range(50):
                await sender.send_and_wait(topic, b"%d" % number, timestamp_ms=base_ms + number * 1000)
        partition = TopicPartition(topic, 0)
        reader = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="none")
        reader.assign([partition])
        async with started(reader):
            reader.seek(partition, 42)
            assert (await take(reader, 1))[0].value == b"42"
            await reader.seek_to_beginning(partition)
            assert (await take(reader, 1))[0].value == b"0"
            await reader.seek_to_end(partition)
            assert await reader.position(partition) == 50
            found = await reader.offsets_for_times({partition: base_ms + 10_001})
            assert (found[partition].offset, found[partition].timestamp) == (11, base_ms + 11_000)
            assert await reader.offsets_for_times({partition: base_ms + 50_000}) == {partition: None}
            assert await reader.beginning_offsets([partition]) == {partition: 0}
            assert await reader.end_offsets([partition]) == {partition: 50}
            reader.seek(partition, 1000)
            with pytest.raises(OffsetOutOfRangeError):
                await asyncio.wait_for(reader.getone(), 100)

    asyncio.run(run())


def test_long_poll_wakes_for_a_record(bootstrap: str, fresh_name: FreshName) -> None:
    """A waiting fetch is answered when a record arrives."""

    async def run() -> None:
        topic = await create(bootstrap, fresh_name())
        async with started(consumer(bootstrap, topic, fetch_max_wait_ms=60_000, request_timeout_ms=90_000)) as reader:
            waiting = asyncio.create_task(reader.getone())
            await asyncio.sleep(1)
            before = time.monotonic()
            async with started(producer(bootstrap)) as sender:
                await sender.send_and_wait(topic, b"awaited")
            assert (await waiting).value == b"awaited"
            assert time.monotonic() - before < 30

    asyncio.run(run())


def test_commit_and_resume(bootstrap: str, fresh_name: FreshName) -> None:
    """A group continues where it committed, and finds its metadata."""

    async def run() -> None:
        topic, group = await create(bootstrap, fresh_name()), fresh_name("group")
        async with started(producer(bootstrap)) as sender:
            for number in range(10):
                await sender.send_and_wait(topic, b"%d" % number)
        partition = TopicPartition(topic, 0)
        for start in (0, 4, 8):
            async with started(consumer(bootstrap, topic, group_id=group, enable_auto_commit=False)) as reader:
                records = await take(reader, 2)
                assert [record.offset for record in records] == [start, start + 1]
                await reader.commit({partition: OffsetAndMetadata(start + 4, "note")})
                assert await reader.committed(partition) == start + 4

    asyncio.run(run())


class Member(ConsumerRebalanceListener):
    """A member of a group, with its partitions and the records it received."""

    def __init__(self, bootstrap: str, topic: str, group: str, assignor: type) -> None:
        self.owned: frozenset[int] = frozenset()
        self.received: list[tuple[int, int]] = []
        strategy = {"partition_assignment_strategy": [assignor]}
        timing = {"heartbeat_interval_ms": 200, "session_timeout_ms": 60_000}
        self.consumer = consumer(bootstrap, group_id=group, **strategy, **timing)
        self.consumer.subscribe([topic], listener=self)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """All partitions are revoked before a rebalance: this client supports only the eager protocol."""
        self.owned = frozenset()

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Called with the complete new assignment."""
        self.owned = frozenset(partition.partition for partition in assigned)

    async def run(self) -> None:
        """Read until cancelled."""
        async for record in self.consumer:
            self.received.append((record.partition, record.offset))

    async def join(self) -> None:
        """Join the group and read in a task."""
        await self.consumer.start()
        self.task = asyncio.create_task(self.run())

    async def leave(self) -> None:
        """Commit and leave the group."""
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task
        await self.consumer.stop()
        self.owned = frozenset()


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for `condition`; an AssertionError names `what`."""
    deadline = time.monotonic() + GROUP_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"did not happen within {GROUP_SECONDS} s: {what}"
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("assignor", [RangePartitionAssignor, StickyPartitionAssignor], ids=["range", "sticky"])
def test_group_grows_and_shrinks(bootstrap: str, fresh_name: FreshName, assignor: type) -> None:
    """Every partition has exactly one owner at any size of the group, and every record is read exactly once."""
    partitions = 6

    async def run() -> None:
        topic, group = await create(bootstrap, fresh_name(), partitions), fresh_name("group")
        members: list[Member] = []
        everyone: list[Member] = []
        expected: list[tuple[int, int]] = []
        async with started(producer(bootstrap)) as sender:

            async def send_and_settle() -> None:
                def settled() -> bool:
                    shares = sorted(len(member.owned) for member in members)
                    owned = sorted(partition for member in members for partition in member.owned)
                    return owned == list(range(partitions)) and shares[-1] - shares[0] <= 1

                await until(settled, "exact and even ownership")
                for number in range(60):
                    sent = await sender.send_and_wait(topic, b"v", partition=number % partitions)
                    expected.append((sent.partition, sent.offset))
                await until(lambda: sum(len(m.received) for m in everyone) >= len(expected), "all is read")

            for _ in range(3):
                member = Member(bootstrap, topic, group, assignor)
                members.append(member)
                everyone.append(member)
                await member.join()
                await send_and_settle()
            while len(members) > 1:
                await members.pop(0).leave()
                await send_and_settle()
            await members.pop().leave()
        assert sorted(pair for member in everyone for pair in member.received) == sorted(expected)

    asyncio.run(run())


def with_admin(bootstrap: str, work: Callable[[AIOKafkaAdminClient], Awaitable[None]]) -> None:
    """Run `work` with an admin client."""

    async def run() -> None:
        async with started(AIOKafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
            await work(admin)

    asyncio.run(run())


def test_topic_administration(bootstrap: str, fresh_name: FreshName) -> None:
    """Topics are created, described, extended, configured and deleted, over old API versions."""
    topic = fresh_name()

    async def work(admin: AIOKafkaAdminClient) -> None:
        await admin.create_topics([NewTopic(topic, 2, 1)])
        again = await admin.create_topics([NewTopic(topic, 2, 1)])
        assert [error[1] for error in again.topic_errors] == [36]
        await admin.create_partitions({topic: NewPartitions(4)})
        await until_described(admin, topic, 4)
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "4711"})
        await admin.alter_configs([resource])
        await until_configured(admin, topic, {"retention.ms": "4711"})
        assert topic in await admin.list_topics()
        deleted = await admin.delete_topics([topic])
        assert [error[1] for error in deleted.topic_error_codes] == [0]

    with_admin(bootstrap, work)


async def until_described(admin: AIOKafkaAdminClient, topic: str, partitions: int) -> None:
    """Wait until the topic has that many partitions."""
    deadline = time.monotonic() + GROUP_SECONDS
    while True:
        (described,) = await admin.describe_topics([topic])
        if len(described["partitions"]) == partitions:
            return
        assert time.monotonic() < deadline, described
        await asyncio.sleep(0.05)


async def until_configured(admin: AIOKafkaAdminClient, topic: str, expected: dict[str, str]) -> None:
    """Wait until the topic has those settings."""
    deadline = time.monotonic() + GROUP_SECONDS
    while True:
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        values = {entry[0]: entry[1] for entry in answer.resources[0][4]}
        if expected.items() <= values.items():
            return
        assert time.monotonic() < deadline, values
        await asyncio.sleep(0.05)


def test_group_administration(bootstrap: str, fresh_name: FreshName) -> None:
    """Groups are found, listed and described, their offsets listed; records are deleted."""

    async def run() -> None:
        topic, group = await create(bootstrap, fresh_name()), fresh_name("group")
        partition = TopicPartition(topic, 0)
        async with started(producer(bootstrap)) as sender:
            for _ in range(5):
                await sender.send_and_wait(topic, b"v")
        async with started(consumer(bootstrap, topic, group_id=group)) as reader:
            await take(reader, 5)
            async with started(AIOKafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
                assert await admin.find_coordinator(group) == 1
                assert group in {name for name, _ in await admin.list_consumer_groups()}
                (answer,) = await admin.describe_consumer_groups([group])
                assert answer.groups[0][2] == "Stable"
        async with started(AIOKafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
            offsets = await admin.list_consumer_group_offsets(group)
            assert offsets[partition].offset == 5
            deleted = await admin.delete_records({partition: RecordsToDelete(before_offset=3)})
            assert deleted[partition] == 3

    asyncio.run(run())
