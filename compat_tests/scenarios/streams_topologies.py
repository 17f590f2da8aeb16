"""Topologies of streams groups (KIP-1071): internal topics, and what a topology may not be."""

from __future__ import annotations

from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.registry import scenario
from compat_tests.scenarios.streams_groups import API, FIRST, JOIN, SECOND, THIRD, Group, info, subtopology, topology

TOPIC_RESOURCE = 2


@scenario
def streams_group_internal_topics(broker: Exchange) -> None:
    """The coordinator makes repartition topics and changelogs, with the settings and partitions of the topology."""
    group = Group(broker, partitions=3)
    repartition, fixed, changelog = (f"{group.name}-{kind}" for kind in ("a-repartition", "b-repartition", "changelog"))
    group.topology = topology(
        subtopology(0, group.topic, repartition_sink_topics=[repartition, fixed]),
        subtopology(
            1,
            repartition_source_topics=[
                info(repartition, cleanup_policy="delete", segment_bytes="52428800", retention_ms="-1")
            ],
            state_changelog_topics=[info(changelog, 0, 1, cleanup_policy="compact")],
        ),
        subtopology(2, repartition_source_topics=[info(fixed, 5, 1)]),
    )
    member = group.member()
    answer = member.beat(quietly=True)
    assert [status.status_code for status in answer.status] == [3], answer
    group.internal(repartition, fixed, changelog)
    member.beat("topics are there")
    member.beat("assigned")
    group.describe("assigned")
    rows = [part("Metadata", "MetadataRequestTopic", name=name) for name in (repartition, fixed, changelog)]
    broker.ask("Metadata", 12, topics=rows, allow_auto_topic_creation=False)
    for name in (repartition, changelog):
        keys = ["cleanup.policy", "retention.ms", "segment.bytes"]
        resource = part(
            "DescribeConfigs",
            "DescribeConfigsResource",
            resource_type=TOPIC_RESOURCE,
            resource_name=name,
            configuration_keys=keys,
        )
        broker.ask("DescribeConfigs", 4, note=name, resources=[resource])


@scenario
def streams_group_internal_topics_that_cannot_be(broker: Exchange) -> None:
    """A topic whose creation fails is named with the reason, as long as Kafka remembers it."""
    group = Group(broker)
    changelog = f"{group.name}-changelog"
    group.topology = topology(
        subtopology(0, group.topic, state_changelog_topics=[info(changelog, 0, 7, cleanup_policy="compact")])
    )
    member = group.member()
    member.beat(quietly=True)
    broker.until(lambda: member.beat(quietly=True), lambda answer: "Creation failed" in answer.status[0].status_detail)
    member.beat("cannot be created")
    group.describe("not ready")


@scenario
def streams_group_bad_topologies(broker: Exchange) -> None:
    """Names that may not be, patterns, counts of partitions, topics that are missing."""
    group = Group(broker)
    small = broker.topic("small", 1)
    name = group.name
    for number, (note, made) in enumerate(
        {
            "an internal topic": topology(subtopology(0, "__consumer_offsets")),
            "two internal topics": topology(
                subtopology(0, "__consumer_offsets", repartition_sink_topics=["__transaction_state"])
            ),
            "an invalid name": topology(subtopology(0, "a b")),
            "an invalid changelog": topology(subtopology(0, group.topic, state_changelog_topics=[info("a/b")])),
            "a pattern": topology(subtopology(0, source_topic_regex=["a.*"])),
            "a changelog with partitions": topology(
                subtopology(0, group.topic, state_changelog_topics=[info(f"{name}-c", 3)])
            ),
            "no subtopology": topology(),
            "a missing source": topology(subtopology(0, f"{name}-none")),
            "missing sources": topology(*(subtopology(each, f"{name}-none-{each}") for each in range(7))),
            "sources of two sizes": topology(
                subtopology(
                    0, group.topic, small, copartition_groups=[part(API, "CopartitionGroup", source_topics=[0, 1])]
                )
            ),
            "a repartition topic of another size": topology(
                subtopology(0, group.topic, repartition_sink_topics=[f"{name}-r"]),
                subtopology(
                    1,
                    group.topic,
                    repartition_source_topics=[info(f"{name}-r", 3)],
                    copartition_groups=[
                        part(API, "CopartitionGroup", source_topics=[0], repartition_source_topics=[0])
                    ],
                ),
            ),
            "a topic of another size": topology(
                subtopology(0, group.topic, repartition_sink_topics=[small]),
                subtopology(1, repartition_source_topics=[info(small, 3)]),
            ),
            "a cycle": topology(
                subtopology(0, repartition_source_topics=[info(f"{name}-x")], repartition_sink_topics=[f"{name}-y"]),
                subtopology(1, repartition_source_topics=[info(f"{name}-y")], repartition_sink_topics=[f"{name}-x"]),
            ),
            "a repartition topic that nobody writes": topology(
                subtopology(0, group.topic), subtopology(1, repartition_source_topics=[info(f"{name}-z")])
            ),
        }.items()
    ):
        values = group.member().fields(topology=made, group_id=f"{name}-{number}")
        broker.until(
            lambda values=values: broker.quietly(API, 0, **{**values, "member_epoch": 1, "topology": None}),
            lambda answer: answer.error_code not in (14, 15, 16),
        )
        broker.ask(API, 0, note=note, **values)
        broker.ask("StreamsGroupDescribe", 0, note=note, group_ids=[f"{name}-{number}"])


@scenario
def streams_group_topology_changes(broker: Exchange) -> None:
    """A topology is updated with a higher epoch only; members with an older one are told."""
    group = Group(broker)
    other = broker.topic("other", 2)
    old, new = group.topology, topology(subtopology(0, group.topic), subtopology(1, other), epoch=1)
    first, second = group.member(FIRST), group.member(SECOND)
    first.beat("first")
    group.topology = topology(subtopology(0, other))
    second.beat("another topology of the same epoch")
    group.topology = new
    second.beat("a higher epoch")
    group.topology = old
    second.beat("a lower epoch", member_id=THIRD, member_epoch=JOIN)
    first.rejoin()
    group.topology = new
    first.beat("joins with the new topology")
    group.describe()


@scenario
def streams_group_source_topics_come_and_go(broker: Exchange) -> None:
    """A group whose source topic is missing begins when it is there, and stops when it is deleted."""
    group = Group(broker)
    later = broker.name("later")
    group.topology = topology(subtopology(0, group.topic, later))
    member = group.member()
    member.beat("one source is missing")
    group.describe("not ready")
    broker.topic("later", 6)
    broker.until(lambda: member.beat(quietly=True), lambda answer: not answer.status)
    member.beat("assigned")
    group.describe("ready")
    row = part("DeleteTopics", "DeleteTopicState", name=later)
    broker.quietly("DeleteTopics", 6, topics=[row], timeout_ms=10_000)
    broker.in_effect()
    broker.until(lambda: member.beat(quietly=True), lambda answer: answer.status)
    member.beat("it is gone")
    group.describe("gone")
