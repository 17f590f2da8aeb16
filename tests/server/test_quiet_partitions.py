"""Followers of many partitions, of which few have news: what a fetch costs depends on those alone."""

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.handlers import fetch_follower
from pykafkad.handlers.fetch import Fetch
from pykafkad.handlers.fetch_follower import note_quiet
from pykafkad.metadata import events
from pykafkad.server.broker import Broker
from pykafkad.server.leader_fetcher import LeaderFetcher
from tests.simulation.replication_clients import Clients
from tests.simulation.replication_world import World

PARTITIONS = 30
NOBODY = 99
"""A broker that is in no ISR."""


@pytest.fixture
def counted(monkeypatch):
    """A world of two brokers in which everything is in sync, and the partitions that were looked at in full since."""
    world = World(3, brokers=2)
    clients = Clients(world)
    world.create_topic("t", [[1, 2]] * PARTITIONS, min_insync_replicas=2)
    for index in range(PARTITIONS):
        assert clients.produce("t", b"first", index)[0] == 0
    world.run(5.0)
    looked_at = {"leader": [], "follower": []}
    read_one, question = Fetch._read_one, LeaderFetcher._question

    def counted_read(self, partition, *arguments):
        if self._follower:
            looked_at["leader"].append(partition.partition)
        return read_one(self, partition, *arguments)

    def counted_question(self, followed):
        looked_at["follower"].append(followed.log.partition)
        return question(self, followed)

    monkeypatch.setattr(Fetch, "_read_one", counted_read)
    monkeypatch.setattr(LeaderFetcher, "_question", counted_question)
    return world, clients, looked_at


def in_sync(world):
    return all(state.isr == (1, 2) or list(state.isr) == [1, 2] for state in world.image.topics["t"].partitions)


def test_partitions_without_news_cost_nothing(counted):
    world, _, looked_at = counted
    world.run(10.0)
    assert looked_at == {"leader": [], "follower": []} and in_sync(world)


def test_a_record_costs_what_its_own_partition_does(counted):
    world, clients, looked_at = counted
    assert clients.produce("t", b"second", 7) == (0, 1)
    world.run(2.0)
    assert set(looked_at["leader"]) == set(looked_at["follower"]) == {7}
    assert len(looked_at["leader"]) < 8 and len(looked_at["follower"]) < 4
    log = world.log(2, "t", 7)
    assert (log.end_offset, log.high_watermark) == (2, 2)


def test_a_change_of_the_metadata_has_all_looked_at_once(counted):
    world, _, looked_at = counted
    world.create_topic("other", [[1, 2]])
    world.run(1.0)
    assert set(looked_at["leader"]) == set(range(PARTITIONS)) and len(looked_at["leader"]) < 5 * PARTITIONS
    looked_at["leader"].clear()
    world.run(5.0)
    assert looked_at["leader"] == []


@pytest.mark.long
def test_one_fetch_looks_at_some_and_the_next_begins_with_the_others(counted, monkeypatch):
    """What goes on having news starves none of the others."""
    world, clients, looked_at = counted
    monkeypatch.setattr(fetch_follower, "AT_ONCE", 4)
    reads, read = [], fetch_follower.FollowerFetch.read

    def counted_read(self, total=0):
        before = len(looked_at["leader"])
        answer = read(self, total)
        reads.append(len(looked_at["leader"]) - before)
        return answer

    monkeypatch.setattr(fetch_follower.FollowerFetch, "read", counted_read)
    # These always have news.
    monkeypatch.setattr(
        fetch_follower,
        "note_quiet",
        lambda ctx, rows, replica_id: note_quiet(ctx, [each for each in rows if each[0].partition > 5], replica_id),
    )
    for partition in world.nodes[1].broker.fetch_sessions._sessions.copy().popitem()[1].partitions.values():
        if partition.partition <= 5:
            partition.quiet_log = None
    world.create_topic("other", [[1, 2]])
    world.run(1.0)
    assert max(reads) == 4 and set(looked_at["leader"]) == set(range(PARTITIONS))
    assert clients.produce("t", b"second", PARTITIONS - 1) == (0, 1)
    world.run(2.0)
    assert world.log(2, "t", PARTITIONS - 1).high_watermark == 2


def test_followers_that_cannot_come_in_sync_do_not_ask_without_a_pause(counted, monkeypatch):
    """The leader has looked at all of them, and none has news: it answers as soon as one has, or a little later."""
    world, clients, looked_at = counted
    monkeypatch.setattr(fetch_follower, "AT_ONCE", 4)
    monkeypatch.setattr(fetch_follower, "note_quiet", lambda ctx, rows, _: note_quiet(ctx, rows, NOBODY))
    fetches, serve = [], fetch_follower.serve
    monkeypatch.setattr(fetch_follower, "serve", lambda *arguments: fetches.append(world.now) or serve(*arguments))
    world.create_topic("other", [[1, 2]])
    world.run(1.0)
    fetches.clear()
    looked_at["leader"].clear()
    world.run(2.0)
    assert len(fetches) <= 2.0 / (fetch_follower.SOON_MS / 1000)
    assert set(looked_at["leader"]) == set(range(PARTITIONS))
    began = world.now
    assert clients.produce("t", b"second", PARTITIONS - 1) == (0, 1)
    assert world.now - began < 0.2


def test_a_follower_that_was_idle_for_long_is_in_sync(counted):
    """It said so with each fetch: an append a moment ago does not make it one that lags."""
    world, _, _ = counted
    world.run(10.0)
    replica = world.log(1, "t", 3).replica
    for each in (3, 4):
        followed = world.log(1, "t", each).replica.follower(2)
        assert world.now - followed.caught_up_at < 1.0
    replica.end_offset += 1
    assert not [each for each in replica.tick(world.now) if type(each).__name__ == "ProposeIsr"]


def test_a_follower_hears_of_the_leaders_log_start(counted):
    world, _, _ = counted
    world.log(1, "t", 5).delete_records(1)
    world.run(3.0)
    assert world.log(2, "t", 5).log_start_offset == 1
    assert world.log(1, "t", 5).replica.start_of(2) == 1


def test_a_follower_tells_of_its_own_log_start(counted):
    world, _, looked_at = counted
    world.log(2, "t", 5).delete_records(1)
    world.run(3.0)
    assert world.log(1, "t", 5).replica.start_of(2) == 1
    assert set(looked_at["follower"]) == {5}


def test_a_partition_that_goes_leaves_the_session(counted):
    world, clients, _ = counted
    world.create_topic("u", [[1, 2]])
    world.run(2.0)
    (fetcher,) = world.nodes[2].broker.replication.fetchers._by_leader.values()
    assert len(fetcher._by_key) == PARTITIONS + 1
    topic_id = world.image.topics["u"].id
    world.decide(lambda token: events.DeleteTopics(token, {topic_id: "u"}))
    world.run(3.0)
    assert len(fetcher._by_key) == PARTITIONS
    (session,) = world.nodes[1].broker.fetch_sessions._sessions.values()
    assert len(session.partitions) == PARTITIONS
    assert clients.produce("t", b"second", 1) == (0, 1)


def test_a_log_that_fails_at_the_leader_is_told(counted, monkeypatch):
    """As long as it leads on."""
    monkeypatch.setattr(Broker, "hand_over", lambda broker, log: None)
    world, _, _ = counted
    log = world.log(1, "t", 9)
    log.fail(StorageFailure("write", log.directory, "simulated"))
    log.close()
    (fetcher,) = world.nodes[2].broker.replication.fetchers._by_leader.values()
    world.run(2.0)
    (paused,) = [each for each in fetcher._followed.values() if each.log.partition == 9]
    assert paused.paused_until > world.now - 1.0
