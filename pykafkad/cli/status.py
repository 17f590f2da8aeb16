"""`pykafkad status`: whether a Kafka is well, in a few lines."""

from __future__ import annotations

from pykafkad.cli import client, cluster_state
from pykafkad.cli.output import add_json, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

SUMMARY = "say whether a broker is well: cluster, brokers, topics, partitions without a leader, groups by state"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad status`."""
    client.add_bootstrap(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Prints what the cluster looks like; the exit code is 1 when a partition has no leader or lacks replicas."""
    with client.admin(options) as admin:
        found = _status(admin)
    if options.json:
        print_json(found)
    else:
        for name, value in found.items():
            print(f"{name.replace('_', ' ')}: {_shown(value)}")
    return 1 if found["offline_partitions"] or found["under_replicated_partitions"] else 0


def _shown(value: object) -> str:
    if isinstance(value, dict):
        value = ", ".join(f"{count} {state}" for state, count in value.items())
    elif isinstance(value, list):
        value = ", ".join(_broker(row) for row in value)
    return str(value) or "none"


def _broker(row: dict[str, Any]) -> str:
    text = f"{row['id']} at {row['address']}" if row["address"] else str(row["id"])
    return text if row["state"] == cluster_state.ACTIVE else f"{text} ({row['state']})"


def _status(admin: Any) -> dict[str, Any]:
    cluster = admin.describe_cluster()
    topics = admin.describe_topics()
    partitions = [row for topic in topics for row in topic["partitions"]]
    brokers = cluster_state.brokers(cluster, cluster_state.partitions(topics)).values()
    states: dict[str, int] = {}
    for group in admin.list_groups():
        state = group.get("group_state") or "unknown"
        states[state] = states.get(state, 0) + 1
    return {
        "cluster": cluster["cluster_id"],
        "brokers": [{"id": each.id, "address": each.address, "state": each.state} for each in brokers],
        "topics": sum(not topic["is_internal"] for topic in topics),
        "internal_topics": sum(bool(topic["is_internal"]) for topic in topics),
        "partitions": len(partitions),
        "offline_partitions": sum(row["leader_id"] < 0 for row in partitions),
        "under_replicated_partitions": sum(len(row["isr_nodes"]) < len(row["replica_nodes"]) for row in partitions),
        "groups": states,
    }
