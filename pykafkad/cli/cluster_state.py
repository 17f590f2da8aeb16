"""What a Kafka cluster consists of, as any of its brokers tells: brokers, the controllers' quorum, partitions and their
replicas. It works with several brokers and with one, of pykafkad or of Kafka."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    Place = tuple[str, int]

ACTIVE, FENCED, GONE = "active", "fenced", "gone"
DEBUGGING_REPLICA = -2
"""The replica id with which ListOffsets is answered by a follower too (KIP-79), with the end of its own log."""
_LATEST = -1
_PARTITIONS_A_REQUEST = 10_000
METADATA_TOPIC = "__cluster_metadata"

Broker = namedtuple("Broker", ("id", "address", "rack", "state"))
Broker.__doc__ = """One broker. `state` is ACTIVE, FENCED (registered, without a session) or GONE (only partitions name
it, and it has no address)."""

Partition = namedtuple("Partition", ("topic", "index", "leader", "replicas", "in_sync"))
Partition.__doc__ = """One partition. `leader` is -1 without one; the first of `replicas` is the preferred leader."""

Move = namedtuple("Move", ("replicas", "adding", "removing"))
Move.__doc__ = """A reassignment that is under way: all replicas of now, those that come and those that go."""


def brokers(cluster: dict[str, Any], partitions: Iterable[Partition] = ()) -> dict[int, Broker]:
    """Node id to broker, sorted: those of kafka-python's `describe_cluster`, and those that only partitions name."""
    found = {
        row["broker_id"]: Broker(
            row["broker_id"],
            address(row["host"], row["port"]),
            row.get("rack"),
            FENCED if row.get("is_fenced") else ACTIVE,
        )
        for row in cluster["brokers"]
    }
    for each in partitions:
        for number in each.replicas:
            found.setdefault(number, Broker(number, None, None, GONE))
    return dict(sorted(found.items()))


def address(host: str, port: int) -> str:
    """Where a node is, as `--bootstrap` takes it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def partitions(topics: Iterable[dict[str, Any]]) -> list[Partition]:
    """The partitions of kafka-python's `describe_topics`, sorted. Topics with an error have none."""
    return sorted(
        Partition(
            topic["name"], row["partition_index"], row["leader_id"], list(row["replica_nodes"]), list(row["isr_nodes"])
        )
        for topic in topics
        for row in topic["partitions"]
    )


def moves(admin: Any) -> dict[Place, Move]:
    """Topic and partition to the reassignment that is under way."""
    return {
        (each.topic, each.partition): Move(row["replicas"], row["adding_replicas"], row["removing_replicas"])
        for each, row in admin.list_partition_reassignments().items()
    }


def minimums(admin: Any, topics: Iterable[str]) -> dict[str, int]:
    """Topic to its `min.insync.replicas`."""
    from kafka.admin import ConfigResource, ConfigResourceType

    name = "min.insync.replicas"
    wanted = [ConfigResource(ConfigResourceType.TOPIC, topic, {name: None}) for topic in sorted(set(topics))]
    if not wanted:
        return {}
    answer = admin.describe_configs(wanted, config_filter="all").get("topic", {})
    return {topic: int(found[name]["value"]) for topic, found in answer.items() if name in found}


def quorum(admin: Any) -> dict[str, Any] | None:
    """The controllers' quorum: `leader`, `epoch`, `high_watermark`, and `members` with id, status, address, directory,
    end offset, lag and times. None where there is no such quorum (Kafka with ZooKeeper)."""
    import kafka.errors

    try:
        answer = admin.describe_metadata_quorum()
    except kafka.errors.IncompatibleBrokerVersion:
        return None
    (state,) = (row for topic in answer["topics"] for row in topic["partitions"])
    if state["error"] is not None:
        raise kafka.errors.KafkaError(state["error"])
    known = {
        node["node_id"]: [address(each["host"], each["port"]) for each in node["listeners"]]
        for node in answer.get("nodes") or ()
    }
    ends = {row["replica_id"]: row["log_end_offset"] for row in state["current_voters"]}
    leader, end = state["leader_id"], ends.get(state["leader_id"], -1)
    members = [
        {
            "node": row["replica_id"],
            "status": "leader" if row["replica_id"] == leader else status,
            "address": ",".join(known.get(row["replica_id"], ())) or None,
            "end_offset": row["log_end_offset"],
            "lag": end - row["log_end_offset"] if min(end, row["log_end_offset"]) >= 0 else None,
            "last_fetch_ms": _time(row.get("last_fetch_timestamp", -1)),
            "last_caught_up_ms": _time(row.get("last_caught_up_timestamp", -1)),
        }
        for status, rows in (("voter", state["current_voters"]), ("observer", state["observers"]))
        for row in sorted(rows, key=lambda row: row["replica_id"])
    ]
    return {
        "leader": leader,
        "epoch": state["leader_epoch"],
        "high_watermark": state["high_watermark"],
        "members": members,
    }


def _time(timestamp_ms: int) -> int | None:
    return None if timestamp_ms < 0 else timestamp_ms


def end_offsets(admin: Any, known: dict[int, Broker], wanted: Iterable[Partition]) -> dict[int, dict[Place, int]]:
    """Node id to the end offsets of its replicas, as the broker itself has them. A broker that cannot be asked, and a
    replica that it does not serve, are left out."""
    import kafka.errors

    asked: dict[int, list[Place]] = {each.id: [] for each in known.values() if each.state == ACTIVE}
    for each in wanted:
        for number in each.replicas:
            if number in asked:
                asked[number].append((each.topic, each.index))
    found: dict[int, dict[Place, int]] = {}
    for number, places in asked.items():
        ends: dict[Place, int] = {}
        try:
            for first in range(0, len(places), _PARTITIONS_A_REQUEST):
                ends |= _end_offsets_of(admin, number, places[first : first + _PARTITIONS_A_REQUEST])
            found[number] = ends
        except kafka.errors.KafkaError:
            continue
    return found


def replicas_by_broker(admin: Any, topics: Collection[str]) -> dict[int, dict[Place, list[int]]]:
    """Node id to the replicas of the topics' partitions, as that broker knows them: each may be late by itself. A
    broker that cannot be asked is left out, and so are a broker's topics with an error."""
    import kafka.errors
    from kafka.protocol.metadata import MetadataRequest

    rows = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    found: dict[int, dict[Place, list[int]]] = {}
    for each in brokers(admin.describe_cluster()).values():
        if each.state != ACTIVE:
            continue
        request = MetadataRequest(topics=rows, allow_auto_topic_creation=False, min_version=4)
        try:
            answer = admin._manager.run(admin._manager.send, request, each.id)
        except kafka.errors.KafkaError:
            continue
        found[each.id] = {
            (topic.name, row.partition_index): list(row.replica_nodes)
            for topic in answer.topics
            if not topic.error_code
            for row in topic.partitions
        }
    return found


def _end_offsets_of(admin: Any, broker: int, places: list[Place]) -> dict[Place, int]:
    from kafka.protocol.consumer import ListOffsetsRequest

    topics: dict[str, list[Any]] = {}
    for topic, index in places:
        row = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=index, timestamp=_LATEST)
        topics.setdefault(topic, []).append(row)
    request = ListOffsetsRequest(
        replica_id=DEBUGGING_REPLICA,
        isolation_level=0,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
        min_version=1,
    )

    async def ask() -> Any:
        return await admin._manager.send(request, node_id=broker)

    answer = admin._manager.run(ask)
    return {
        (topic.name, row.partition_index): row.offset
        for topic in answer.topics
        for row in topic.partitions
        if not row.error_code
    }


def lags(wanted: Iterable[Partition], ends: dict[int, dict[Place, int]]) -> dict[int, int]:
    """Node id to the number of records by which its replicas are behind their leaders, for brokers whose replicas are
    known (`end_offsets`)."""
    behind = dict.fromkeys(ends, 0)
    for each in wanted:
        place = each.topic, each.index
        end = ends.get(each.leader, {}).get(place)
        for number in each.replicas:
            own = ends.get(number, {}).get(place)
            if end is not None and own is not None:
                behind[number] += max(0, end - own)
    return behind


def troubles(partition: Partition, minimum: int | None, move: Move | None) -> list[str]:
    """What is not as it should be with a partition, in words and by the rules of Kafka's own tools; empty when all is
    well."""
    found = []
    if partition.leader < 0:
        found.append("offline")
    if len(partition.in_sync) < len(partition.replicas) - (0 if move is None else len(move.adding)):
        found.append("under-replicated")
    if partition.leader < 0 or (minimum is not None and len(partition.in_sync) < minimum):
        found.append("under-min-isr")
    if move is not None:
        found.append("moving")
    return found
