"""Loads of groups: the first record of a fresh member, many members that settle, heartbeats, share consumers."""

from __future__ import annotations

import statistics
import struct
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from pykafkad import uuids
from pykafkad.wire import messages

from . import loadgen, process, wire_bytes
from .asker import Asker, encoded
from .load import Load
from .loadgen import LoadFailed
from .request_loads import PARTITIONS, encoded_batch, produce_templates
from .session import Session

GROUP_KEY, GROUP_RESOURCE = 0, 32
KEEP = -1
"""A member epoch of a classic member, and a rebalance timeout that stays as it is."""
REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 27, 79
ACCEPT = 1
"""The type of an acknowledgement of what was processed."""
REBALANCE_TIMEOUT_MS = 60_000
LIMIT_SECONDS = 120
HEARTBEAT_SECONDS = 0.02


def fresh_member_id():
    """As clients make them: a random UUID as text."""
    return uuids.to_text(uuid.uuid4().bytes)


class ConsumerMember(Asker):
    """A member of a group of KIP-848, which tells the coordinator what it owns with each heartbeat."""

    def __init__(self, session, group_id, topic):
        super().__init__(session)
        self.group_id, self.topic = group_id, topic
        self.member_id = fresh_member_id()
        self.epoch = 0
        self.owned = {}

    def heartbeat(self):
        """Joins with the first one. Takes over what it is assigned, at once."""
        of = messages.ConsumerGroupHeartbeatRequest
        owned = [of.TopicPartitions(topic_id=topic_id, partitions=rows) for topic_id, rows in self.owned.items()]
        joins = self.epoch == 0
        answer = self.until_ready(
            "ConsumerGroupHeartbeat", 1, group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if joins else KEEP,
            subscribed_topic_names=[self.topic] if joins else None, topic_partitions=owned,
        )  # fmt: skip
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {row.topic_id: list(row.partitions) for row in answer.assignment.topic_partitions}

    def partitions(self):
        """The numbers of the partitions that it owns."""
        return [number for rows in self.owned.values() for number in rows]


class ClassicMember(Asker):
    """A member of a classic group. The leader gives each member as many partitions, in the order of the ids."""

    def __init__(self, session, group_id, partitions):
        super().__init__(session)
        self.group_id, self.count = group_id, partitions
        self.member_id = ""
        self.generation = 0
        self.assigned = b""

    def join(self):
        """Joins, or joins again, until a generation has begun for it."""
        of = messages.JoinGroupRequest
        while True:
            joined = self.ask(
                "JoinGroup", 9, group_id=self.group_id, session_timeout_ms=45_000, member_id=self.member_id,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS, protocol_type="consumer",
                protocols=[of.JoinGroupRequestProtocol(name="range", metadata=b"")],
            )  # fmt: skip
            if joined.error_code == MEMBER_ID_REQUIRED:
                self.member_id = joined.member_id
            elif joined.error_code == 0:
                self.member_id = joined.member_id
                if self._sync(joined):
                    return
            else:
                raise LoadFailed(f"JoinGroup: error {joined.error_code}")

    def _sync(self, joined):
        of = messages.SyncGroupRequest
        rows = []
        if joined.leader == self.member_id:
            ids = sorted(member.member_id for member in joined.members)
            rows = [
                of.SyncGroupRequestAssignment(
                    member_id=each,
                    assignment=b"".join(struct.pack(">i", n) for n in range(self.count) if n % len(ids) == place),
                )
                for place, each in enumerate(ids)
            ]
        synced = self.ask(
            "SyncGroup", 5, group_id=self.group_id, generation_id=joined.generation_id, member_id=self.member_id,
            protocol_type="consumer", protocol_name="range", assignments=rows,
        )  # fmt: skip
        if synced.error_code not in (0, REBALANCE_IN_PROGRESS):
            raise LoadFailed(f"SyncGroup: error {synced.error_code}")
        self.generation, self.assigned = joined.generation_id, synced.assignment
        return synced.error_code == 0

    def heartbeat(self):
        """Joins again if the group rebalances."""
        answer = self.ask(
            "Heartbeat", 4, group_id=self.group_id, generation_id=self.generation, member_id=self.member_id
        )
        if answer.error_code == REBALANCE_IN_PROGRESS:
            self.join()
        elif answer.error_code:
            raise LoadFailed(f"Heartbeat: error {answer.error_code}")

    def partitions(self):
        """The numbers of the partitions that it owns."""
        return [number for (number,) in struct.iter_unpack(">i", self.assigned)]


class FreshMemberLoad(Load):
    """The first member of a new group of KIP-848: from its first heartbeat to its first record."""

    GROUPS = 20

    def round(self, broker, bench):
        """`first_record_ms`, the median of some groups."""
        topic = bench.new_name("fresh")
        took = []
        with Session(broker.port) as session:
            topic_id = session.create_topics({topic: 1})[topic]
            session.call(wire_bytes.produce(13, topic, topic_id, 0, encoded_batch(None)).request)
            fetch = wire_bytes.fetch(17, topic, topic_id, 0, 0, max_bytes=1024 * 1024).request
            for number in range(self.GROUPS):
                member = ConsumerMember(session, f"{topic}-{number}", topic)
                member.find_coordinator(GROUP_KEY, member.group_id)
                began = time.perf_counter()
                while not member.partitions():
                    member.heartbeat()
                session.call(fetch)
                took.append(time.perf_counter() - began)
            session.delete_topics([topic])
        broker.wait_until_deleted(topic)
        return {"first_record_ms": statistics.median(took) * 1e3}


class SettleLoad(Load):
    """Many members join a group at once. It has settled when every partition has one owner and every member is in the
    same generation or epoch."""

    def __init__(self, protocol, members):
        self.protocol = protocol
        self.members = members

    def round(self, broker, bench):
        """`settle_ms`, from the first request."""
        topic = bench.new_name("settle")
        with ExitStack() as stack:
            session = stack.enter_context(Session(broker.port))
            session.create_topics({topic: self.members})
            Asker(session).find_coordinator(GROUP_KEY, topic)
            sessions = [stack.enter_context(Session(broker.port)) for _ in range(self.members)]
            settle = self._consumer if self.protocol == "consumer" else self._classic
            began = time.perf_counter()
            settle(topic, sessions, began + LIMIT_SECONDS)
            took = time.perf_counter() - began
            session.delete_topics([topic])
        broker.wait_until_deleted(topic)
        return {"settle_ms": took * 1e3}

    def _consumer(self, topic, sessions, deadline):
        members = [ConsumerMember(session, topic, topic) for session in sessions]
        while not self._has_settled(members, [member.epoch for member in members]):
            if time.perf_counter() > deadline:
                raise LoadFailed(f"{self.members} members have not settled after {LIMIT_SECONDS} s")
            for member in members:
                member.heartbeat()

    def _classic(self, topic, sessions, deadline):
        members = [ClassicMember(session, topic, self.members) for session in sessions]

        def live(member):
            member.join()
            while not self._has_settled(members, [each.generation for each in members]):
                if time.perf_counter() > deadline:
                    raise LoadFailed(f"{self.members} members have not settled after {LIMIT_SECONDS} s")
                time.sleep(HEARTBEAT_SECONDS)
                member.heartbeat()

        with ThreadPoolExecutor(self.members) as pool:
            list(pool.map(live, members))

    def _has_settled(self, members, generations):
        owned = sorted(number for member in members for number in member.partitions())
        return owned == list(range(self.members)) and len(set(generations)) == 1


class HeartbeatLoad(Load):
    """Heartbeats of members of KIP-848 to whom nothing happens, each of a group of its own."""

    CONNECTIONS = 20

    def __init__(self, groups):
        self.groups = groups
        self.prepared = {}

    def prepare(self, broker, bench):
        """Makes the groups, and writes the requests."""
        topic = bench.new_name("heartbeats")
        with Session(broker.port) as session:
            session.create_topics({topic: 1})
            Asker(session).find_coordinator(GROUP_KEY, topic)

        def join(first):
            members = []
            with Session(broker.port) as session:
                for number in range(first, self.groups, self.CONNECTIONS):
                    member = ConsumerMember(session, f"{topic}-{number}", topic)
                    while not member.partitions():
                        member.heartbeat()
                    member.heartbeat()
                    members.append(member)
            return members

        with ThreadPoolExecutor(self.CONNECTIONS) as pool:
            members = [member for each in pool.map(join, range(self.CONNECTIONS)) for member in each]
        templates = [
            wire_bytes.Template(
                encoded(
                    "ConsumerGroupHeartbeat", 1, group_id=member.group_id, member_id=member.member_id,
                    member_epoch=member.epoch, rebalance_timeout_ms=KEEP, subscribed_topic_names=None,
                    topic_partitions=None,
                ),
                # Behind size, correlation id, the header's tags and the throttle time.
                13,
                15,
            )
            for member in members
        ]  # fmt: skip
        path = bench.scratch / f"{topic}.templates"
        loadgen.write_templates(path, templates)
        self.prepared[broker.name] = (topic, path)

    def round(self, broker, bench):
        """Rates, latencies and CPU."""
        _, path = self.prepared[broker.name]
        options = bench.options
        figures = loadgen.run(
            broker.port, path, connections=self.CONNECTIONS, seconds=options.seconds, warmup=options.warmup,
            pid=broker.pid,
        )  # fmt: skip
        return figures | {"rss_mb": process.memory_mb(broker.pid)}

    def finish(self, broker, bench):
        """Removes the topic; the groups end when their members' sessions do."""
        if broker.name not in self.prepared:
            return
        topic, path = self.prepared.pop(broker.name)
        path.unlink()
        with Session(broker.port) as session:
            session.delete_topics([topic])
        broker.wait_until_deleted(topic)


class ShareConsumer(Asker):
    """The one member of a share group. Each of its fetches acknowledges what the one before it got."""

    def __init__(self, session, group_id, topic, topic_id):
        super().__init__(session)
        self.group_id, self.topic, self.topic_id = group_id, topic, topic_id
        self.member_id = fresh_member_id()
        self.epoch = self.session_epoch = 0
        self.acquired = {}

    def join(self):
        """Heartbeats until it is assigned something."""
        assigned = None
        while not assigned:
            answer = self.until_ready(
                "ShareGroupHeartbeat", 1, group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch,
                subscribed_topic_names=[self.topic] if self.epoch == 0 else None,
            )  # fmt: skip
            self.epoch = answer.member_epoch
            assigned = answer.assignment and answer.assignment.topic_partitions

    def fetch(self):
        """The count of records that it got."""
        of = messages.ShareFetchRequest
        partitions = []
        for index in range(PARTITIONS):
            batches = [
                of.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[ACCEPT])
                for first, last in self.acquired.get(index, ())
            ]
            if batches or self.session_epoch == 0:
                partitions.append(of.FetchPartition(partition_index=index, acknowledgement_batches=batches))
        answer = self.until_ready(
            "ShareFetch", 1, group_id=self.group_id, member_id=self.member_id,
            share_session_epoch=self.session_epoch, max_wait_ms=500, min_bytes=1, max_bytes=50 * 1024 * 1024,
            max_records=500, batch_size=500, forgotten_topics_data=[],
            topics=[of.FetchTopic(topic_id=self.topic_id, partitions=partitions)] if partitions else [],
        )  # fmt: skip
        self.session_epoch += 1
        self.acquired = {}
        for topic in answer.responses:
            for row in topic.partitions:
                if row.error_code or row.acknowledge_error_code:
                    raise LoadFailed(f"ShareFetch: errors {row.error_code}, {row.acknowledge_error_code}")
                self.acquired[row.partition_index] = [
                    (each.first_offset, each.last_offset) for each in row.acquired_records
                ]
        return sum(last - first + 1 for rows in self.acquired.values() for first, last in rows)


class ShareFetchLoad(Load):
    """One share consumer that fetches and acknowledges all records of a topic, at most 500 a time."""

    BATCHES, QUICK_BATCHES = 2000, 200
    """So many batches of 16 KB."""

    def round(self, broker, bench):
        """`records_per_s`, and the broker's CPU and memory."""
        topic = bench.new_name("shared")
        with Session(broker.port) as session:
            topic_id = session.create_topics({topic: PARTITIONS})[topic]
            fill = produce_templates(bench, topic, topic_id, encoded_batch(16 * 1024))
            batches = self.QUICK_BATCHES if bench.options.quick else self.BATCHES
            loadgen.run(broker.port, fill, connections=PARTITIONS, depth=5, requests=batches)
            fill.unlink()
            consumer = ShareConsumer(session, topic, topic, topic_id)
            self._read_from_the_start(consumer)
            consumer.find_coordinator(GROUP_KEY, topic)
            consumer.join()
            while not consumer.fetch():
                pass
            records = 0
            before, began = process.cpu_seconds(broker.pid), time.perf_counter()
            while got := consumer.fetch():
                records += got
                ended = time.perf_counter()
            cpu_seconds = process.cpu_seconds(broker.pid) - before
            session.delete_topics([topic])
        broker.wait_until_deleted(topic)
        return {
            "records_per_s": records / (ended - began),
            "cpu_us_per_request": cpu_seconds / (records / 500) * 1e6,
            "rss_mb": process.memory_mb(broker.pid),
        }

    def _read_from_the_start(self, consumer):
        of = messages.IncrementalAlterConfigsRequest
        change = of.AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
        group = of.AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=consumer.group_id, configs=[change])
        (row,) = consumer.ask("IncrementalAlterConfigs", 1, resources=[group], validate_only=False).responses
        if row.error_code:
            raise LoadFailed(f"IncrementalAlterConfigs: error {row.error_code}")
