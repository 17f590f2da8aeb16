"""Drives streams groups (KIP-1071) of one `GroupShard`: topics that come and go, and members that send heartbeats."""

from __future__ import annotations

from pykafkad.coordinator import events, record_codec
from pykafkad.coordinator.streams_events import StreamsGroupHeartbeat
from pykafkad.coordinator.streams_request import check
from pykafkad.effects import CreateInternalTopics
from pykafkad.errors import KafkaError, name
from pykafkad.wire import messages
from tests.coordinator.consumer_world import Cluster, Topic
from tests.coordinator.world import HeartbeatingMember, World

Request = messages.StreamsGroupHeartbeatRequest
KINDS = ("active", "standby", "warmup")


def internal(topic, partitions=0, replicas=0, **configs):
    """A repartition or changelog topic of a topology."""
    rows = [Request.KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()]
    return Request.TopicInfo(name=topic, partitions=partitions, replication_factor=replicas, topic_configs=rows)


def subtopology(number, sources=(), sinks=(), repartition=(), changelogs=(), groups=()):
    """`groups` are pairs of the positions of source topics and of repartition topics."""
    return Request.Subtopology(
        subtopology_id=str(number),
        source_topics=list(sources),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=[each if not isinstance(each, str) else internal(each) for each in repartition],
        state_changelog_topics=[each if not isinstance(each, str) else internal(each) for each in changelogs],
        copartition_groups=[
            Request.CopartitionGroup(source_topics=list(first), repartition_source_topics=list(second))
            for first, second in groups
        ],
    )


def topology(*subtopologies, epoch=0):
    return Request.Topology(epoch=epoch, subtopologies=list(subtopologies))


WORD_COUNT = topology(
    subtopology(0, sources=["text"], sinks=["g-words-repartition"]),
    subtopology(
        1, repartition=["g-words-repartition"], changelogs=[internal("g-counts-changelog", cleanup_policy="compact")]
    ),
)
STATELESS = topology(subtopology(0, sources=["text"]))
STATEFUL = topology(subtopology(0, sources=["text"], changelogs=["g-store-changelog"]))


class Member(HeartbeatingMember):
    """A member as a client keeps it: it applies each answer, and gives up and takes over tasks at once."""

    def __init__(self, world, member_id, process=None, endpoint=None, brings=STATELESS, group="g"):
        super().__init__(world)
        self.member_id = member_id
        self.process = process or f"process of {member_id}"
        self.endpoint = endpoint
        self.topology = brings
        self.group = group
        self.epoch = 0
        self.endpoint_epoch = -1
        self.tasks = {kind: {} for kind in KINDS}

    def request(self, **changes):
        """The next heartbeat."""
        fields = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "endpoint_information_epoch": self.endpoint_epoch,
            **{f"{kind}_tasks": self.rows(kind) for kind in KINDS},
        }
        if self.epoch == 0:
            fields |= {
                "rebalance_timeout_ms": 60_000,
                "topology": self.topology,
                "process_id": self.process,
                "client_tags": [],
                "user_endpoint": self.endpoint and Request.Endpoint(host=self.endpoint[0], port=self.endpoint[1]),
                **{f"{kind}_tasks": [] for kind in KINDS},
            }
        return Request(**(fields | changes))

    def rows(self, kind):
        return [
            Request.TaskIds(subtopology_id=each, partitions=sorted(numbers))
            for each, numbers in self.tasks[kind].items()
        ]

    def accept(self, answer):
        self.epoch = answer.member_epoch
        self.endpoint_epoch = answer.endpoint_information_epoch
        for kind in KINDS:
            rows = getattr(answer, f"{kind}_tasks")
            if rows is not None:
                self.tasks[kind] = {row.subtopology_id: set(row.partitions) for row in rows}

    def forget(self):
        self.epoch = 0
        self.tasks = {kind: {} for kind in KINDS}

    def leave(self, **changes):
        error = name(self.world.beat(self.request(member_epoch=-1, topology=None, **changes)).error_code)
        self.forget()
        return error

    def owned(self, kind="active"):
        """Tasks as texts like 0_1."""
        return sorted(f"{each}_{number}" for each, numbers in self.tasks[kind].items() for number in numbers)

    @property
    def statuses(self):
        return [(each.status_code, each.status_detail) for each in self.last.status]

    @property
    def codes(self):
        return [each.status_code for each in self.last.status]


class StreamsWorld(World):
    """A `World` with a cluster. `topics` are names with numbers of partitions. `asked` are the internal topics that the
    last heartbeats asked for, by name."""

    def __init__(self, seed=1, topics=(("text", 4),), **settings):
        self.metadata = Cluster()
        self.asked = {}
        for topic, count in topics:
            self.metadata.topics[topic] = Topic(topic, self.metadata.new_id(), count)
        super().__init__(seed, **settings)

    def perform(self, effect):
        assert type(effect) is CreateInternalTopics and effect.topics
        assert effect.token not in self.replies
        self.asked.update({topic.name: topic for topic in effect.topics})

    def beat(self, request, client="client"):
        """The answer. A request that the handler refuses does not reach the group."""
        try:
            check(request)
        except KafkaError as error:
            return messages.StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.text)
        token = self.token()
        self.send(StreamsGroupHeartbeat(token, request, client, "/127.0.0.1"))
        self.last_token = token
        return self.answered(token)

    def member(self, member_id, **options):
        return Member(self, member_id, **options)

    def set_topic(self, topic, count):
        """Create, grow or (with None) delete a topic."""
        self.metadata.offset += 1
        known = self.metadata.topics.pop(topic, None)
        if count is not None:
            topic_id = self.metadata.new_id() if known is None else known.id
            self.metadata.topics[topic] = Topic(topic, topic_id, count)
        self.send(events.MetadataChanged([topic], known is None))

    def create_asked(self):
        for asked in list(self.asked.values()):
            if asked.name not in self.metadata.topics:
                self.set_topic(asked.name, asked.num_partitions)
        self.asked.clear()

    @property
    def group(self):
        return self.shard.groups.get("g")

    def joined(self, *members, rounds=12):
        """Let members send heartbeats until all have what they shall have."""
        for _ in range(rounds):
            for member in members:
                member.beat()
            self.create_asked()
            self.advance(2)
        return members


def records_since(world, start):
    """The names of the records' types, with a minus for tombstones."""
    rows = []
    for key, value in world.log[start:]:
        record = record_codec.decode(key, value)
        text = type(record.key).__name__.removeprefix("StreamsGroup").removesuffix("Key")
        rows.append(f"-{text}" if record.value is None else text)
    return rows
