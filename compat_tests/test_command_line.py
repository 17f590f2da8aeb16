"""pykafkad's own client commands are ordinary clients: they must work on a real Kafka as on pykafkad."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from compat_tests.samples import wait_until
from compat_tests.scenarios import share_groups, streams_groups
from compat_tests.scenarios.exchange import Exchange

FreshName = Callable[..., str]
Run = Callable[..., subprocess.CompletedProcess]
TIMEOUT_SECONDS = 200


@pytest.fixture
def run(bootstrap: str) -> Run:
    """Runs a command against the broker under test; output as text."""

    def run(*arguments: str, input: bytes = b"", code: int = 0) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "pykafkad", *arguments, "--bootstrap", bootstrap]
        done = subprocess.run(command, input=input, capture_output=True, timeout=TIMEOUT_SECONDS)
        assert done.returncode == code, done
        return subprocess.CompletedProcess(command, code, done.stdout.decode(), done.stderr.decode())

    return run


def _json(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def _groups(run: Run) -> set[str]:
    return {row["group"] for row in _json(run("groups", "list", "--json").stdout)}


def test_topics(run: Run, fresh_name: FreshName) -> None:
    """Create with partitions and settings, list, describe, delete; one invalid name does not affect the others."""
    first, second = fresh_name(), fresh_name()
    assert run("topics", "create", f"{first}:3", second, "--config", "retention.ms=5000").stdout == (
        f"topic\tresult\n{first}\tcreated\n{second}\tcreated\n"
    )
    again = run("topics", "create", first, code=1)
    assert f"{first}: TOPIC_ALREADY_EXISTS" in again.stderr
    listed = lambda: {row["topic"]: row["partitions"] for row in _json(run("topics", "list", "--json").stdout)}  # noqa: E731
    wait_until(lambda: listed().get(first) == 3, "the broker shows what was created")
    rows = _json(run("topics", "describe", first, "--json").stdout)
    assert [
        (row["partition"], row["leader"], row["start_offset"], row["end_offset"], row["settings"]) for row in rows
    ] == [(number, 1, 0, 0, {"retention.ms": "5000"}) for number in range(3)]
    others = fresh_name(), fresh_name()
    run("topics", "create", others[0], f"{others[1]}:2", "--partitions", "4")
    wait_until(lambda: [listed().get(each) for each in others] == [4, 2], "a number in a name is stronger")
    refused = run("topics", "create", fresh_name(), "--config", "no.such=1", code=1)
    assert "INVALID_CONFIG: Unknown topic config name: no.such" in refused.stderr
    deleted = run("topics", "delete", first, "absent-" + second, code=1)
    assert deleted.stdout == f"topic\tresult\n{first}\tdeleted\n"
    assert f"absent-{second}: UNKNOWN_TOPIC_OR_PARTITION" in deleted.stderr


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_what_tail_prints_produce_writes_again(run: Run, fresh_name: FreshName, codec: str | None) -> None:
    """A topic copied through a pipe is identical: keys, values, nulls, headers, timestamps."""
    source, copy = fresh_name(), fresh_name()
    run("topics", "create", source, copy)
    run("produce", source, "--key-separator", ":", "--header", "h=1", input=b"k:v\nk2:\xff\xfe\n:\n")
    options = [] if codec is None else ["--compression", codec]
    lines = run("tail", source, "--from", "start", "--stop-at-end", "--json").stdout
    run("produce", copy, "--json", *options, input=lines.encode())
    copied = _json(run("tail", copy, "--from", "start", "--stop-at-end", "--json").stdout)
    assert [{**row, "topic": source} for row in copied] == _json(lines)
    assert [row["value"] for row in copied] == ["v", {"hex": "fffe"}, ""]


def test_produce_to_a_partition(run: Run, fresh_name: FreshName) -> None:
    """Records go to the requested partition; an unknown partition is reported before anything is sent."""
    topic = fresh_name()
    run("topics", "create", f"{topic}:3")
    (row,) = _json(run("produce", topic, "v", "--partition", "2", "--report").stdout)
    assert (row["partition"], row["offset"]) == (2, 0)
    for absent in ("3", "-1"):
        assert (
            run("produce", topic, "v", "--partition", absent, code=1).stderr
            == f"pykafkad: {topic} has partitions 0 to 2, not {absent}\n"
        )


def test_a_record_that_is_too_large_is_refused_by_the_broker(run: Run, fresh_name: FreshName) -> None:
    """The client has no limit of its own below the topic's; the broker's error message is printed."""
    topic, large = fresh_name(), fresh_name()
    run("topics", "create", topic)
    run("topics", "create", large, "--config", "max.message.bytes=3000000")
    assert "MESSAGE_SIZE_TOO_LARGE" in run("produce", topic, input=b"x" * 2_000_000, code=1).stderr
    assert run("produce", large, input=b"x" * 2_000_000).stderr == f"1 records written to {large}\n"


def test_tail_starts_where_asked(run: Run, fresh_name: FreshName) -> None:
    """Read from the start, an offset, the last few records, or a time; an invalid position is a usage error."""
    topic = fresh_name()
    reports = _json(run("produce", topic, "a", "b", "c", "d", "--report").stdout)
    assert [row["offset"] for row in reports] == [0, 1, 2, 3]

    def values(*where: str) -> list[str]:
        return [row["value"] for row in _json(run("tail", topic, "--from", *where, "--stop-at-end", "--json").stdout)]

    assert values("start") == ["a", "b", "c", "d"]
    assert values("2") == ["c", "d"]
    assert values("-1") == ["d"]
    assert values("-100") == ["a", "b", "c", "d"]
    assert values("end") == []
    assert values("2001-01-01T00:00:00Z") == ["a", "b", "c", "d"]
    assert values("2101-01-01T00:00:00Z") == []
    assert values("start", "--max", "2") == ["a", "b"]
    assert "must be start, end" in run("tail", topic, "--from", "somewhere", code=2).stderr
    assert "there is no topic" in run("tail", fresh_name("absent"), code=1).stderr


def test_tail_follows_until_interrupted(run: Run, bootstrap: str, fresh_name: FreshName) -> None:
    """A record that arrives while tail waits is printed at once; Ctrl-C ends tail; tail creates no group."""
    topic = fresh_name()
    run("topics", "create", topic)
    groups = _groups(run)
    command = [sys.executable, "-m", "pykafkad", "tail", topic, "--from", "start", "--json", "--bootstrap", bootstrap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tail:
        try:
            for value in ("one", "two"):
                run("produce", topic, value)
                assert json.loads(tail.stdout.readline())["value"] == value
        finally:
            os.kill(tail.pid, signal.SIGINT)
        assert tail.wait(100) == 130
        assert tail.stderr.read() == b""
    assert _groups(run) == groups


def test_topics_are_changed(run: Run, fresh_name: FreshName) -> None:
    """Partitions are added, settings set and unset, records deleted; what the broker refuses is said with its words."""
    topic = fresh_name()
    run("topics", "create", topic)
    run("produce", topic, "a", "b", "c", "--partition", "0")
    done = run("topics", "alter", topic, "--partitions", "2", "--config", "retention.ms=500000000", "--json")
    assert _json(done.stdout) == [{"topic": topic, "changed": ["2 partitions", "retention.ms=500000000"]}]

    def described() -> list[tuple]:
        rows = _json(run("topics", "describe", topic, "--json").stdout)
        return [(row["start_offset"], row["end_offset"], row["settings"]) for row in rows]

    wait_until(
        lambda: described() == [(0, 3, {"retention.ms": "500000000"}), (0, 0, {"retention.ms": "500000000"})], "changed"
    )
    run("topics", "alter", topic, "--unset", "retention.ms")
    assert f"{topic}: INVALID_PARTITIONS" in run("topics", "alter", topic, "--partitions", "1", code=1).stderr
    assert f"{topic}: INVALID_CONFIG" in run("topics", "alter", topic, "--config", "no.such=1", code=1).stderr
    deleted = run("topics", "delete-records", topic, "--before", "2", "--partition", "0", "--json")
    assert _json(deleted.stdout) == [{"topic": topic, "partition": 0, "start_offset": 2}]
    refused = run("topics", "delete-records", topic, "--before", "9", code=1).stderr
    assert refused == "".join(f"pykafkad: {topic}-{partition}: OFFSET_OUT_OF_RANGE\n" for partition in (0, 1))
    run("topics", "delete-records", topic)
    wait_until(lambda: described() == [(3, 3, {}), (0, 0, {})], "nothing is left")


def test_status(run: Run, bootstrap: str, fresh_name: FreshName) -> None:
    """A broker that is well has all its partitions."""
    run("topics", "create", f"{fresh_name()}:3")
    (found,) = _json(run("status", "--json").stdout)
    assert found["brokers"] == [{"id": 1, "address": bootstrap, "state": "active"}]
    assert found["partitions"] >= 3
    assert (found["offline_partitions"], found["under_replicated_partitions"]) == (0, 0)
    assert f"brokers: 1 at {bootstrap}\n" in run("status").stdout


def test_members_are_kicked(run: Run, bootstrap: str, fresh_name: FreshName) -> None:
    """A member leaves by its id, and its client joins again as another; a name that nobody has is reported."""
    topic, group = fresh_name(), fresh_name("group")
    run("topics", "create", topic)
    assert f"there is no group {group} at" in run("groups", "kick", group, "--all", code=1).stderr
    options = {"group_id": group, "bootstrap_servers": bootstrap, "enable_auto_commit": False}
    with contextlib.closing(KafkaConsumer(topic, **options)) as consumer:
        # kafka-python (3.0) drops a join that it began for new metadata if `poll` runs out of time meanwhile.
        assert consumer.partitions_for_topic(topic) == {0}
        wait_until(lambda: consumer.poll(100) or consumer.assignment(), "the member has joined")
        (member,) = _json(run("groups", "describe", group, "--members", "--json").stdout)
        assert f"nobody: {group} has no such member" in run("groups", "kick", group, "nobody", code=1).stderr
        assert run("groups", "kick", group, member["member"]).stdout == f"member\tresult\n{member['member']}\tleft\n"
        assert member["member"] not in run("groups", "describe", group, "--members").stdout


def test_groups(run: Run, fresh_name: FreshName) -> None:
    """Offsets are set, shown with their lag, moved and deleted; a missing group is reported."""
    topic, group = fresh_name(), fresh_name("group")
    run("topics", "create", topic)
    run("produce", topic, "a", "b", "c")
    assert "there is no group" in run("groups", "describe", group, code=1).stderr
    run("groups", "reset", group, "--topic", topic, "--to", "start")

    def described() -> list[tuple]:
        rows = _json(run("groups", "describe", group, "--json").stdout)
        return [(row["partition"], row["committed_offset"], row["end_offset"], row["lag"]) for row in rows]

    assert described() == [(0, 0, 3, 3)]
    run("groups", "reset", group, "--to", "2")
    assert described() == [(0, 2, 3, 1)]
    run("groups", "reset", group, "--to", "2001-01-01T00:00:00Z")
    assert described() == [(0, 0, 3, 3)]
    run("groups", "reset", group, "--to", "end")
    assert described() == [(0, 3, 3, 0)]
    assert "--to soon: must be start, end" in run("groups", "reset", group, "--to", "soon", code=2).stderr
    assert group in _groups(run)
    assert run("groups", "delete", group).stdout == f"group\tresult\n{group}\tdeleted\n"
    assert f"{group}: GROUP_ID_NOT_FOUND" in run("groups", "delete", group, code=1).stderr


def test_groups_of_newer_kinds(run: Run, bootstrap: str, fresh_name: FreshName) -> None:
    """Members, epochs, what they have and shall have, offsets and lag of a streams group, and of a share group."""
    exchange = Exchange(bootstrap, "groups")
    group = streams_groups.Group(exchange, partitions=2)
    run("produce", group.topic, "a", "b", "c", "--partition", "0")
    first, second = group.member(streams_groups.FIRST), group.member(streams_groups.SECOND)
    first.beat(quietly=True)
    second.beat(quietly=True)
    (one, other) = _json(run("groups", "describe", group.name, "--members", "--json").stdout)
    shown = {row["member"]: (row["epoch"], row["assignment"], row["target"]) for row in (one, other)}
    assert shown[first.member_id][1] == "0_0 0_1" and shown[first.member_id][2] in ("0_0", "0_1")
    assert "has to give up" in run("groups", "describe", group.name).stderr
    rows = _json(run("groups", "describe", group.name, "--json").stdout)
    assert [(row["topic"], row["partition"], row["end_offset"], row["client"]) for row in rows] == [
        (group.topic, 0, 3, "scenario"),
        (group.topic, 1, 0, "scenario"),
    ]
    assert "in use by 2 clients" in run("groups", "reset", group.name, "--to", "start", code=1).stderr
    share = share_groups.Group(exchange, "share")
    member = share_groups.Member(share).join()
    member.fetch("gets all")
    member.give_back("accepts two", (0, 1, [1]))
    (row,) = _json(run("groups", "describe", share.name, "--json").stdout)
    assert (row["partition"], row["end_offset"], row["lag"]) == (0, 6, 4)
    (row,) = _json(run("groups", "describe", share.name, "--members", "--json").stdout)
    assert (row["assignment"], row["target"]) == (f"{share.topic}-0", None)
    assert "is a share group" in run("groups", "reset", share.name, "--to", "start", code=1).stderr
    exchange.close()


def test_transactions(run: Run, bootstrap: str, fresh_name: FreshName) -> None:
    """An open transaction is listed, described, and aborted by its id; a missing id is reported."""
    topic, transactional_id = fresh_name(), fresh_name("id")
    run("topics", "create", topic)
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id)
    producer.init_transactions()
    assert "there is no transactional id" in run("transactions", "describe", fresh_name("none"), code=1).stderr
    assert (
        "has no open transaction: its state is Empty" in run("transactions", "abort", transactional_id, code=1).stderr
    )
    producer.begin_transaction()
    producer.send(topic, b"open").get(100)

    def listed(*options: str) -> list[tuple]:
        rows = _json(run("transactions", "list", "--pattern", transactional_id, "--json", *options).stdout)
        return [(row["transactional_id"], row["state"]) for row in rows]

    assert listed() == listed("--state", "Ongoing") == listed("--longer-than", "0") == [(transactional_id, "Ongoing")]
    assert listed("--state", "Empty") == listed("--longer-than", "3600") == []
    (row,) = _json(run("transactions", "describe", transactional_id, "--json").stdout)
    assert (row["state"], row["partitions"]) == ("Ongoing", [f"{topic}-0"])
    assert run("transactions", "find-hanging", "--topic", topic, "--older-than", "-60").stdout == ""
    assert (
        "starts at 5"
        in run("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "5", code=1).stderr
    )
    run("transactions", "abort", transactional_id)
    assert listed("--state", "Ongoing") == []
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    producer.close(timeout=0)


def test_a_missing_broker_is_reported_in_a_sentence() -> None:
    """The command ends with exit code 1 and says what to do, without a traceback."""
    command = [sys.executable, "-m", "pykafkad", "topics", "list", "--bootstrap", "localhost:1"]
    done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 1
    assert (
        done.stderr.decode()
        == "pykafkad: no broker answers at localhost:1 (connection refused); start one with `pykafkad serve` or name "
        "another with --bootstrap\n"
    )
