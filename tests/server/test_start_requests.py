"""What a start of several processes asks the brokers, and what it notices meanwhile of its children."""

from __future__ import annotations

import errno
import socket
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.config import Settings
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.server import child_nodes, start_requests
from pykafkad.server.child_nodes import ChildNode, ChildNodes, Interrupted
from pykafkad.server.logs import Logs, Sink
from pykafkad.server.runtime import Runtime
from pykafkad.server.start_requests import StartRequests
from pykafkad.wire import messages

TOPICS = messages.CreateTopicsResponse
METADATA = messages.MetadataResponse
PARTITION = METADATA.MetadataResponsePartition


def child(node_id: int, report: str = "", status: str | None = None, exit_code: int = 0) -> Any:
    """A child as `ChildNodes` sees it, without a process."""
    made = ChildNode.__new__(ChildNode)
    made.__dict__.update(
        node_id=node_id, role="broker", report=report, status=status, exit_code=exit_code, addresses=[],
        is_end_told=False, process=SimpleNamespace(pid=node_id, stdin=SimpleNamespace(close=int),
        stdout=SimpleNamespace(close=int)), watcher=SimpleNamespace(join=lambda seconds: None),
    )  # fmt: skip
    return made


@pytest.fixture
def nodes() -> ChildNodes:
    """No children yet."""
    return ChildNodes(Logs("info"))


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


class Asked(StartRequests):
    """Requests to so many brokers, which give these answers in turn; the last of them again and again."""

    def __init__(self, brokers: int, *answers: Any) -> None:
        super().__init__([f"127.0.0.1:{port}" for port in range(1, brokers + 1)], lambda: None)
        self.answers = list(answers)
        self.requests: list[Any] = []

    def _ask(self, _peer: Any, request: Any) -> Any:
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not come is not waited for long."""
    monkeypatch.setattr(start_requests, "SECONDS", 0.1)
    monkeypatch.setattr(start_requests, "_PAUSE_SECONDS", 0.001)


def created(code: int, words: str | None = None) -> Any:
    return TOPICS(topics=[TOPICS.CreatableTopicResult(name="t", error_code=code, error_message=words)])


def known(brokers: int, *codes: int, topic_code: int = 0) -> Any:
    partitions = [PARTITION(partition_index=index, error_code=code) for index, code in enumerate(codes)]
    topics = [METADATA.MetadataResponseTopic(name="t", error_code=topic_code, partitions=partitions)]
    rows = [METADATA.MetadataResponseBroker(node_id=each) for each in range(brokers)]
    return METADATA(brokers=rows, topics=topics)


def settle(asked: Asked) -> None:
    asked.settle([("t", 2)], [])


def test_a_topic_that_was_there_may_have_no_leader() -> None:
    """One of its replicas' brokers may be gone for ever."""
    settle(Asked(1, created(errors.TOPIC_ALREADY_EXISTS), known(1, 0, errors.LEADER_NOT_AVAILABLE)))


def test_a_topic_that_is_new_needs_leaders() -> None:
    """The error says where there is none."""
    with pytest.raises(StartFailure) as failure:
        settle(Asked(1, created(0), known(1, 0, errors.LEADER_NOT_AVAILABLE)))
    expected = "the brokers have not settled in 0 s: 127.0.0.1:1: t-1: LEADER_NOT_AVAILABLE"
    assert str(failure.value) == expected
    settle(Asked(1, created(0), known(1, 0, errors.LEADER_NOT_AVAILABLE), known(1, 0, 0)))


@pytest.mark.parametrize(
    ("answer", "lacking"),
    [
        (known(1, 0), "127.0.0.1:1: it knows 1 of 2 brokers"),
        (known(2, topic_code=errors.UNKNOWN_TOPIC_OR_PARTITION), "127.0.0.1:1: topic t: UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_what_a_broker_does_not_know_is_named(answer: Any, lacking: str) -> None:
    """Also of a topic that was there before."""
    with pytest.raises(StartFailure, match=rf"settled in 0 s: {lacking}$"):
        settle(Asked(2, created(errors.TOPIC_ALREADY_EXISTS), answer))


@pytest.mark.parametrize("code", [errors.REQUEST_TIMED_OUT, errors.NOT_CONTROLLER])
def test_a_topic_is_asked_for_again(code: int) -> None:
    """Until the time is over; it is no fault of the command line."""
    settle(Asked(1, created(code), created(0), known(1, 0)))
    with pytest.raises(StartFailure, match=f"settled in 0 s: --topic t:2: {errors.name(code)}$"):
        settle(Asked(1, created(code)))


def test_too_few_brokers_for_a_topic() -> None:
    """As long as one of them is away it is asked for again."""
    refused = created(errors.INVALID_REPLICATION_FACTOR, "too few")
    settle(Asked(2, refused, known(1), created(0), known(2, 0)))
    with pytest.raises(ConfigError, match="^--topic t:2: too few$") as error:
        settle(Asked(2, refused, known(2)))
    assert type(error.value) is ConfigError


def test_a_topic_that_cannot_be_is_named_without_words_too() -> None:
    """By the error's name."""
    with pytest.raises(ConfigError, match="^--topic t:2: INVALID_TOPIC_EXCEPTION$"):
        settle(Asked(1, created(errors.INVALID_TOPIC_EXCEPTION)))


def test_acls_are_asked_for_again() -> None:
    """Those that were refused for the moment; others are an error of the command line."""
    result = messages.CreateAclsResponse.AclCreationResult
    entries: Any = [("--acl a", messages.CreateAclsRequest.AclCreation()) for _ in range(2)]

    def stored(*codes: int) -> Any:
        return messages.CreateAclsResponse(results=[result(error_code=code) for code in codes])

    asked = Asked(1, stored(0, errors.NOT_CONTROLLER), stored(0))
    asked.create_acls(entries)
    assert [len(each.creations) for each in asked.requests] == [2, 1]
    asked.close()
    asked = Asked(1, stored(0, errors.SECURITY_DISABLED))
    with pytest.raises(ConfigError, match="^--acl a: SECURITY_DISABLED$"):
        asked.settle([], entries)


def test_a_broker_that_does_not_answer_is_named(silent: str) -> None:
    """By its address."""
    with pytest.raises(StartFailure, match=f"settled in 0 s: no answer of {silent}$"):
        StartRequests([silent], lambda: None).settle([], [])


def test_an_address_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was opened for it is closed."""
    closed: list[Runtime] = []
    close = Runtime.close
    monkeypatch.setattr(Runtime, "close", lambda runtime: (closed.append(runtime), close(runtime)))

    def refuse(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(StartFailure, match="^nowhere:1 is not found: .*no such name"):
        StartRequests(["nowhere:1"], lambda: None)
    assert len(closed) == 1


def test_a_child_that_ends_while_the_brokers_settle(nodes: ChildNodes, silent: str) -> None:
    """Is named at once, not what it reported before."""
    ended = child(1, "pykafkad ready on a:1")
    nodes.children.append(ended)
    nodes._events.put(("report", ended))
    nodes.wait_ready([ended])
    assert nodes.is_stopped() is False
    ended.status, ended.exit_code = "signal 9", -9
    nodes._events.put(("end", ended))
    with pytest.raises(StartFailure, match="^broker 1: it ended with signal 9$"):
        StartRequests([silent], nodes.is_stopped).settle([], [])


def test_a_stop_while_the_brokers_settle(nodes: ChildNodes, silent: str) -> None:
    """Nothing is waited for."""
    nodes.stop("signal 15")
    with pytest.raises(StartFailure, match=f"^stopped before the brokers have settled: no answer of {silent}$"):
        StartRequests([silent], nodes.is_stopped).settle([], [])


def test_a_child_that_ended_by_itself_is_told_once() -> None:
    """When all end, and if it had served."""
    written: list[bytes] = []
    nodes = ChildNodes(Logs("info", Sink(lambda line: written.append(line) or len(line))))
    nodes.children += [child(node_id, status="signal 9", exit_code=-9) for node_id in (1, 2)]
    nodes.children[0].addresses = ["a:1"]
    nodes.close()
    nodes.close()
    assert [b'server node-ended node=1 role=broker status="signal 9"' in line for line in written] == [True]


def test_a_stop_before_any_report(nodes: ChildNodes) -> None:
    """Ends the wait."""
    nodes.stop("signal 15")
    with pytest.raises(Interrupted):
        nodes.wait_ready([child(1)])


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        ("pykafkad ready with x=y on a:1", "its report has no addresses: pykafkad ready with x=y on a:1"),
        ("its directory is in use", "its directory is in use"),
    ],
)
def test_a_child_that_reports_something_else(nodes: ChildNodes, report: str, problem: str) -> None:
    """Is an error that names it."""
    failed = child(1, report, "exit status 1", 1)
    nodes.children.append(failed)
    nodes._events.put(("report", failed))
    nodes._events.put(("end", failed))
    with pytest.raises(StartFailure, match=f"^broker 1: {problem}$"):
        nodes.wait_ready([failed])


def test_no_room_for_a_process(monkeypatch: pytest.MonkeyPatch, nodes: ChildNodes) -> None:
    """Is an error that names the node."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr(child_nodes.subprocess, "Popen", refuse)
    with pytest.raises(StartFailure, match="^broker 3: no process for it: no more processes$"):
        nodes.start([Settings({"node.id": "3", "process.roles": "broker"})])
    assert subprocess.Popen is refuse and nodes.children == []
