"""`pykafkad cluster`: brokers, controllers and replicas of any Kafka: shows them, moves replicas and leaders."""

from __future__ import annotations

from pykafkad.cli import actions, client, cluster_moves, cluster_state
from pykafkad.cli.output import print_error, print_json, print_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from pykafkad.cli.cluster_state import Broker, Move, Partition, Place

SUMMARY = "describe brokers, controllers and replicas, move replicas and leaders, empty a broker before it goes"
HAS_ACTIONS = True
ROWS_SHOWN = 100
"""Partitions with a trouble, in a table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad cluster`."""
    add = actions.add_actions(parser)
    describe = add("describe", help="brokers with their replicas and lag, controllers, and partitions with a trouble")
    describe.add_argument("--all", action="store_true", help="every partition, not only those with a trouble")
    actions.add_common(parser, (describe, *cluster_moves.add_actions(add)))


def run(options: argparse.Namespace) -> int:
    """Runs one action; the exit code is 1 when it failed for any partition."""
    return {
        "describe": _describe,
        "move": cluster_moves.move,
        "elect": cluster_moves.elect,
        "drain": cluster_moves.drain,
        "balance": cluster_moves.balance,
        "undrain": cluster_moves.undrain,
    }[options.action](options)


def _describe(options: argparse.Namespace) -> int:
    with client.admin(options) as admin:
        found = _Picture(admin)
    if options.json:
        print_json(found.as_json(every=options.all))
    else:
        found.print(every=options.all)
    return 0


class _Picture:
    """The answers of a cluster to all that `describe` shows."""

    def __init__(self, admin: Any) -> None:
        cluster = admin.describe_cluster()
        topics = admin.describe_topics()
        self.refused: list[str] = []
        """What this user may not see, in sentences."""
        self.id = cluster["cluster_id"]
        self.partitions = cluster_state.partitions(topics)
        self.brokers = cluster_state.brokers(cluster, self.partitions)
        self.quorum = self._allowed("the controllers", None, lambda: cluster_state.quorum(admin))
        self.moves: dict[Place, Move] = self._allowed("what moves", {}, lambda: cluster_state.moves(admin))
        names = {each.topic for each in self.partitions}
        self.minimums: dict[str, int] = self._allowed("settings", {}, lambda: cluster_state.minimums(admin, names))
        self.lags = cluster_state.lags(self.partitions, cluster_state.end_offsets(admin, self.brokers, self.partitions))

    def _allowed(self, what: str, otherwise: Any, ask: Any) -> Any:
        """What `ask()` gives; `otherwise` where this user may not see it, or nobody can tell."""
        import kafka.errors

        try:
            return ask()
        except kafka.errors.IncompatibleBrokerVersion:
            return otherwise
        except kafka.errors.AuthorizationError as error:
            self.refused.append(f"{what}: {client.describe_error(error)}")
            return otherwise

    def troubles(self, each: Partition) -> list[str]:
        return cluster_state.troubles(each, self.minimums.get(each.topic), self.moves.get((each.topic, each.index)))

    def broker_rows(self) -> list[dict[str, Any]]:
        """One row for each broker."""
        members = () if self.quorum is None else self.quorum["members"]
        controllers = {row["node"] for row in members if row["status"] != "observer"}
        return [self._broker_row(each, each.id in controllers) for each in self.brokers.values()]

    def _broker_row(self, broker: Broker, is_controller: bool) -> dict[str, Any]:
        held = [each for each in self.partitions if broker.id in each.replicas]
        return {
            "broker": broker.id,
            "address": broker.address,
            "rack": broker.rack,
            "role": "broker,controller" if is_controller else "broker",
            "state": broker.state,
            "leaders": sum(each.leader == broker.id for each in held),
            "preferred": sum(each.replicas[0] == broker.id for each in held),
            "replicas": len(held),
            "not_in_sync": sum(broker.id not in each.in_sync for each in held),
            "lag": self.lags.get(broker.id),
        }

    def controller_rows(self) -> list[dict[str, Any]]:
        """One row for each member of the quorum. The leader reports the present as its own time."""
        rows = [] if self.quorum is None else self.quorum["members"]
        now = next((row["last_caught_up_ms"] for row in rows if row["status"] == "leader"), None)
        return [
            {
                **{name: value for name, value in row.items() if not name.endswith("_ms")},
                "seconds_behind": _behind(row, now),
            }
            for row in rows
        ]

    def partition_rows(self, *, every: bool) -> list[dict[str, Any]]:
        """One row for each partition with a trouble, or for `every` one."""
        rows = []
        for each in self.partitions:
            found = self.troubles(each)
            if not found and not every:
                continue
            move = self.moves.get((each.topic, each.index))
            rows.append(
                {
                    "topic": each.topic,
                    "partition": each.index,
                    "leader": each.leader,
                    "replicas": each.replicas,
                    "in_sync": each.in_sync,
                    "min_in_sync": self.minimums.get(each.topic),
                    "adding": [] if move is None else move.adding,
                    "removing": [] if move is None else move.removing,
                    "trouble": found,
                }
            )
        return rows

    def counts(self) -> dict[str, int]:
        """Partitions by what is the matter with them."""
        found = [self.troubles(each) for each in self.partitions]
        return {
            "partitions": len(self.partitions),
            **{
                word.replace("-", "_"): sum(word in each for each in found)
                for word in ("offline", "under-replicated", "under-min-isr", "moving")
            },
            "not_led_by_preferred": sum(each.leader != each.replicas[0] for each in self.partitions),
        }

    def as_json(self, *, every: bool) -> dict[str, Any]:
        """All of it as one JSON object."""
        return {
            "cluster": self.id,
            "brokers": self.broker_rows(),
            "quorum": self.quorum,
            "counts": self.counts(),
            "partitions": self.partition_rows(every=every),
            "refused": self.refused,
        }

    def print(self, *, every: bool) -> None:
        """Tables with a line above each."""
        counts = self.counts()
        print(f"cluster {self.id}: {_brokers(self.brokers)}")
        _print_rows(self.broker_rows())
        if self.quorum is not None:
            quorum = self.quorum
            print(
                f"\ncontrollers: {quorum['leader']} leads in epoch {quorum['epoch']}, "
                f"high watermark {quorum['high_watermark']}"
            )
            _print_rows(self.controller_rows())
        print(f"\npartitions: {counts.pop('partitions')}, {_counted(counts)}")
        rows = self.partition_rows(every=every)
        if rows:
            _print_rows(rows if every else rows[:ROWS_SHOWN])
            if len(rows) > ROWS_SHOWN and not every:
                print(f"… and {len(rows) - ROWS_SHOWN} more with a trouble; --all or --json has them")
        for sentence in self.refused:
            print_error(sentence)


def _brokers(brokers: dict[int, Broker]) -> str:
    states = [each.state for each in brokers.values()]
    text = f"{len(states)} broker{'' if len(states) == 1 else 's'}"
    others = [f"{states.count(word)} {word}" for word in (cluster_state.FENCED, cluster_state.GONE) if word in states]
    return f"{text} ({', '.join(others)})" if others else text


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items() if count) or "all well"


def _print_rows(rows: list[dict[str, Any]]) -> None:
    print_table(tuple(rows[0]), [tuple(row.values()) for row in rows])


def _behind(row: dict[str, Any], now_ms: int | None) -> float | None:
    """How long ago a member of the quorum had everything."""
    at_ms = row["last_caught_up_ms"]
    return None if at_ms is None or now_ms is None else max(0, now_ms - at_ms) / 1000
