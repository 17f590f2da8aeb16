"""Members that live by heartbeats, at two brokers that count their epochs and place their partitions differently."""

from __future__ import annotations

import pytest

from pykafkad.differential import group_members, links
from pykafkad.differential.group_members import GroupMembers
from pykafkad.testing import Broker
from pykafkad.testing.waits import until
from pykafkad.testing.wire_client import VERSIONS, WireClient
from pykafkad.wire import messages

LONG = 30
NEWER = {
    "ConsumerGroupHeartbeat": 1, "ShareGroupHeartbeat": 1, "StreamsGroupHeartbeat": 0, "OffsetCommit": 9,
    "OffsetFetch": 9,
}  # fmt: skip
MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture(autouse=True)
def newer(monkeypatch):
    for api, version in NEWER.items():
        monkeypatch.setitem(VERSIONS, api, version)


@pytest.fixture
def pair():
    """Two brokers that are alike."""
    with Broker(topics={"orders": 2}) as first, Broker(topics={"orders": 2}) as second:
        yield first, second


@pytest.fixture
def client(between):
    found = WireClient("127.0.0.1", between.port, LONG, client_id="app")
    # Ids of topics are learnt from what both say of them.
    found.ask("Metadata", topics=None)
    yield found
    found.close()


def heartbeat(client, epoch, member=MEMBER, **fields):
    """The answer once the coordinator is there."""
    client.ask("FindCoordinator", key_type=0, coordinator_keys=["g"])
    fields = {"group_id": "g", "member_id": member, "member_epoch": epoch, **fields}
    return until(
        lambda: client.ask("ConsumerGroupHeartbeat", **fields), lambda row: row.error_code == 0, "heartbeat", LONG
    )


def join(client, member=MEMBER, **fields):
    fields = {"subscribed_topic_names": ["orders"], "topic_partitions": [], "rebalance_timeout_ms": 10_000, **fields}
    return heartbeat(client, 0, member, **fields)


def told(between):
    return [line for each in between.differences for line in each.lines(("a", "b"))]


def epochs_are_apart(broker):
    """A member that came and left before has moved the group's epoch on."""
    other = WireClient(*links.address(broker.bootstrap), LONG, client_id="before")
    join(other, "BBBBBBBBBBBBBBBBBBBBBB")
    heartbeat(other, -1, "BBBBBBBBBBBBBBBBBBBBBB")
    other.close()


def assigned(client, pair):
    """The epoch of a new member when both brokers have given it its partitions."""
    epoch = join(client).member_epoch
    for broker in pair:
        alone = WireClient(*links.address(broker.bootstrap), LONG, client_id="alone")
        while alone.ask("ConsumerGroupDescribe", group_ids=["g"]).groups[0].group_state != "Stable":
            epoch = heartbeat(client, epoch).member_epoch
        alone.close()
    return epoch


@pytest.mark.long
@pytest.mark.parametrize("which", [0, 1])
def test_epochs_are_translated(pair, between, client, which):
    epochs_are_apart(pair[which])
    epoch = assigned(client, pair)
    request = messages.OffsetCommitRequest
    row = request.OffsetCommitRequestTopic
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=3, committed_metadata="")
    commit = {"group_id": "g", "member_id": MEMBER, "generation_id_or_member_epoch": epoch}
    answer = client.ask("OffsetCommit", **commit, topics=[row(name="orders", partitions=[partition])])
    assert answer.topics[0].partitions[0].error_code == 0
    request = messages.OffsetFetchRequest
    asked = request.OffsetFetchRequestGroup
    topics = [request.OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
    group = asked(group_id="g", member_id=MEMBER, member_epoch=epoch, topics=topics)
    fetched = client.ask("OffsetFetch", groups=[group]).groups[0]
    assert (fetched.error_code, fetched.topics[0].partitions[0].committed_offset) == (0, 3)
    (described,) = client.ask("ConsumerGroupDescribe", group_ids=["g"]).groups
    assert described.members[0].member_epoch == epoch
    assert told(between) == []


def test_epochs_of_share_groups_are_translated(pair, between, client):
    other = WireClient(*links.address(pair[1].bootstrap), LONG, client_id="before")
    fields = {"group_id": "s", "subscribed_topic_names": ["orders"]}

    def beat(client, member, epoch, **more):
        client.ask("FindCoordinator", key_type=0, coordinator_keys=["s"])
        return until(
            lambda: client.ask("ShareGroupHeartbeat", group_id="s", member_id=member, member_epoch=epoch, **more),
            lambda row: row.error_code == 0,
            "heartbeat",
            LONG,
        )

    beat(other, "B", 0, subscribed_topic_names=fields["subscribed_topic_names"])
    beat(other, "B", -1)
    other.close()
    epoch = beat(client, "A", 0, subscribed_topic_names=["orders"]).member_epoch
    assert beat(client, "A", epoch).member_epoch == epoch
    assert told(between) == []


def test_another_interval_of_heartbeats_is_told(client, between, pair):
    pair[1].produce("orders", "a")
    other = WireClient(*links.address(pair[1].bootstrap), LONG)
    request = messages.IncrementalAlterConfigsRequest
    row = request.AlterConfigsResource
    config = request.AlterableConfig(name="consumer.heartbeat.interval.ms", config_operation=0, value="6000")
    asked = row(resource_type=32, resource_name="g", configs=[config])
    assert other.ask("IncrementalAlterConfigs", resources=[asked]).responses[0].error_code == 0
    other.close()
    join(client)
    (line,) = told(between)
    assert line.endswith("ConsumerGroupHeartbeat v1 of client 'app': heartbeat_interval_ms: a 5000, b 6000")


# --- assignments of one heartbeat or of a later one -------------------------------------------------------------------


class Beats:
    """Heartbeats of one member, of which each broker says what it has; the clock is the test's."""

    def __init__(self, key=group_members.CONSUMER, topics=("orders",)):
        self.now = 0.0
        self.members = GroupMembers(lambda: self.now)
        self.key, self.topics = key, list(topics)
        self.is_first = True

    def beat(self, first, second, epoch=1):
        """What is apart after one; `first` and `second` are partitions by topic, or None for an answer without."""
        request = messages.ConsumerGroupHeartbeatRequest
        asked = request(group_id="g", member_id="m", member_epoch=epoch)
        if self.is_first:
            asked.subscribed_topic_names, self.is_first = self.topics, False
        answers = [self._answer(each) for each in (first, second)]
        return [each[1:] for each in self.members.heard(self.key, asked, *answers, lambda topic, _: topic[:1].decode())]

    @staticmethod
    def _answer(told):
        response = messages.ConsumerGroupHeartbeatResponse
        if told is None:
            return response(member_epoch=1)
        row = response.TopicPartitions
        rows = [row(topic_id=name.encode() * 16, partitions=partitions) for name, partitions in told.items()]
        return response(member_epoch=1, assignment=response.Assignment(topic_partitions=rows))


def test_an_assignment_may_come_later():
    beats = Beats()
    assert beats.beat({"o": [0, 1]}, {}) == []
    beats.now = 100.0
    assert beats.beat(None, None) == []
    assert beats.beat(None, {"o": [1, 0]}) == []
    assert [beats.beat(None, None) for _ in range(10)] == [[]] * 10


def test_an_assignment_that_stays_another_one_is_told_once():
    beats = Beats()
    found = [beats.beat({"o": [0]}, {"o": [1]})]
    for _ in range(10):
        beats.now += 1.0
        found.append(beats.beat(None, None))
    assert [each for each in found if each] == [[(["o: 0"], ["o: 1"])]]
    assert found.index([(["o: 0"], ["o: 1"])]) == group_members.PATIENT_BEATS


def test_many_heartbeats_in_a_moment_are_not_long():
    beats = Beats()
    assert [beats.beat({"o": [0]}, {"o": [1]}) for _ in range(50)] == [[]] * 50


def test_who_leaves_is_asked_what_it_had():
    beats = Beats()
    beats.beat({"o": [0]}, {"o": [1]})
    beats.beat(None, None)
    assert beats.beat(None, None, epoch=-1) == [(["o: 0"], ["o: 1"])]
    # The first heartbeat is no proof.
    beats = Beats()
    beats.beat({"o": [0]}, {"o": [1]})
    assert beats.beat(None, None, epoch=-1) == []


def test_of_several_topics_the_number_of_partitions_counts():
    """Which ones a member gets hangs on their ids, in Kafka too."""
    beats = Beats(topics=("o", "p"))
    beats.beat({"o": [0, 1]}, {"p": [0, 1]})
    beats.beat(None, None)
    assert beats.beat(None, None, epoch=-1) == []
    beats = Beats(topics=("o", "p"))
    beats.beat({"o": [0, 1]}, {"p": [0]})
    beats.beat(None, None)
    assert beats.beat(None, None, epoch=-1) == [(["o: 0, 1"], ["p: 0"])]


def test_of_a_share_group_the_number_of_partitions_counts():
    """Which of two members gets which one hangs on who came first."""
    beats = Beats(key=group_members.SHARE)
    beats.beat({"o": [0]}, {"o": [1]})
    beats.beat(None, None)
    assert beats.beat(None, None, epoch=-1) == []
    beats = Beats(key=group_members.SHARE)
    beats.beat({"o": [0]}, {"o": [0, 1]})
    beats.beat(None, None)
    assert beats.beat(None, None, epoch=-1) == [(["o: 0"], ["o: 0, 1"])]


def test_it_remembers_so_many_members(monkeypatch):
    monkeypatch.setattr(group_members, "MOST_MEMBERS", 3)
    members = GroupMembers(lambda: 0.0)
    for number in range(10):
        asked = messages.ConsumerGroupHeartbeatRequest(group_id="g", member_id=f"m{number}", member_epoch=0)
        answers = [messages.ConsumerGroupHeartbeatResponse(member_epoch=epoch) for epoch in (1, 2)]
        list(members.heard(group_members.CONSUMER, asked, *answers, lambda topic, _: topic))
    later = [messages.ConsumerGroupHeartbeatRequest(group_id="g", member_id=f"m{n}", member_epoch=1) for n in range(10)]
    assert [members.translate(group_members.CONSUMER, each) for each in later] == [False] * 7 + [True] * 3


def test_what_the_second_broker_waits_for_is_said_again():
    """The first one has heard that the member has given up its partition, and is not told again."""
    beats = Beats()
    beats.beat({"o": [0]}, {"o": [0, 1]})
    request = messages.ConsumerGroupHeartbeatRequest
    row = request.TopicPartitions(topic_id=b"o" * 16, partitions=[0])
    whole = request(group_id="g", member_id="m", member_epoch=1, topic_partitions=[row])
    short = request(group_id="g", member_id="m", member_epoch=1)
    beats.members.translate(group_members.CONSUMER, whole)
    assert beats.members.translate(group_members.CONSUMER, short)
    assert short.topic_partitions == [row]
    beats.beat(None, {"o": [0]})
    assert not beats.members.translate(group_members.CONSUMER, request(group_id="g", member_id="m", member_epoch=1))
