"""What the brokers of a process hold at this moment, as plain values for the control API's page.

All functions are called on the loop, and read what there is: nothing is counted for them, and no log is opened. What
several brokers have of a partition is told once, as its leader has it."""

from __future__ import annotations

from pykafkad.metadata.image import TYPE_TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pykafkad.server.wiring import Process

    Rows = list[dict[str, Any]]

MOST_PARTITIONS = 20_000
"""Of so many logs the records are counted."""
MOST_GROUPS = 1000
MOST_CONNECTIONS = 1000
"""So many are listed."""


def counts(process: Process) -> dict[str, int]:
    """The brokers in numbers that only grow, and some that do not."""
    metrics = process.runtime.metrics
    return {
        "requests": metrics.requests,
        # What replicas copy is counted at the leader alone.
        "messages_in": sum(log.messages_in for broker in process.brokers for log in broker.partitions),
        "connections": sum(len(broker.socket_server) for broker in process.brokers),
        "topics": sum(not each.is_internal for each in process.controller.image.topics.values()),
        "errors": metrics.unexpected_errors,
    }


def topics(process: Process) -> Rows:
    """Every topic with its partitions, records and bytes; null where logs are not open yet, or too many."""
    image = process.controller.image
    sums: dict[str, list[int]] = {}
    unknown: dict[str, bool] = {}
    for place, log in enumerate(_led(process)):
        if place >= MOST_PARTITIONS:
            unknown[log.topic] = True
            continue
        if not log.is_loaded:
            # One that was made by this process, and that nobody has used, is empty.
            if not log.is_new:
                unknown[log.topic] = True
        else:
            found = sums.setdefault(log.topic, [0, 0])
            found[0] += log.end_offset - log.log_start_offset
            found[1] += log.size_bytes
    rows = []
    for topic in image.topics.values():
        records, size = sums.get(topic.name, (0, 0))
        is_known = topic.name not in unknown
        rows.append(
            {
                "name": topic.name,
                "partitions": len(topic.partitions),
                "is_internal": topic.is_internal,
                "records": records if is_known else None,
                "bytes": size if is_known else None,
            }
        )
    return rows


def topic(process: Process, name: str) -> dict[str, Any] | None:
    """One topic with its partitions, and the settings that it has of its own; None where there is none."""
    image = process.controller.image
    found = image.topics.get(name)
    if found is None:
        return None
    rows = []
    for state in found.partitions[:MOST_PARTITIONS]:
        log = _log(process, name, state)
        rows.append(
            {
                "partition": state.index,
                "leader": state.leader,
                "replicas": list(state.replicas),
                "isr": list(state.isr),
                "start_offset": None if log is None else log.log_start_offset,
                "end_offset": None if log is None else log.end_offset,
                "high_watermark": None if log is None else log.high_watermark,
                "bytes": None if log is None else log.size_bytes,
            }
        )
    return {"name": name, "partitions": rows, "settings": dict(image.configs(TYPE_TOPIC, name))}


def groups(process: Process) -> Rows:
    """Groups with the numbers of their members and of the records that they lag behind; null without an offset."""
    rows: Rows = []
    shards = [shard for broker in process.brokers for shard in broker.groups.shards()]
    for shard in shards:
        for group in list(shard.groups.values())[: MOST_GROUPS - len(rows)]:
            rows.append(
                {
                    "name": group.group_id,
                    "type": group.type.lower(),
                    "state": group.state,
                    "members": len(group.members),
                    "lag": _lag(process, shard.fetch_offsets(group.group_id, None)),
                }
            )
    return rows


def _lag(process: Process, committed: list[Any]) -> int | None:
    lag = None
    for row in committed:
        for each in row.partitions:
            topic = process.controller.image.topics.get(row.name)
            known = topic is not None and each.partition_index < len(topic.partitions)
            log = _log(process, row.name, topic.partitions[each.partition_index]) if topic and known else None
            if log is not None and each.committed_offset >= 0:
                lag = (lag or 0) + max(0, log.high_watermark - each.committed_offset)
    return lag


def connections(process: Process) -> Rows:
    """Who is connected, by which listener, as whom, and what is under way."""
    now = process.runtime.clock.now()
    rows = []
    found = [(broker, each) for broker in process.brokers for each in broker.socket_server.connections()]
    for broker, each in found[:MOST_CONNECTIONS]:
        software = getattr(each, "software", None) or ("", "")
        context = each.in_service
        rows.append(
            {
                "id": each.id,
                "broker": broker.node_id,
                "peer": each.peer,
                "listener": each.session.listener.name,
                "principal": each.session.principal,
                "software": " ".join(filter(None, software)),
                "client_id": "" if context is None else context.client_id,
                "waits_in": "" if context is None else context.route.row.name,
                "idle_seconds": int(max(0.0, now - each.transport.last_active)),
                "outbox_bytes": each.outbox_bytes,
            }
        )
    return rows


def _leads(broker: Any, log: Any) -> bool:
    topic = broker.image.topics.get(log.topic)
    states = () if topic is None else topic.partitions
    return log.partition < len(states) and bool(states[log.partition].leader == broker.node_id)


def _led(process: Process) -> Iterator[Any]:
    """The log of each partition, of its leader; all logs of one that is alone."""
    several = len(process.node_ids) > 1
    for broker in process.brokers:
        for log in broker.partitions:
            if not several or _leads(broker, log):
                yield log


def _log(process: Process, topic: str, state: Any) -> Any:
    """The log of a partition at its leader; without one in this process, at the first replica that is here."""
    brokers = sorted(process.brokers, key=lambda each: each.node_id != state.leader)
    return next(filter(None, (each.partitions.get(topic, state.index) for each in brokers)), None)


LISTS: dict[str, Callable[[Process], Any]] = {
    "counts": counts,
    "topics": topics,
    "groups": groups,
    "connections": connections,
}
"""What may be asked for, by name."""
