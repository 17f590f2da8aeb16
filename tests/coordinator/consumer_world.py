"""Drives consumer groups (KIP-848) of one `GroupShard`: a cluster that changes, and members that send heartbeats."""

from __future__ import annotations

from pykafkad.coordinator import events
from pykafkad.errors import name
from pykafkad.wire import messages
from tests.coordinator.world import HeartbeatingMember, World


class Partition:
    def __init__(self, replicas):
        self.replicas = replicas


class Topic:
    def __init__(self, name, topic_id, count):
        self.name = name
        self.id = topic_id
        self.partitions = [Partition((1,)) for _ in range(count)]


class Broker:
    def __init__(self, rack=None):
        self.rack = rack


class Cluster:
    """A view of metadata as `group_types.ClusterView` describes it."""

    def __init__(self):
        self.offset = 1
        self.topics = {}
        self.brokers = {1: Broker()}
        self.features = {"group.version": 1}
        self.group_configs = {}
        self.made = 0

    def topic_by_id(self, topic_id):
        return next((topic for topic in self.topics.values() if topic.id == topic_id), None)

    def configs(self, resource_type, name):
        assert resource_type == 32
        return self.group_configs.get(name, {})

    def new_id(self):
        self.made += 1
        return self.made.to_bytes(16, "big")


class Member(HeartbeatingMember):
    """A member as a client keeps it: it applies each answer, and owns what it was given."""

    def __init__(self, world, member_id, group="g", instance=None, topics=("t",), regex=None, assignor=None, rack=None):
        super().__init__(world)
        self.member_id = member_id
        self.group = group
        self.instance = instance
        self.topics = topics
        self.regex = regex
        self.assignor = assignor
        self.rack = rack
        self.epoch = 0
        self.owned = {}

    def request(self, **changes):
        """The fields of the next heartbeat."""
        fields = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance,
            "topic_partitions": self.rows(),
        }
        if self.epoch == 0:
            fields |= {
                "rebalance_timeout_ms": 60_000,
                "subscribed_topic_names": None if self.topics is None else list(self.topics),
                "subscribed_topic_regex": self.regex,
                "server_assignor": self.assignor,
                "rack_id": self.rack,
                "topic_partitions": [],
            }
        return messages.ConsumerGroupHeartbeatRequest(**(fields | changes))

    def rows(self):
        return [
            messages.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in self.owned.items()
        ]

    def accept(self, answer):
        self.member_id, self.epoch = answer.member_id, answer.member_epoch
        if answer.assignment is not None:
            self.owned = {row.topic_id: set(row.partitions) for row in answer.assignment.topic_partitions}

    def forget(self):
        self.epoch, self.owned = 0, {}

    def leave(self, static=False):
        error = name(self.world.beat(self.request(member_epoch=-2 if static else -1)).error_code)
        self.forget()
        return error

    def change(self, topics=None, regex=None):
        """Subscribe to something else."""
        self.topics, self.regex = topics, regex
        return self.beat(
            subscribed_topic_names=list(topics or ()), subscribed_topic_regex=regex or "", rebalance_timeout_ms=60_000
        )

    @property
    def partitions(self):
        """What it owns, as (topic, partition)."""
        cluster = self.world.metadata
        return {
            (cluster.topic_by_id(topic_id).name, partition)
            for topic_id, partitions in self.owned.items()
            for partition in partitions
            if cluster.topic_by_id(topic_id) is not None
        }


class ConsumerWorld(World):
    """A `World` with a cluster. `topics` are names with numbers of partitions."""

    def __init__(self, seed=1, topics=(("t", 6),), **settings):
        self.may_describe = None
        self.metadata = Cluster()
        for topic, count in topics:
            self.metadata.topics[topic] = Topic(topic, self.metadata.new_id(), count)
        super().__init__(seed, **settings)

    def beat(self, request, client="client"):
        token = self.token()
        self.send(events.ConsumerGroupHeartbeat(token, request, client, "/127.0.0.1", self.may_describe))
        self.last_token = token
        return self.answered(token)

    def member(self, member_id, **options):
        return Member(self, member_id, **options)

    def joined(self, *member_ids, **options):
        """Members that have joined and have what they shall have."""
        members = [self.member(member_id, **options) for member_id in member_ids]
        for member in members:
            assert member.beat() == "NONE"
        self.settle(*members)
        return members

    def settle(self, *members, rounds=6):
        """Let the members send heartbeats until nothing changes any more."""
        for _ in range(rounds):
            self.advance(1.5)
            for member in members:
                assert member.beat() == "NONE", member.last

    def create(self, topic, count=3):
        self.metadata.topics[topic] = Topic(topic, self.metadata.new_id(), count)
        self.changed(topic, has_created=True)

    def grow(self, topic, count):
        self.metadata.topics[topic].partitions = [Partition((1,)) for _ in range(count)]
        self.changed(topic)

    def drop(self, topic):
        del self.metadata.topics[topic]
        self.changed(topic)

    def changed(self, topic, has_created=False):
        self.metadata.offset += 1
        self.send(events.MetadataChanged([topic], has_created))

    @property
    def group(self):
        return self.shard.groups["g"]
