"""A shard of a coordinator that was loaded from a log whose end is not committed yet."""

from types import SimpleNamespace

import pytest

from pykafkad import effects
from pykafkad.errors import NOT_LEADER_OR_FOLLOWER, KafkaError
from pykafkad.server.commits import Commits
from pykafkad.server.coordinator_host import ShardRunner


class Log:
    """Has one record that another leader appended, and did not commit."""

    topic, partition = "__transaction_state", 0
    high_watermark, end_offset, offline, writes_under_way = 4, 5, None, 0
    replica = SimpleNamespace(leader_epoch=7)


@pytest.fixture
def shard():
    """The runner, what it has answered, what it has given up, and the failures that its host was told."""
    said = SimpleNamespace(answers=[], abandoned=[], failures=[])
    replies = SimpleNamespace(
        reply=lambda token, message: said.answers.append(message),
        abandon=lambda token, reason: said.abandoned.append(token),
    )
    broker = SimpleNamespace(
        runtime=SimpleNamespace(now=0.0, now_ms=0, replies=replies),
        settings=SimpleNamespace(pykafkad_group_commit=False),
        image=None,
    )
    broker.commits = Commits(broker)
    host = SimpleNamespace(shard_failed=lambda runner, failure: said.failures.append(failure))
    said.runner = ShardRunner(broker, host, SimpleNamespace(step=lambda *_: []), Log())
    said.runner._loaded(None)
    said.runner.reply(effects.Reply("asks", "it belongs to the transaction"))
    said.waits = broker.commits._waits[said.runner.log]
    return said


def test_an_answer_waits_until_it_is_committed(shard):
    """It could tell of a transaction that the next leader knows nothing of: its records would never get a marker."""
    assert not shard.answers
    for _, then in list(shard.waits):
        then(None)
    assert shard.answers == ["it belongs to the transaction"]


def test_an_answer_that_was_lost_is_not_given(shard):
    """The client looks for its coordinator."""
    for _, then in list(shard.waits):
        then(KafkaError(NOT_LEADER_OR_FOLLOWER))
    assert not shard.answers and shard.abandoned == ["asks"] and len(shard.failures) == 1
