"""Who asks, what is remembered of what he may, and which frames are served without looking."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.handlers.context import ANONYMOUS
from pykafkad.server import session as session_module
from pykafkad.server.session import AUTHENTICATE, EXPIRED, FAILED, READY, STAGES, TOKENS, VERSIONS, Sessions
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.simulation.world import NOTHING, World

TOPIC_AUTHORIZATION_FAILED = 29


class Asked:
    """An authorizer that remembers what it was asked and answers as `allows` says."""

    def __init__(self, allows: bool = True) -> None:
        self.allows = allows
        self.questions: list[tuple[str, ...]] = []

    def authorize(self, *question: str) -> bool:
        """Yes or no to everything."""
        self.questions.append(question)
        return self.allows


def test_without_an_authorizer_everybody_may_do_everything_on_the_fast_paths() -> None:
    """All sessions share the node's functions: a session costs nothing."""
    fast_paths = {1: lambda *_: True}
    first, second = (Sessions(fast_paths, None).open("listener", "127.0.0.1:1") for _ in range(2))
    assert first.fast_paths is second.fast_paths is fast_paths
    assert first.principal == ANONYMOUS and first.stage is READY
    assert first.allowed("Alter", "Cluster", "kafka-cluster")


def test_an_authorizer_is_asked_once_for_each_question_until_the_acls_change() -> None:
    """With the principal and the address, which has no port and no brackets and is written as ACLs have it."""
    authorizer = Asked()
    sessions = Sessions({}, authorizer)
    one, other = sessions.open("listener", "127.0.0.1:1"), sessions.open("listener", "[::1]:2")
    for _ in range(2):
        assert one.allowed("Read", "Topic", "t") and other.allowed("Read", "Topic", "t")
    assert authorizer.questions == [
        (ANONYMOUS, "127.0.0.1", "Read", "Topic", "t"),
        (ANONYMOUS, "0:0:0:0:0:0:0:1", "Read", "Topic", "t"),
    ]
    authorizer.allows = False
    assert one.allowed("Read", "Topic", "t") and not one.allowed("Write", "Topic", "t")
    sessions.acls_changed()
    assert not one.allowed("Read", "Topic", "t")


def test_a_session_remembers_so_many_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it begins anew: names of topics that do not exist must not take memory without end."""
    monkeypatch.setattr(session_module, "MAX_DECISIONS", 3)
    authorizer = Asked()
    session = Sessions({}, authorizer).open("listener", "127.0.0.1:1")
    for name in "abcd":
        session.allowed("Read", "Topic", name)
    session.allowed("Read", "Topic", "d")
    assert len(authorizer.questions) == 4 and len(session._decisions) == 1
    session.allowed("Read", "Topic", "a")
    assert len(authorizer.questions) == 5


def test_one_who_logs_in_has_no_fast_paths_and_is_judged_anew() -> None:
    """Fast paths look at no stage, and a decision is of one principal."""
    authorizer, fast_paths = Asked(), {1: lambda *_: True}
    session = Sessions(fast_paths, None).open("listener", "127.0.0.1:1")
    session.advance(AUTHENTICATE)
    assert session.fast_paths == {}
    session.advance(READY)
    assert session.fast_paths is fast_paths
    session = Sessions({}, authorizer).open("listener", "127.0.0.1:1")
    for principal in ("User:a", "User:b"):
        for stage in (AUTHENTICATE, READY):
            session.advance(stage)
        session.identify(principal)
        assert session.allowed("Read", "Topic", "t")
    assert [question[0] for question in authorizer.questions] == ["User:a", "User:b"]


def test_the_stages_of_a_login_follow_their_table() -> None:
    """From the tokens to ready and, to log in again, back; not past the authentication."""
    session = Sessions({}, None).open("listener", "127.0.0.1:1")
    for stage in (AUTHENTICATE, AUTHENTICATE, READY, EXPIRED, TOKENS, READY, EXPIRED):
        session.advance(stage)
    with pytest.raises(ValueError, match="ready does not follow expired"):
        session.advance(READY)
    session.advance(FAILED)
    assert {following for row in STAGES.values() for following in row} == set(STAGES) - {VERSIONS}


def test_before_the_login_only_its_own_apis_are_answered(tmp_path: Path) -> None:
    """Others close the connection, as Kafka does."""
    peer = World(tmp_path).connect()
    peer.connection.session.stage = VERSIONS
    assert peer.ask(messages.ApiVersionsRequest(), 2).error_code == 0
    assert peer.ask(messages.MetadataRequest(topics=[]), 12) is NOTHING
    assert "in stage versions of the login" in peer.closed


def test_an_authorizer_watches_produce_and_fetch_of_the_common_shape(tmp_path: Path) -> None:
    """The fast paths remember what one principal may; a session that is watched does not take them, and what it is told
    is right after the ACLs changed too."""
    authorizer = Asked()
    watched = World(tmp_path, authorizer=authorizer)
    watched.create_topic("t")
    peer = watched.connect()
    assert peer.connection.session.fast_paths == {}
    assert peer.ask(produce("t", {0: batch(b"x")}), 8).responses[0].partition_responses[0].error_code == 0
    authorizer.allows = False
    watched.broker.sessions.acls_changed()
    answer = peer.ask(produce("t", {0: batch(b"x")}), 8)
    assert answer.responses[0].partition_responses[0].error_code == TOPIC_AUTHORIZATION_FAILED


def test_new_acls_end_what_sessions_remember(tmp_path: Path) -> None:
    """Also those of other connections."""
    authorizer = Asked()
    watched = World(tmp_path, authorizer=authorizer, authorizer_class_name=STANDARD_AUTHORIZER)
    peer, other = watched.connect(), watched.connect()
    peer.connection.session.allowed("Read", "Topic", "t")
    entry = messages.CreateAclsRequest.AclCreation(
        resource_type=2, resource_name="t", resource_pattern_type=3, principal="User:x", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    assert other.ask(messages.CreateAclsRequest(creations=[entry]), 3).results[0].error_code == 0
    before = len(authorizer.questions)
    peer.connection.session.allowed("Read", "Topic", "t")
    assert len(authorizer.questions) == before + 1
