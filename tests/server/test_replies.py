"""Whom a late answer finds."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pykafkad.handlers.context import ReplyToken
from pykafkad.server.replies import Replies


class Surroundings:
    """A runtime with one connection, whose second request is in service, and a dispatcher that notes the answers."""

    def __init__(self) -> None:
        self.done: list[tuple[object, ...]] = []
        self.reactor = self
        context = SimpleNamespace(route=SimpleNamespace(dispatcher=self))
        self.connection_7 = SimpleNamespace(
            sequence=2,
            in_service=context,
            unpark=lambda: None,
            close=lambda reason: self.done.append(("close", reason)),
        )

    def connection(self, connection_id: int) -> object:
        return self.connection_7 if connection_id == 7 else None

    def finish(self, context: object, message: object) -> None:
        self.done.append(("answer", message))

    def failed(self, context: object, error: Exception) -> None:
        self.done.append(("failed", error))

    def unexpected(self, error: Exception) -> None:
        self.done.append(("unexpected", error))


@pytest.fixture
def surroundings() -> Surroundings:
    return Surroundings()


@pytest.fixture
def replies(surroundings: Surroundings) -> Replies:
    return Replies(surroundings)


def test_the_request_in_service_gets_its_answer(surroundings: Surroundings, replies: Replies) -> None:
    replies.reply(ReplyToken(7, 2), "answer")
    assert surroundings.done == [("answer", "answer")]


@pytest.mark.parametrize("token", [ReplyToken(7, 1), ReplyToken(7, 3), ReplyToken(8, 2), None])
def test_nobody_else_does(surroundings: Surroundings, replies: Replies, token: object) -> None:
    """The answer to an earlier request of the connection would be taken for that to its next."""
    replies.reply(token, "answer")
    replies.abandon(token, "a write failed")
    assert surroundings.done == []
    error = ValueError("a bug")
    replies.fail(token, error)
    assert surroundings.done == [("unexpected", error)]


def test_an_answered_request_gets_no_second_answer(surroundings: Surroundings, replies: Replies) -> None:
    surroundings.connection_7.in_service = None
    replies.reply(ReplyToken(7, 2), "answer")
    assert surroundings.done == []


def test_who_cannot_be_answered_truthfully_is_closed(surroundings: Surroundings, replies: Replies) -> None:
    replies.abandon(ReplyToken(7, 2), "a write failed")
    assert surroundings.done == [("close", "a write failed")]
