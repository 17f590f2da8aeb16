"""Drives one `GroupShard`: sends events, performs effects as the shell does, and moves the time."""

from __future__ import annotations

from random import Random

from pykafkad.clock import ManualClock
from pykafkad.coordinator import events, record_codec
from pykafkad.coordinator.shard import GroupShard
from pykafkad.effects import Append, CancelTimer, Compute, Later, Reply, SetTimer, Tell, TimerFired
from pykafkad.errors import name
from pykafkad.wire import messages
from pykafkad.wire.batch import CONTROL_ABORT, CONTROL_COMMIT, BatchHeader, build_batch, control_key, parse_header
from pykafkad.wire.records import Record, iterate_records

TOPIC_ID = bytes(range(16))


class Settings:
    """The broker settings that a shard reads, with Kafka's defaults."""

    release = None
    group_initial_rebalance_delay_ms = 3_000
    group_max_size = 2**31 - 1
    group_min_session_timeout_ms = 6_000
    group_max_session_timeout_ms = 1_800_000
    group_consumer_session_timeout_ms = 45_000
    group_consumer_min_session_timeout_ms = 45_000
    group_consumer_max_session_timeout_ms = 60_000
    group_consumer_heartbeat_interval_ms = 5_000
    group_consumer_min_heartbeat_interval_ms = 5_000
    group_consumer_max_heartbeat_interval_ms = 15_000
    group_consumer_assignment_interval_ms = 1_000
    group_consumer_min_assignment_interval_ms = 0
    group_consumer_max_assignment_interval_ms = 15_000
    group_coordinator_rebalance_protocols = frozenset(("classic", "consumer", "streams"))
    group_consumer_max_size = 2**31 - 1
    group_consumer_assignors = ("uniform", "range")
    group_consumer_migration_policy = "bidirectional"
    group_consumer_regex_refresh_interval_ms = 600_000
    group_streams_session_timeout_ms = 45_000
    group_streams_min_session_timeout_ms = 45_000
    group_streams_max_session_timeout_ms = 60_000
    group_streams_heartbeat_interval_ms = 5_000
    group_streams_min_heartbeat_interval_ms = 5_000
    group_streams_max_heartbeat_interval_ms = 15_000
    group_streams_assignment_interval_ms = 1_000
    group_streams_min_assignment_interval_ms = 0
    group_streams_max_assignment_interval_ms = 15_000
    group_streams_initial_rebalance_delay_ms = 3_000
    group_streams_num_standby_replicas = 0
    group_streams_max_standby_replicas = 2
    group_streams_max_size = 2**31 - 1
    message_max_bytes = 1_048_588
    offset_metadata_max_bytes = 4_096
    offsets_retention_minutes = 10_080
    offsets_retention_check_interval_ms = 600_000


class Due:
    """The key of a timer that stands for an `effects.Later`."""

    def __init__(self, later: Later) -> None:
        self.event = later.event


class TimedWorld:
    """A machine with its timers; `send` feeds it."""

    clock: ManualClock
    timers: dict[object, float]

    def send(self, event: object) -> list[object]:
        raise NotImplementedError

    def advance(self, seconds: float) -> None:
        """Let time pass, and fire the timers that become due, in order."""
        until = self.clock.now() + seconds
        while self.timers and min(self.timers.values()) <= until:
            key, at = min(self.timers.items(), key=lambda entry: entry[1])
            self.clock.advance(max(at - self.clock.now(), 0.0))
            # Rounding may leave the clock just before the deadline. The shell never fires a timer early.
            self.clock._now = max(self.clock._now, at)
            del self.timers[key]
            self.send(key.event if isinstance(key, Due) else TimerFired(key))
        self.clock.advance(until - self.clock.now())


class World(TimedWorld):
    """A shard, its log as bytes, its timers, and the replies by token. `computing` are the computations under way; a
    request that waits for one has it ended, unless `chance` decides that it waits."""

    metadata: object = None

    def __init__(self, seed: int = 1, **settings: int) -> None:
        self.settings = Settings()
        for key, value in settings.items():
            setattr(self.settings, key, value)
        self.clock = ManualClock()
        self.random = Random(seed)
        self.shard = GroupShard(0, self.settings, self.random)
        self.log: list[tuple] = []
        self.timers: dict[object, float] = {}
        self.replies: dict[object, object] = {}
        self.computing: list[Compute] = []
        self.chance: Random | None = None
        self.heartbeats: list[object] = []
        self.tokens = 0
        self.timer_sets = 0
        self.told: list[tuple[str, dict[str, object]]] = []
        self.send(events.Loaded(self.metadata))

    # Events.

    def send(self, event: object) -> list[object]:
        effects = self.shard.step(event, self.clock.now(), self.clock.now_ms())
        for effect in effects:
            if type(effect) is Append:
                assert effect.log == ("__consumer_offsets", 0) and effect.records
                for record in effect.records:
                    key, value = record_codec.encode(record)
                    offset = len(self.log)
                    if effect.producer is None:
                        self.log.append((key, value))
                        self.shard.apply(record, offset)
                    else:
                        self.log.append((key, value, transactional(*effect.producer)))
                        self.shard.apply(record, offset, effect.producer[0])
            elif type(effect) is Reply:
                assert effect.token not in self.replies, f"{effect.token} answered twice"
                self.replies[effect.token] = effect.message
            elif type(effect) is SetTimer:
                self.timer_sets += 1
                self.timers[effect.key] = effect.at
            elif type(effect) is CancelTimer:
                self.timers.pop(effect.key, None)
            elif type(effect) is Compute:
                self.computing.append(effect)
            elif type(effect) is Tell:
                self.told.append((effect.event, effect.fields))
            elif type(effect) is Later:
                self.timers[Due(effect)] = self.clock.now()
            else:
                self.perform(effect)
        return effects

    def compute(self, steps: int = 10**6) -> None:
        """Go on with the computations, as the shell does in its turns."""
        for _ in range(steps):
            if not self.computing:
                break
            try:
                next(self.computing[0].steps)
            except StopIteration as stop:
                self.send(self.computing.pop(0).then(stop.value))
        self.advance(0)

    def answered(self, token: object) -> object:
        """The answer to a heartbeat, or None while it waits."""
        self.heartbeats.append(token)
        if self.computing and (self.chance is None or self.chance.random() < 0.4):
            self.compute()
        return self.replies.get(token) if self.chance else self.replies[token]

    def perform(self, effect: object) -> None:
        """Perform an effect that only one type of groups has."""
        raise AssertionError(effect)

    def replayed(self) -> GroupShard:
        """A fresh shard loaded from the bytes of the log."""
        shard = GroupShard(0, self.settings, Random(0))
        shard.load(as_batches(self.log))
        return shard

    def restart(self) -> None:
        """Drop all state but the log."""
        if self.shard.computations:
            ended = self.shard.step(events.Resigned(), self.clock.now(), self.clock.now_ms())
            for reply in [effect for effect in ended if type(effect) is Reply]:
                assert reply.token not in self.replies
                self.replies[reply.token] = reply.message
            for effect in self.computing:
                assert list(effect.steps) == [], "a computation goes on that nobody wants"
            self.computing.clear()
        self.shard = self.replayed()
        self.shard.random = self.random
        self.timers.clear()
        self.send(events.Loaded(self.metadata))

    # Requests. Each returns its token; `answer(token)` is None while the answer is delayed.

    def token(self) -> int:
        self.tokens += 1
        return self.tokens

    def answer(self, token: int) -> object:
        return self.replies.get(token)

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        client: str = "client",
        instance: str | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        protocol_type: str = "consumer",
        protocols: object = (("range", b"topics"),),
        id_required: bool = False,
        may_skip: bool = True,
    ) -> int:
        token = self.token()
        request = messages.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                messages.JoinGroupRequest.JoinGroupRequestProtocol(name=each, metadata=metadata)
                for each, metadata in protocols
            ],
        )
        self.send(events.JoinGroup(token, request, client, "/127.0.0.1", id_required, may_skip))
        return token

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> int:
        token = self.token()
        request = messages.SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                messages.SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=content)
                for each, content in (assignments or {}).items()
            ],
        )
        self.send(events.SyncGroup(token, request))
        return token

    def heartbeat(self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None) -> str:
        token = self.token()
        request = messages.HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        self.send(events.Heartbeat(token, request))
        return name(self.replies[token].error_code)

    def leave(self, *identities: object, group: str = "g") -> list[str]:
        """Each identity is a member id or `(member id, instance id)`. Returns the names of the errors."""
        token = self.token()
        pairs = [(each, None) if isinstance(each, str) else each for each in identities]
        request = messages.LeaveGroupRequest(
            group_id=group,
            members=[
                messages.LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=instance)
                for member_id, instance in pairs
            ],
        )
        self.send(events.LeaveGroup(token, request))
        return [name(row.error_code) for row in self.replies[token].members]

    def commit(
        self,
        offsets: dict[tuple[str, int], int],
        *,
        group: str = "g",
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str | None = "",
        retention_ms: int = -1,
        group_id_not_found: bool = True,
    ) -> list[str]:
        token = self.token()
        topics: dict[str, object] = {}
        for (topic, partition), offset in offsets.items():
            row = topics.setdefault(
                topic, messages.OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, topic_id=TOPIC_ID)
            )
            row.partitions.append(
                messages.OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=7,
                    committed_metadata=metadata,
                )
            )
        request = messages.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=list(topics.values()),
        )
        self.send(events.OffsetCommit(token, request, group_id_not_found))
        answer = self.replies[token]
        return [name(partition.error_code) for topic in answer.topics for partition in topic.partitions]

    def commit_transactional(
        self,
        offsets: dict[tuple[str, int], int],
        producer_id: int = 7,
        *,
        group: str = "g",
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str | None = "",
    ) -> list[str]:
        """Commit in the transaction of a producer, whose epoch is 0. Returns the names of the errors."""
        token = self.token()
        topics: dict[str, object] = {}
        for (topic, partition), offset in offsets.items():
            row = topics.setdefault(topic, messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=topic))
            row.partitions.append(
                messages.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=7,
                    committed_metadata=metadata,
                )
            )
        request = messages.TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=group,
            producer_id=producer_id,
            producer_epoch=0,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            topics=list(topics.values()),
        )
        self.send(events.TxnOffsetCommit(token, request))
        answer = self.replies[token]
        return [name(partition.error_code) for topic in answer.topics for partition in topic.partitions]

    def end_transaction(self, producer_id: int = 7, *, commit: bool = True) -> None:
        """Write a marker, as the shell does."""
        key = control_key(CONTROL_COMMIT if commit else CONTROL_ABORT)
        self.log.append((key, bytes(6), transactional(producer_id, 0) | {"is_control": True}))
        self.shard.end_transaction(producer_id, commit)

    def stable_offset(self, topic: str, partition: int, *, group: str = "g") -> int | str:
        """The offset for a reader that asks for stable ones, or the name of the error."""
        asked = messages.OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
        (row,) = self.shard.fetch_offsets(group, [asked], require_stable=True)[0].partitions
        return name(row.error_code) if row.error_code else row.committed_offset

    def committed(self, topic: str, partition: int, *, group: str = "g") -> int | None:
        found = self.shard.offsets.get(group, topic, partition)
        return None if found is None else found.offset

    def delete_group(self, group: str = "g") -> str:
        token = self.token()
        self.send(events.DeleteGroup(token, group))
        return name(self.replies[token].error_code)

    def delete_offsets(self, *partitions: tuple[str, int], group: str = "g") -> object:
        token = self.token()
        request = messages.OffsetDeleteRequest(
            group_id=group,
            topics=[
                messages.OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[messages.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index)],
                )
                for topic, index in partitions
            ],
        )
        self.send(events.OffsetDelete(token, request))
        return self.replies[token]

    def delete_topics(self, *names: str) -> None:
        self.send(events.TopicsDeleted([(each, TOPIC_ID) for each in names]))

    # Shortcuts.

    def state(self, group: str = "g") -> str | None:
        found = self.shard.groups.get(group)
        return None if found is None else found.state

    def stable(self, count: int = 1, *, group: str = "g", **options: object) -> tuple[int, list[str]]:
        """Bring `count` members into a stable generation. Returns (generation, member ids, the leader first)."""
        tokens = [self.join(group=group, **options) for _ in range(count)]
        self.advance(self.settings.group_initial_rebalance_delay_ms / 1000 * (2 if count > 1 else 1))
        answers = [self.replies[token] for token in tokens]
        leader = next(answer for answer in answers if answer.members)
        members = [leader.member_id] + [a.member_id for a in answers if a.member_id != leader.member_id]
        for member_id in members[1:]:
            self.sync(member_id, leader.generation_id, group=group)
        self.sync(members[0], leader.generation_id, {each: each.encode() for each in members}, group=group)
        assert self.state(group) == "Stable"
        return leader.generation_id, members


def transactional(producer_id: int, producer_epoch: int) -> dict[str, object]:
    """The options of a batch that belongs to a producer's transaction."""
    return {"producer_id": producer_id, "producer_epoch": producer_epoch, "is_transactional": True}


def as_batches(log: list[tuple]) -> list[tuple[BatchHeader, list[Record]]]:
    """Keys and values, with the options of a batch where there are any, as a log of batches of one record, at offsets
    from 0."""
    return [batch(offset, [entry[:2]], **(entry[2] if entry[2:] else {})) for offset, entry in enumerate(log)]


def batch(
    base_offset: int, entries: list[tuple[bytes, bytes | None]], **options: object
) -> tuple[BatchHeader, list[Record]]:
    """A batch as the log's reader returns it. `options` are those of `build_batch`."""
    view = memoryview(build_batch(entries, base_offset=base_offset, **options))
    header = parse_header(view)
    return header, list(iterate_records(view, header))


def subscription(*topics: str) -> bytes:
    """A version 1 subscription of the consumer protocol, as clients send it."""
    body = messages.encode(messages.ConsumerProtocolSubscription(topics=list(topics), user_data=None), 1)
    return (1).to_bytes(2, "big") + bytes(body)


def error(answer: object) -> str:
    """The name of an answer's error."""
    return name(answer.error_code)


class HeartbeatingMember:
    """A member as a client keeps it. A subclass says what its next heartbeat is (`request`), what an answer gives it
    (`accept`), and what it loses when it is fenced (`forget`). `last` is the last answer."""

    def __init__(self, world):
        self.world = world
        self.last = None
        self.waiting = None

    def beat(self, **changes):
        """Send a heartbeat and apply its answer. Returns the name of its error, or WAITING."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None and waiting in self.world.replies:
            return self.take(self.world.replies[waiting])
        if waiting is not None and self.world.chance.random() < 0.7:
            self.waiting = waiting
            return "WAITING"
        return self.take(self.world.beat(self.request(**changes)))

    def take(self, answer):
        """Apply an answer; None is one that waits. Returns as `beat` does."""
        if answer is None:
            self.waiting = self.world.last_token
            return "WAITING"
        self.last = answer
        error = name(answer.error_code)
        if error == "NONE":
            self.accept(answer)
        elif error in ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND"):
            self.forget()
        return error
