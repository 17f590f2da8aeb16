"""`pykafkad cluster` against several brokers on a thread of this process."""

from __future__ import annotations

import argparse
import gc
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from pykafkad.cli import client, cluster_moves, cluster_state, reach
from pykafkad.cli.commands import main
from pykafkad.cli.output import Failure
from pykafkad.testing import Broker
from pykafkad.testing.waits import until

# kafka-python reads its schemas with what Python 3.11 warns of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]
Run = Callable[..., tuple[str, str]]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no broker that does not answer."""
    monkeypatch.setattr(reach, "TIMEOUT_S", 60.0)
    monkeypatch.setattr(client, "BOOTSTRAP_TIMEOUT_MS", 60_000)
    monkeypatch.setattr(cluster_moves, "PAUSE_SECONDS", 0.01)


@contextmanager
def started() -> Iterator[Broker]:
    """Four brokers, with a topic of three replicas."""
    settings = {"default.replication.factor": 3, "min.insync.replicas": 2}
    with Broker(
        brokers=4, racks=["a", "b"], settings=settings, topics={"orders": 6}, records={"orders": ["v"] * 12}
    ) as made:
        yield made
    with warnings.catch_warnings():
        # kafka-python leaves the socket of a connection that was refused to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def brokers() -> Iterator[Broker]:
    """Brokers that a test may change."""
    with started() as made:
        yield made


@pytest.fixture(scope="module")
def unchanged() -> Iterator[Broker]:
    """Brokers that no test changes."""
    with started() as made:
        yield made


@pytest.fixture
def run(brokers: Broker, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs an action; what it printed, and what it told."""

    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        done = main(["cluster", *arguments, "--bootstrap", of_third(brokers)])
        shown = capsys.readouterr()
        assert done == code, shown
        return shown.out, shown.err

    return run


def of_third(brokers: Broker) -> str:
    """The address of a broker that no test stops."""
    return brokers.bootstrap.split(",")[2]


def described(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("describe", "--all", "--json")[0])
    return found


def replicas(run: Run, topic: str = "orders") -> list[list[int]]:
    return [row["replicas"] for row in described(run)["partitions"] if row["topic"] == topic]


def test_describe(brokers: Broker, run: Run) -> None:
    """Brokers, the quorum and partitions, while all are there and when one is not."""
    found = described(run)
    assert [row["broker"] for row in found["brokers"]] == [1, 2, 3, 4]
    assert [row["address"] for row in found["brokers"]] == brokers.bootstrap.split(",")
    assert [row["rack"] for row in found["brokers"]] == ["a", "b", "a", "b"]
    assert sum(row["leaders"] for row in found["brokers"]) == 6
    assert sum(row["replicas"] for row in found["brokers"]) == 18
    assert {row["state"] for row in found["brokers"]} == {"active"}
    assert found["quorum"]["leader"] == 3000 and [row["lag"] for row in found["quorum"]["members"]] == [0]
    assert found["refused"] == []
    until(lambda: [row["lag"] for row in described(run)["brokers"]], [0, 0, 0, 0].__eq__, "end of the lag", 30)
    brokers.stop_broker(2)
    found = described(run)
    lost = [row for row in found["partitions"] if 2 in row["replicas"]]
    (gone,) = (row for row in found["brokers"] if row["broker"] == 2)
    assert (gone["state"], gone["leaders"], gone["replicas"], gone["lag"]) == ("fenced", 0, len(lost), None)
    assert gone["not_in_sync"] == len(lost)
    assert {tuple(row["trouble"]) for row in lost} == {("under-replicated",)}
    assert found["counts"]["under_replicated"] == len(lost) and found["counts"]["offline"] == 0
    text, _ = run("describe")
    assert "4 brokers (1 fenced)" in text and f"partitions: 6, {len(lost)} under replicated" in text
    assert text.count("under-replicated") == len(lost)


def test_move_and_cancel(brokers: Broker, run: Run) -> None:
    """A partition, a whole topic, and back; errors name what is allowed."""
    out, told = run("move", "orders:0", "--to", "4,3", "--wait")
    assert out == "topic\tpartition\treplicas\tresult\norders\t0\t4,3\tmoved\n" and "1 of 1 partitions moved" in told
    run("move", "orders", "--to", "1,2,3", "--wait")
    assert replicas(run) == [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2
    brokers.stop_broker(4)
    rows = run("move", "orders:1", "--to", "4,2,3", "--json")[0]
    assert json.loads(rows)["result"] == "moving"
    assert described(run)["counts"]["moving"] == 1
    assert json.loads(run("move", "orders:1", "--cancel", "--json")[0])["result"] == "cancelled"
    assert replicas(run)[1] == [2, 3, 1]
    _, told = run("move", "orders:1", "--cancel", code=1)
    assert "orders-1: NO_REASSIGNMENT_IN_PROGRESS" in told


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("move", "orders", "--to", "1,9"), 1, "there is no broker 9; the brokers are 1, 2, 3, 4"),
        (("move", "orders", "--to", "1,1"), 2, "--to 1,1: must be node ids with commas, each once"),
        (("move", "orders", "--to", "one"), 2, "--to one: must be node ids with commas"),
        (("move", "orders:x", "--to", "1"), 2, "orders:x: must be TOPIC or TOPIC:PARTITION"),
        (("move", "orders:6", "--to", "1"), 1, "orders has partitions 0 to 5, not 6"),
        (("move", "nothing", "--to", "1"), 1, "there is no topic nothing"),
        (("drain", "9"), 1, "there is no broker 9; the brokers are 1, 2, 3, 4"),
        (("undrain", "9"), 1, "there is no broker 9; the brokers are 1, 2, 3, 4"),
        (("elect", "--unclean"), 2, "--unclean loses the records that the new leader does not have: name the topics"),
    ],
)
def test_what_cannot_be(
    unchanged: Broker, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, problem: str
) -> None:
    """The error says what, and what is allowed."""
    assert main(["cluster", *words, "--bootstrap", unchanged.bootstrap]) == code
    assert problem in capsys.readouterr().err


@pytest.mark.long
def test_elect(brokers: Broker, run: Run) -> None:
    """Leaders go back; where the preferred replica is away, that is an error."""
    run("move", "orders", "--to", "1,2,3", "--wait")
    run("elect")
    assert [row["leader"] for row in described(run)["partitions"]] == [1, 2, 3] * 2
    brokers.stop_broker(1)
    assert described(run)["counts"]["not_led_by_preferred"] == 2
    out, told = run("elect", "orders:0", "orders:1", code=1)
    assert "orders-0: PREFERRED_LEADER_NOT_AVAILABLE" in told and "orders\t1\tnot needed\n" in out
    brokers.start_broker(1)
    until(lambda: described(run)["counts"]["under_replicated"], lambda count: count == 0, "broker 1 in sync", 30)
    assert run("elect")[0] == "topic\tpartition\tresult\norders\t0\telected\norders\t3\telected\n"
    assert described(run)["counts"]["not_led_by_preferred"] == 0
    assert run("elect", "orders:2", "--unclean")[0].endswith("orders\t2\tnot needed\n")


@pytest.mark.long
def test_drain(brokers: Broker, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """What is on the broker goes elsewhere, and nothing new comes; a second one cannot go."""
    before = replicas(run)
    dry = run("drain", "2", "--dry-run", "--json")[0].splitlines()
    assert replicas(run) == before and len(dry) == sum(2 in each for each in before)
    _, told = run("drain", "2", "--at-once", "2")
    assert "broker 2 has no replicas: it can be stopped" in told
    after = replicas(run)
    assert all(len(set(each)) == 3 and 2 not in each for each in after)
    assert all(old == new for old, new in zip(before, after, strict=True) if 2 not in old)
    assert main(["topics", "create", "more:8", "--bootstrap", of_third(brokers)]) == 0
    assert capsys.readouterr().out == "topic\tresult\nmore\tcreated\n"
    assert all(2 not in each for each in replicas(run, "more"))
    _, told = run("drain", "3", code=1)
    assert "broker 3 cannot be drained: 3 replicas of " in told
    assert "need 3 brokers, and 2 can take them (1, 4), since 2 take no new replicas (cordoned.log.dirs)" in told
    brokers.stop_broker(2)
    assert brokers.records("orders", limit=12)
    brokers.start_broker(2)
    run("undrain", "2")
    run("drain", "3")
    assert all(3 not in each for each in replicas(run))
    assert run("drain", "3")[0] == ""


def test_several_brokers_are_drained(
    brokers: Broker, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """None takes what another one had, also where the cluster cannot keep new replicas away from them."""
    monkeypatch.setattr(cluster_moves, "_cordon", lambda _admin, _broker: "it is too old")
    topics = [each["topic"] for each in described(run)["partitions"] if each["topic"] != "single"]
    assert main(["topics", "delete", *dict.fromkeys(topics), "--bootstrap", of_third(brokers)]) == 0
    assert main(["topics", "create", "single:8", "--replication-factor", "1", "--bootstrap", of_third(brokers)]) == 0
    capsys.readouterr()
    _, told = run("drain", "1", "2")
    assert "broker 2 can still get new replicas meanwhile: it is too old" in told
    assert "broker 1 has no replicas: it can be stopped\nbroker 2 has no replicas: it can be stopped" in told
    assert {broker for each in replicas(run, "single") for broker in each} == {3, 4}
    _, told = run("drain", "1", "9", code=1)
    assert "there is no broker 9; the brokers are 1, 2, 3, 4" in told


@pytest.mark.long
def test_balance(run: Run) -> None:
    """Nothing is to be done; and after one broker has taken nothing for a while, it gets its share."""
    run("move", "orders", "--to", "1,2,3", "--wait")
    dry = run("balance", "--dry-run")[0]
    assert replicas(run) == [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2
    assert run("balance", "--at-once", "2")[0] == dry
    found = described(run)
    assert sorted(row["replicas"] for row in found["brokers"]) == [4, 4, 5, 5]
    assert sorted(row["leaders"] for row in found["brokers"]) == [1, 1, 2, 2]
    assert found["counts"]["not_led_by_preferred"] == 0
    assert run("balance")[0] == ""


def test_status_names_a_broker_that_is_away(brokers: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    """And where the others are."""
    first, second, *_ = brokers.bootstrap.split(",")
    words = ["status", "--bootstrap", of_third(brokers)]
    assert main(words) == 0
    assert f"brokers: 1 at {first}, 2 at {second}, 3 at " in capsys.readouterr().out
    brokers.stop_broker(2)
    assert main(words) == 1
    assert f"brokers: 1 at {first}, 2 at {second} (fenced), 3 at " in capsys.readouterr().out


class Admin:
    """An admin client of a cluster with one partition, and what moves there."""

    def __init__(self, *, moves: bool) -> None:
        self.moves = moves

    def list_partition_reassignments(self) -> dict:
        place = client.partition_of("t", 0)
        move = {"replicas": [1, 2], "adding_replicas": [2], "removing_replicas": [1]}
        return {place: move, client.partition_of("t", 1): move} if self.moves else {}


def by_broker(*known: list[int]) -> Callable[..., dict]:
    """What each of some brokers knows of the replicas of t-0."""
    return lambda _admin, _topics: {number: {("t", 0): replicas} for number, replicas in enumerate(known, 1)}


def test_a_wait_has_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """The move goes on, and the error says so."""
    with pytest.raises(Failure) as failure:
        cluster_moves.wait(Admin(moves=True), {("t", 0): [2]}, 0.05)
    assert str(failure.value) == (
        "1 partition is still moving after 0.05 s (t-0): `pykafkad cluster describe` shows what goes on, "
        "`pykafkad cluster move TOPIC --cancel` ends it"
    )
    assert capsys.readouterr().err == "0 of 1 partitions moved\n"


def test_a_move_that_somebody_else_ended_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """When every broker has had the time to learn of the end."""
    monkeypatch.setattr(cluster_moves, "SETTLED_SECONDS", 0.05)
    monkeypatch.setattr(cluster_state, "replicas_by_broker", by_broker([2], [1]))
    with pytest.raises(Failure, match=r"t-0 has the replicas \[1\], not \[2\]: its move was changed"):
        cluster_moves.wait(Admin(moves=False), {("t", 0): [2]}, 60)


@pytest.mark.parametrize("known", [{}, {1: {}}, {1: {("t", 0): [2]}, 2: {}}])
def test_a_move_of_which_brokers_tell_nothing_is_not_done(known: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether none can be asked, or one of them does not know the partition."""
    monkeypatch.setattr(cluster_moves, "SETTLED_SECONDS", 0.05)
    monkeypatch.setattr(cluster_state, "replicas_by_broker", lambda _admin, _topics: known)
    with pytest.raises(Failure, match="t-0 may have moved, but brokers do not tell its replicas"):
        cluster_moves.wait(Admin(moves=False), {("t", 0): [2]}, 60)


def test_a_wait_ends_when_every_broker_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is late would tell the next command of replicas that are gone."""
    late = iter([by_broker([2], [2, 1]), by_broker([2], [2, 1]), by_broker([2], [2])])
    monkeypatch.setattr(cluster_moves, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(cluster_state, "replicas_by_broker", lambda *asked: next(late)(*asked))
    cluster_moves.wait(Admin(moves=False), {("t", 0): [2]}, 60)
    assert list(late) == []


def test_a_wait_for_moves_of_others_has_a_limit_too() -> None:
    """They go on."""
    with pytest.raises(Failure, match=r"1 partition is still moving after 0\.05 s"):
        cluster_moves._wait_for_others(Admin(moves=True), [("t", 0)], 0.05)
    cluster_moves._wait_for_others(Admin(moves=False), [("t", 0)], 60)


class Drained:
    """The cluster of brokers 1 to 4, which are too old to keep new replicas away, and its admin client."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **replicas: list[int]) -> None:
        """By topic, each of one partition. `come` are topics that somebody creates when a topic moves."""
        self.replicas = replicas
        self.come: Callable[[str], dict[str, list[int]]] = lambda topic: {}
        monkeypatch.setattr(client, "admin", lambda _options: nullcontext(self))
        monkeypatch.setattr(cluster_moves, "_settings", lambda _admin, _brokers: {})
        monkeypatch.setattr(cluster_moves, "reassign", self.reassign)
        monkeypatch.setattr(cluster_state, "replicas_by_broker", lambda *_: {4: self.places()})

    def places(self) -> dict[tuple[str, int], list[int]]:
        return {(topic, 0): replicas for topic, replicas in self.replicas.items()}

    def describe_cluster(self) -> dict:
        return {"brokers": [{"broker_id": each, "host": "h", "port": each} for each in (1, 2, 3, 4)]}

    def describe_topics(self) -> list[dict]:
        def row(replicas: list[int]) -> dict:
            in_sync = [each for each in replicas if each <= 4]
            return {"partition_index": 0, "leader_id": in_sync[0], "replica_nodes": replicas, "isr_nodes": in_sync}

        return [{"name": topic, "partitions": [row(replicas)]} for topic, replicas in self.replicas.items()]

    def list_partition_reassignments(self) -> dict:
        return {}

    def reassign(self, _admin: object, wanted: dict[tuple[str, int], list[int]]) -> dict:
        for (topic, _), replicas in wanted.items():
            self.replicas[topic] = replicas
            self.replicas.update(self.come(topic))
        return {}


def drain(*brokers: int, dry_run: bool = False) -> int:
    return cluster_moves.drain(
        argparse.Namespace(brokers=list(brokers), dry_run=dry_run, at_once=50, timeout=60, json=False)
    )


def test_a_broker_that_gets_replicas_while_another_is_drained_is_drained_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only then it can be stopped."""
    cluster = Drained(monkeypatch, one=[1, 3], two=[2, 3])
    cluster.come = lambda topic: {"new": [1, 2]} if topic == "two" else {}
    assert drain(1, 2) == 0
    assert cluster.replicas == {"one": [3, 4], "two": [3, 4], "new": [3, 4]}
    shown = capsys.readouterr()
    assert "new\t0\t" in shown.out
    assert shown.err.endswith(
        "broker 1 has no replicas: it can be stopped\nbroker 2 has no replicas: it can be stopped\n"
    )


def test_a_drain_has_a_limit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where replicas come as fast as they leave."""
    cluster = Drained(monkeypatch, t=[1])
    cluster.come = lambda topic: {f"{topic}t": [1]}
    with pytest.raises(Failure, match="broker 1 gets new replicas as fast as they leave; drain it once more"):
        drain(1, 2)
    assert len(cluster.replicas) == 1 + cluster_moves.ROUNDS
    assert "can be stopped" not in capsys.readouterr().err


def test_a_dry_run_prints_what_happens(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What leaves the second broker has left the first."""
    cluster = Drained(monkeypatch, a=[1, 2], b=[2, 1], c=[3, 1], d=[4, 2])
    before = dict(cluster.replicas)
    assert drain(1, 2, dry_run=True) == 0 and cluster.replicas == before
    dry = capsys.readouterr().out
    assert drain(1, 2) == 0
    assert capsys.readouterr().out == dry
    assert {each for replicas in cluster.replicas.values() for each in replicas} == {3, 4}


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_broker_that_only_partitions_name_is_drained(monkeypatch: pytest.MonkeyPatch, dry_run: bool) -> None:
    """Afterwards nobody names it."""
    cluster = Drained(monkeypatch, a=[9, 3], b=[1, 9])
    assert drain(9, 1, dry_run=dry_run) == 0
    assert dry_run or all({1, 9}.isdisjoint(replicas) for replicas in cluster.replicas.values())
