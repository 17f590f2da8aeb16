"""A topology held against the topics that exist (KIP-1071): partition counts, tasks, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.coordinator.streams_topics import (
    INCORRECTLY_PARTITIONED_TOPICS,
    MISSING_INTERNAL_TOPICS,
    MISSING_SOURCE_TOPICS,
    configure,
)
from pykafkad.coordinator.streams_topology import of_request
from pykafkad.errors import KafkaError, name
from tests.coordinator.consumer_world import Cluster, Topic
from tests.coordinator.streams_world import internal, subtopology, topology

KAFKA = Path(__file__).parents[1] / "golden" / "kafka_4_3_1" / "streams_topics.tsv"


def configured(*subtopologies, **topics):
    """The topology with topics of these numbers of partitions."""
    cluster = Cluster()
    for topic, count in topics.items():
        cluster.topics[topic] = Topic(topic, cluster.new_id(), count)
    return configure(of_request(topology(*subtopologies)), cluster)


def counts(found):
    return {each.name: each.partition_count for each in found.missing}


def tasks(found):
    return {each: subtopology.task_count for each, subtopology in found.subtopologies.items()}


def test_a_subtopology_has_a_task_for_each_partition_of_its_largest_source():
    found = configured(subtopology(0, sources=["a", "b"], changelogs=["c"]), a=2, b=5, c=5)
    assert found.is_ready and tasks(found) == {"0": 5}


def test_repartition_topics_have_as_many_partitions_as_the_subtopology_that_writes_them():
    found = configured(
        subtopology(0, sources=["a", "b"], sinks=["r"]),
        subtopology(1, repartition=["r"], sinks=["s"], changelogs=["c"]),
        subtopology(2, repartition=["s", internal("fixed", partitions=9)]),
        a=2,
        b=4,
    )
    assert counts(found) == {"r": 4, "s": 4, "c": 4, "fixed": 9}
    assert tasks(found) == {"0": 4, "1": 4, "2": 9}
    assert found.status == (MISSING_INTERNAL_TOPICS, "Internal topics are missing: r, c, s and 1 additional topics")


def test_missing_source_topics_are_named():
    found = configured(subtopology(0, sources=["d", "c", "b", "a", "x"]), subtopology(1, sources=["a"]), x=1)
    assert found.status == (MISSING_SOURCE_TOPICS, "Source topics a, b, c and 1 additional topics are missing.")
    assert not found.subtopologies and not found.missing


def test_copartitioned_topics_follow_the_external_ones():
    both = subtopology(1, sources=["a", "b"], repartition=["r"], groups=[((0, 1), (0,))])
    writer = subtopology(0, sources=["w"], sinks=["r"])
    assert counts(configured(writer, both, a=3, b=3, w=7)) == {"r": 3}
    found = configured(writer, both, a=3, b=4, w=7)
    text = "Following topics do not have the same number of partitions: [{a=3, b=4}]"
    assert found.status == (INCORRECTLY_PARTITIONED_TOPICS, text) and not found.subtopologies


def test_copartitioned_repartition_topics_have_one_number_of_partitions():
    writers = (subtopology(0, sources=["a"], sinks=["r"]), subtopology(1, sources=["b"], sinks=["s"]))
    found = configured(*writers, subtopology(2, repartition=["r", "s"], groups=[((), (0, 1))]), a=2, b=6)
    assert counts(found) == {"r": 6, "s": 6}
    fixed = subtopology(2, repartition=[internal("r", partitions=4), "s"], groups=[((), (0, 1))])
    assert counts(configured(*writers, fixed, a=2, b=6)) == {"r": 4, "s": 4}
    two = [internal("r", partitions=4), internal("s", partitions=5)]
    found = configured(*writers, subtopology(2, repartition=two, groups=[((), (0, 1))]), a=2, b=6)
    text = "Following topics do not have the same number of partitions: [{r=4, s=5}]"
    assert found.status == (INCORRECTLY_PARTITIONED_TOPICS, text)
    found = configured(
        *writers,
        subtopology(2, sources=["a"], repartition=[internal("r", partitions=4)], groups=[((0,), (0,))]),
        a=2,
        b=6,
    )
    text = (
        "Number of partitions [4] of repartition topic [r] doesn't match number of partitions [2] of the source topic."
    )
    assert found.status == (INCORRECTLY_PARTITIONED_TOPICS, text)


def test_internal_topics_that_exist_must_have_the_right_number_of_partitions():
    found = configured(subtopology(0, sources=["a"], changelogs=["c"]), a=2, c=3)
    text = "Existing topic c has different number of partitions: expected 2, found 3"
    assert found.status == (INCORRECTLY_PARTITIONED_TOPICS, text)


def test_internal_topics_are_created_as_the_topology_says():
    found = configured(
        subtopology(
            0, sources=["a"], changelogs=[internal("c", replicas=3, segment_bytes="5", cleanup_policy="compact")]
        ),
        a=2,
    )
    row = found.missing[0].creatable()
    assert (row.name, row.num_partitions, row.replication_factor) == ("c", 2, 3)
    assert {each.name: each.value for each in row.configs} == {"segment.bytes": "5", "cleanup.policy": "compact"}


def loop(number, source, sink):
    return subtopology(number, repartition=[source], sinks=[sink])


@pytest.mark.parametrize(
    ("subtopologies", "error", "text"),
    [
        (
            (subtopology(0, sources=["a"]), loop(1, "r", "s"), loop(2, "s", "r")),
            "STREAMS_INVALID_TOPOLOGY",
            "Failed to compute number of partitions for all repartition topics. "
            "There may be loops in the topology that cannot be resolved.",
        ),
        (
            (subtopology(0, sources=["a"], repartition=["r"]),),
            "STREAMS_INVALID_TOPOLOGY",
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic is "
            "never used as a sink topic.",
        ),
        ((subtopology(7),), "STREAMS_INVALID_TOPOLOGY", "No source topics found for subtopology 7"),
        ((subtopology(0, sources=["a"], groups=[((1,), ())]),), "UNKNOWN_SERVER_ERROR", None),
        ((subtopology(0, sources=["a"], groups=[((-1,), ())]),), "UNKNOWN_SERVER_ERROR", None),
        ((subtopology(0, sources=["a"], changelogs=["c", "c"]),), "UNKNOWN_SERVER_ERROR", None),
        ((subtopology(0, repartition=[internal("r", partitions=-1)]),), "UNKNOWN_SERVER_ERROR", None),
    ],
)
def test_topologies_that_cannot_be(subtopologies, error, text):
    with pytest.raises(KafkaError) as raised:
        configured(*subtopologies, a=2)
    assert (name(raised.value.code), raised.value.text) == (error, text)


def test_many_tasks():
    """A topology of ten thousand tasks, in a chain of subtopologies."""
    chain = [subtopology(0, sources=["a"], sinks=["r1"])]
    chain += [loop(number, f"r{number}", f"r{number + 1}") for number in range(1, 100)]
    found = configured(*reversed(chain), a=100)
    assert sum(tasks(found).values()) == 10_000


def test_what_the_coordinator_watches():
    watched = of_request(
        topology(
            subtopology(0, sources=["a"], sinks=["sink"], changelogs=["c"]),
            subtopology(1, repartition=["r"]),
        )
    )
    assert set(watched.required_topics) == {"a", "c", "r"} and watched.source_topics == {"a": "0", "r": "1"}


# Beside Kafka.


def pieces(text, separator=","):
    return text.split(separator) if text else []


def with_counts(text):
    return {name: int(count) for name, count in (each.split(":") for each in pieces(text))}


def parsed(text):
    """A subtopology as the file has it."""
    number, sources, sinks, repartition, changelogs, groups = text.split("|")
    return subtopology(
        number,
        pieces(sources),
        pieces(sinks),
        [internal(name, partitions=count) for name, count in with_counts(repartition).items()],
        [internal(name) for name in with_counts(changelogs)],
        [[[int(at) for at in pieces(side, ".")] for side in group.split("/")] for group in pieces(groups, "+")],
    )


def decided(topics, text):
    """What we decide, in the notation of the file: the topics that exist, and the subtopologies."""
    try:
        found = configured(*map(parsed, text.split(";")), **with_counts(topics))
        status = "ready" if found.status is None else f"{found.status[0]} {found.status[1]}"
        counted = tasks(found), counts(found)
    except KafkaError as error:
        is_topology = name(error.code) == "STREAMS_INVALID_TOPOLOGY"
        status = f"error StreamsInvalidTopologyException {error.text}" if is_topology else "error Unknown"
        counted = {}, {}
    return "\t".join([status, *(",".join(f"{each}:{number}" for each, number in rows.items()) for rows in counted)])


def test_it_decides_as_kafka_does():
    rows = [line for line in KAFKA.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert len(rows) >= 150
    for row in rows:
        topics, text, expected = row.split("\t", 2)
        assert decided(topics, text) == expected, row
