"""CreateTopics, DeleteTopics and CreatePartitions."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.produce import batch_of_now
from compat_tests.scenarios.registry import configured_scenario, scenario


def wanted(name: str, partitions: int = 1, replicas: int = 1, configs: dict | None = None, **more: Any) -> Any:
    """One topic of a CreateTopics request."""
    entries = [
        part("CreateTopics", "CreatableTopicConfig", name=key, value=value) for key, value in (configs or {}).items()
    ]
    fields = {"name": name, "num_partitions": partitions, "replication_factor": replicas, "configs": entries, **more}
    return part("CreateTopics", "CreatableTopic", **fields)


def assigned(*rows: tuple[int, list[int]]) -> list:
    """Manual assignments of a CreateTopics request."""
    return [part("CreateTopics", "CreatableReplicaAssignment", partition_index=p, broker_ids=b) for p, b in rows]


def create(broker: Exchange, version: int, *topics: Any, note: str = "", **fields: Any) -> Any:
    """Record a CreateTopics request."""
    return broker.ask("CreateTopics", version, note=note, topics=list(topics), timeout_ms=10_000, **fields)


def partition_count(broker: Exchange, name: str) -> None:
    """Record how many partitions a topic has, or its error."""
    asked = [part("Metadata", "MetadataRequestTopic", name=name)]
    answer = broker.quietly("Metadata", 12, topics=asked, allow_auto_topic_creation=False)
    broker.record("partitions", f"{answer.topics[0].error_code} {len(answer.topics[0].partitions)}")


@scenario
def created(broker: Exchange) -> None:
    """Topics with counts, with the broker's defaults, and with an assignment; configs and id depend on the version."""
    for version in versions("CreateTopics"):
        configs = {"retention.ms": "5000", "cleanup.policy": "compact"}
        create(broker, version, wanted(broker.name(f"a{version}"), 3, 1, configs))
        create(broker, version, wanted(broker.name(f"d{version}"), -1, -1), note="defaults")
        manual = wanted(broker.name(f"m{version}"), -1, -1, assignments=assigned((0, [1]), (1, [1])))
        create(broker, version, manual, note="assignment")
        create(broker, version, wanted(broker.name(f"v{version}"), 2), validate_only=True, note="validate only")
        for kind in "admv":
            name = broker.name(f"{kind}{version}")
            if kind != "v":
                broker.topic_id(name)
            partition_count(broker, name)


@configured_scenario
def inherited_as_typed(broker: Exchange) -> None:
    """Inherited settings are returned as they were typed in the broker's file; DescribeConfigs shows them in Kafka's
    spelling.
    """
    name = broker.name("t")
    create(broker, 7, wanted(name))
    broker.topic_id(name)
    asked = part(
        "DescribeConfigs", "DescribeConfigsResource", resource_type=2, resource_name=name, configuration_keys=None
    )
    broker.ask("DescribeConfigs", 4, resources=[asked], include_synonyms=True)
    change = {"config_operation": 0, "name": "log.cleanup.policy", "value": " compact , delete"}
    policy = part("IncrementalAlterConfigs", "AlterableConfig", **change)
    for operation in (0, 1):
        policy.config_operation = operation
        row = part(
            "IncrementalAlterConfigs", "AlterConfigsResource", resource_type=4, resource_name="", configs=[policy]
        )
        broker.ask("IncrementalAlterConfigs", 1, resources=[row])
        create(broker, 7, wanted(broker.name("u")), validate_only=True)


@scenario
def refused(broker: Exchange) -> None:
    """Every invalid topic has its own error; a valid one beside it is created."""
    existing = broker.topic("existing")
    new = broker.name("new")
    broker.topic("dot.ted")
    wrong = {
        "existing": wanted(existing),
        "empty name": wanted(""),
        "dot": wanted("."),
        "two dots": wanted(".."),
        "space": wanted("a b"),
        "slash": wanted("a/b"),
        "long name": wanted("x" * 250),
        "zero partitions": wanted(new, 0),
        "partitions -2": wanted(new, -2),
        "zero replicas": wanted(new, 1, 0),
        "replicas -2": wanted(new, 1, -2),
        "two replicas": wanted(new, 1, 2),
        "assignment and count": wanted(new, 1, 1, assignments=assigned((0, [1]))),
        "assignment with a hole": wanted(new, -1, -1, assignments=assigned((0, [1]), (2, [1]))),
        "assignment not from 0": wanted(new, -1, -1, assignments=assigned((1, [1]))),
        "assignment to nobody": wanted(new, -1, -1, assignments=assigned((0, []))),
        "assignment twice one": wanted(new, -1, -1, assignments=assigned((0, [1, 1]))),
        "assignment to a stranger": wanted(new, -1, -1, assignments=assigned((0, [7]))),
        "assignment partition twice": wanted(new, -1, -1, assignments=assigned((0, [1]), (0, [1]))),
        "unknown config": wanted(new, configs={"no.such.config": "1"}),
        "bad number": wanted(new, configs={"retention.ms": "soon"}),
        "bad choice": wanted(new, configs={"cleanup.policy": "burn"}),
        "out of range": wanted(new, configs={"segment.bytes": "1"}),
        "null config": wanted(new, configs={"retention.ms": None}),
        "config of a broker": wanted(new, configs={"log.dirs": "/x"}),
        "name that collides": wanted(broker.name("dot_ted")),
    }
    for version in (2, 4, 5, 7):
        for note, topic in wrong.items():
            create(broker, version, topic, note=note)
        good = broker.name(f"good-{version}")
        create(broker, version, wanted(existing), wanted(good), note="good beside bad")
        create(broker, version, wanted(broker.name("twice")), wanted(broker.name("twice")), note="twice")
        create(broker, version, wanted(existing), validate_only=True, note="validate only")
    create(broker, 7, note="no topics")
    partition_count(broker, new)
    partition_count(broker, broker.name("twice"))


@scenario
def deleted(broker: Exchange) -> None:
    """Topics are deleted by name, from version 6 on also by id; unknown, repeated and invalid ones have errors."""
    for version in versions("DeleteTopics"):
        name = broker.topic(f"of-{version}")
        topic_id = broker.topic_id(name)
        if version < 6:
            fields = {"topic_names": [name, broker.name("none")]}
            broker.ask("DeleteTopics", version, timeout_ms=10_000, **fields)
            broker.ask("DeleteTopics", version, note="again", timeout_ms=10_000, **fields)
            broker.ask("DeleteTopics", version, note="twice", timeout_ms=10_000, topic_names=["a", "a"])
            continue

        def delete(note: str, *rows: dict[str, Any]) -> None:
            topics = [part("DeleteTopics", "DeleteTopicState", **row) for row in rows]
            broker.ask("DeleteTopics", 6, note=note, topics=topics, timeout_ms=10_000)

        delete("unknown id", {"topic_id": b"x" * 16})
        delete("id and name", {"topic_id": topic_id, "name": name})
        delete("neither", {"name": None})
        delete("by id", {"topic_id": topic_id}, {"name": broker.name("none")})
        delete("by id again", {"topic_id": topic_id})
        other = broker.topic("other")
        delete("once by name, once by id", {"name": other}, {"topic_id": broker.topic_id(other)})
        delete("by name", {"name": other})
        delete("nothing")


@scenario
def grown(broker: Exchange) -> None:
    """A topic gets more partitions, never fewer, with or without an assignment."""
    for version in versions("CreatePartitions"):
        name = broker.topic(f"of-{version}", 2)

        def grow(note: str, count: int, assignments: list | None = None, topic: str = name, **more: Any) -> None:
            rows = assignments and [
                part("CreatePartitions", "CreatePartitionsAssignment", broker_ids=b) for b in assignments
            ]
            topics = [part("CreatePartitions", "CreatePartitionsTopic", name=topic, count=count, assignments=rows)]
            broker.ask("CreatePartitions", version, note=note, topics=topics, timeout_ms=10_000, **more)  # noqa: B023

        grow("same", 2)
        grow("fewer", 1)
        grow("zero", 0)
        grow("negative", -1)
        grow("unknown topic", 5, topic=broker.name("none"))
        grow("validate only", 5, validate_only=True)
        grow("too few assignments", 4, [[1]])
        grow("too many assignments", 3, [[1], [1]])
        grow("assignment to a stranger", 3, [[9]])
        grow("assignment to nobody", 3, [[]])
        grow("assignment to two", 3, [[1, 1]])
        grow("by assignment", 3, [[1]])
        grow("by count", 5)
        topics = [
            part("CreatePartitions", "CreatePartitionsTopic", name=name, count=count, assignments=None)
            for count in (6, 7)
        ]
        broker.ask("CreatePartitions", version, note="twice", topics=topics, timeout_ms=10_000)
        broker.until(
            lambda name=name: broker.quietly(
                "Metadata", 12, topics=[part("Metadata", "MetadataRequestTopic", name=name)]
            ),
            lambda answer: len(answer.topics[0].partitions) == 5,
        )


@scenario
def recreated(broker: Exchange) -> None:
    """A topic with the name of a deleted one is a new topic with another id and an empty log."""
    name = broker.topic("same")
    first = broker.topic_id(name)
    broker.produce(name, 0, batch_of_now())
    ends(broker, name, "of the first")
    broker.quietly("DeleteTopics", 4, topic_names=[name], timeout_ms=10_000)
    broker.until(
        lambda: broker.quietly(
            "Metadata",
            12,
            topics=[part("Metadata", "MetadataRequestTopic", name=name)],
            allow_auto_topic_creation=False,
        ),
        lambda answer: answer.topics[0].error_code == 3,
    )
    broker.topic("same")
    ends(broker, name, "of the second")
    asked = part("Metadata", "MetadataRequestTopic", name=name)
    broker.ask("Metadata", 11, topics=[asked], allow_auto_topic_creation=False)
    assert broker.topic_id(name) != first


def ends(broker: Exchange, name: str, note: str) -> None:
    """Record where the log of a topic begins and ends."""
    rows = [part("ListOffsets", "ListOffsetsPartition", partition_index=0, timestamp=each) for each in (-2, -1)]
    for row in rows:
        topic = part("ListOffsets", "ListOffsetsTopic", name=name, partitions=[row])
        broker.ask("ListOffsets", 5, note=f"{note} {row.timestamp}", replica_id=-1, topics=[topic])
