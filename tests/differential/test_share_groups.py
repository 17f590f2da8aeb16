"""Records of share groups, which two brokers give at moments of their own."""

from __future__ import annotations

import threading

import pytest

from pykafkad.differential import links, share_groups
from pykafkad.differential.share_groups import ShareGroups
from pykafkad.testing import Broker
from pykafkad.testing.waits import until
from pykafkad.testing.wire_client import VERSIONS, WireClient
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch

LONG = 30
FETCHES = 20
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
NEWER = {"Metadata": 12, "ShareGroupHeartbeat": 1, "ShareFetch": 2, "ShareAcknowledge": 2, "IncrementalAlterConfigs": 1}
GROUP, TOPIC = "s", b"o" * 16
Fetched = messages.ShareFetchResponse


# --- two brokers ------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def newer(monkeypatch):
    for api, version in NEWER.items():
        monkeypatch.setitem(VERSIONS, api, version)
    monkeypatch.setattr(share_groups, "ATTEMPTS", 3)
    monkeypatch.setattr(share_groups, "WAIT_MS", 1)


@pytest.fixture
def pair():
    """Two brokers that are alike."""
    with Broker(topics={"orders": 1}) as first, Broker(topics={"orders": 1}) as second:
        yield first, second


class Member:
    """A member of the share group at both brokers."""

    def __init__(self, between, pair, name="A"):
        self.client = WireClient("127.0.0.1", between.port, LONG, client_id="app")
        self.name, self.epoch = name, 0
        # Ids of topics are learnt from what both say of them.
        (self.topic_id,) = (each.topic_id for each in self.client.ask("Metadata", topics=None).topics)
        self.from_the_start()
        self.client.ask("FindCoordinator", key_type=0, coordinator_keys=[GROUP])
        self.beats = 0
        self.alone = [WireClient(*links.address(each.bootstrap), LONG, client_id="alone") for each in pair]
        # A broker assigns a partition at a heartbeat, and one of them may be a heartbeat later.
        until(self.described, lambda groups: all(map(has_partition, groups)), "its partition at both", LONG)

    def described(self):
        """The group at each broker, after a heartbeat."""
        self.beat()
        return [each.ask("ShareGroupDescribe", group_ids=[GROUP]).groups[0] for each in self.alone]

    def beat(self):
        """A heartbeat, by which the group gets its partition."""
        fields = {"group_id": GROUP, "member_id": self.name, "member_epoch": self.beats}
        topics = None if self.beats else ["orders"]
        answer = self.client.ask("ShareGroupHeartbeat", **fields, subscribed_topic_names=topics)
        self.beats = answer.member_epoch if not answer.error_code else self.beats
        return answer

    def from_the_start(self):
        request = messages.IncrementalAlterConfigsRequest
        config = request.AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
        row = request.AlterConfigsResource(resource_type=32, resource_name=GROUP, configs=[config])
        assert not self.client.ask("IncrementalAlterConfigs", resources=[row]).responses[0].error_code

    def _ask(self, api, topic, row, said, epoch=None, **fields):
        request = getattr(messages, f"{api}Request")
        batches = [
            request.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in said
        ]
        row = getattr(request, row)(partition_index=0, acknowledgement_batches=batches)
        topics = [getattr(request, topic)(topic_id=self.topic_id, partitions=[row])]
        epoch = self.epoch if epoch is None else epoch
        answer = self.client.ask(
            api, group_id=GROUP, member_id=self.name, share_session_epoch=epoch, topics=topics, **fields
        )
        self.epoch += 1
        self.last = answer
        assert not answer.error_code, answer
        return answer

    def fetch(self, *said, most=500, **fields):
        """The ranges that it gets, each with its delivery count."""
        fields = {"max_wait_ms": 2000, "min_bytes": 1, "max_records": most, "batch_size": most, **fields}
        answer = self._ask("ShareFetch", "FetchTopic", "FetchPartition", said, **fields)
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for topic in answer.responses
            for row in topic.partitions
            for each in row.acquired_records
        ]

    def fetch_all(self, count):
        """The same, of several fetches until there are so many records."""
        found = []
        for _ in range(FETCHES):
            found += self.fetch()
            if sum(last - start + 1 for start, last, _ in found) >= count:
                return found
        raise AssertionError(f"{self.last}")

    def acknowledge(self, *said, **fields):
        """The error of the partition."""
        answer = self._ask("ShareAcknowledge", "AcknowledgeTopic", "AcknowledgePartition", said, **fields)
        return answer.responses[0].partitions[0].error_code

    def end(self):
        """End the session."""
        fields = {"group_id": GROUP, "member_id": self.name, "share_session_epoch": -1, "topics": []}
        assert not self.client.ask("ShareAcknowledge", **fields).error_code


@pytest.fixture
def member(pair, between):
    found = Member(between, pair)
    yield found
    for each in (found.client, *found.alone):
        each.close()


def has_partition(group):
    return any(each.assignment.topic_partitions for each in group.members)


def told(between):
    return [line for each in between.differences for line in each.lines(("a", "b"))]


def produce(brokers, *values):
    for broker in brokers:
        for value in values:
            broker.produce("orders", value)


@pytest.mark.long
def test_records_that_both_give_are_the_same(pair, between, member):
    produce(pair, "one", "two", "three")
    assert {count for _, _, count in member.fetch_all(3)} == {1}
    assert member.acknowledge((0, 0, [ACCEPT]), (1, 2, [RELEASE, REJECT])) == 0
    assert member.fetch() == [(1, 1, 2)]
    member.end()
    assert told(between) == []


@pytest.mark.long
def test_what_one_of_them_has_more_of_is_told(pair, between, member):
    produce(pair, "one")
    produce(pair[:1], "two", "three")
    member.fetch_all(3)
    lines = told(between)
    assert {line.partition("client 'app': ")[2].partition(":")[0] for line in lines} == {
        "responses.orders.partitions.0.acquired_records"
    }
    assert ["not there" in line.rpartition("b ")[2] for line in lines] == [True] * len(lines)


@pytest.mark.long
def test_a_broker_that_gives_later_is_asked_again(pair, between, member, monkeypatch):
    """The second one has the other record when it is asked for the third time, and hears what the member says."""
    monkeypatch.setattr(share_groups, "ATTEMPTS", 50)
    produce(pair, "one")
    produce(pair[:1], "two")
    with pair[1].faults.delay("ShareFetch", 0, times=None) as asked:
        later = threading.Thread(target=lambda: (asked.wait(3, LONG), produce(pair[1:], "two")))
        later.start()
        member.fetch_all(2)
        later.join()
        assert asked.count >= 3
    # The session of the second broker is some fetches on.
    assert member.acknowledge((0, 1, [ACCEPT])) == 0
    assert member.fetch(max_wait_ms=0) == []
    member.end()
    assert told(between) == []


@pytest.mark.long
def test_other_records_and_other_errors_are_told(pair, between, member):
    produce(pair[:1], "one")
    produce(pair[1:], "two")
    assert member.fetch() == [(0, 0, 1)]
    (line,) = told(between)
    path = "responses.orders.partitions.0"
    assert f"ShareFetch v2 of client 'app': {path}.records.0: a " in line
    assert "one" in line.partition(", b ")[0] and "two" in line.partition(", b ")[2]
    with pair[1].faults.answer("ShareAcknowledge", "INVALID_RECORD_STATE"):
        assert member.acknowledge((0, 0, [ACCEPT])) == 0
    assert any("error_code: a 0, b 121" in each for each in told(between)[1:])


# --- answers of which each broker's is given --------------------------------------------------------------------------


class Talk:
    """What members ask, and what each broker answers; the clock is the test's."""

    def __init__(self):
        self.now = 0.0
        self.groups = ShareGroups(lambda: self.now, lambda topic: topic[:1].decode(), lambda topic: topic)
        self.epochs = {}

    def fetch(self, first, second, *later, member="A", said=(), codes=(0, 0), epoch=None, most=500):
        """What differs after a ShareFetch, of which the brokers give those ranges; `later` is what the second gives
        when it is asked again. `self.heard` is what it has heard."""
        request = messages.ShareFetchRequest
        row = request.FetchPartition(partition_index=0, acknowledgement_batches=[
            request.AcknowledgementBatch(first_offset=each[0], last_offset=each[1], acknowledge_types=each[2])
            for each in said
        ])  # fmt: skip
        epoch = self.epochs.get(member, 0) if epoch is None else epoch
        fields = {"group_id": GROUP, "member_id": member, "share_session_epoch": epoch, "max_records": most}
        topics = [request.FetchTopic(topic_id=TOPIC, partitions=[row])]
        self.epochs[member] = epoch + 1
        sent = request(**fields, topics=topics)
        self.groups.translate(share_groups.FETCH, sent)
        self.epoch, self.heard = sent.share_session_epoch, acknowledged(sent)
        asked = request(**fields, topics=[request.FetchTopic(topic_id=TOPIC, partitions=[row])])
        answers = [fetched(each, code) for each, code in zip((first, second), codes, strict=True)]
        more = self.groups.heard(share_groups.FETCH, asked, *answers)
        rest = list(later)
        self.again = []
        while more is not None:
            self.again.append((more.share_session_epoch, acknowledged(more)))
            more = self.groups.heard_more(asked, fetched(rest.pop(0) if rest else []))
        return [each[1:] for each in self.groups.places(asked)]


def acknowledged(request):
    return [
        (each.first_offset, each.last_offset, list(each.acknowledge_types))
        for topic in request.topics
        for row in topic.partitions
        for each in row.acknowledgement_batches
    ]


def fetched(ranges, code=0):
    found = [Fetched.AcquiredRecords(first_offset=a, last_offset=b, delivery_count=count) for a, b, count in ranges]
    content = b"".join(
        bytes(build_batch([(None, str(offset).encode(), [], 1)], base_offset=offset))
        for first, last, _ in ranges
        for offset in range(first, last + 1)
    )
    row = Fetched.PartitionData(partition_index=0, acquired_records=found, records=content, acknowledge_error_code=code)
    return Fetched(responses=[Fetched.ShareFetchableTopicResponse(topic_id=TOPIC, partitions=[row])])


def test_other_delivery_counts_are_told():
    talk = Talk()
    assert talk.fetch([(0, 1, 1)], [(0, 1, 1)]) == []
    assert talk.fetch([(0, 0, 2)], [(0, 0, 1)], said=[(0, 0, [RELEASE])]) == [("delivery count 2", "delivery count 1")]


def test_delivery_counts_are_not_compared_after_a_lock_has_run_out():
    """Each broker's clock began at a moment of its own."""
    talk = Talk()
    talk.fetch([(0, 0, 1)], [(0, 0, 1)])
    assert talk.fetch([(0, 0, 2)], []) == []
    assert talk.fetch([(0, 0, 3)], [(0, 0, 2)]) == []


def test_the_second_broker_hears_when_it_has_given_the_record():
    talk = Talk()
    assert talk.fetch([(0, 3, 1)], [(0, 1, 1)], [(2, 2, 1)]) == [("3", "not there")]
    assert [epoch for epoch, _ in talk.again] == [1, 2, 3]
    assert talk.fetch([], [(3, 3, 1)], said=[(0, 3, [ACCEPT, REJECT, RELEASE, ACCEPT])]) == []
    assert (talk.epoch, talk.heard) == (4, [(0, 2, [ACCEPT, REJECT, RELEASE])])
    assert talk.fetch([(2, 2, 2)], [(2, 2, 2)]) == []
    assert (talk.epoch, talk.heard) == (5, [(3, 3, [ACCEPT])])


def test_another_member_has_it_at_the_second_broker():
    """Then this one need not get it there, and the other one says there what this one has said."""
    talk = Talk()
    talk.fetch([], [(0, 0, 1)], member="B")
    assert talk.fetch([(0, 0, 1)], []) == [] and talk.again == []
    talk.fetch([], [], said=[(0, 0, [ACCEPT])])
    assert talk.heard == []
    talk.fetch([], [], member="B")
    assert talk.heard == [(0, 0, [ACCEPT])]


def test_what_was_never_given_is_passed_on():
    talk = Talk()
    talk.fetch([], [])
    talk.fetch([], [], said=[(7, 9, [ACCEPT])])
    assert talk.heard == [(7, 9, [ACCEPT])]


def test_renewals_are_passed_on_for_what_both_have():
    talk = Talk()
    talk.fetch([(0, 1, 1)], [(0, 0, 1)])
    talk.fetch([], [], said=[(0, 1, [RENEW])])
    assert talk.heard == [(0, 0, [RENEW])]
    talk.fetch([], [], said=[(0, 0, [ACCEPT])])
    assert talk.heard == [(0, 0, [ACCEPT])]


def test_other_outcomes_are_told():
    talk = Talk()
    talk.fetch([(0, 3, 1)], [(0, 3, 1)])
    assert talk.fetch([], [], said=[(0, 0, [ACCEPT])], codes=(0, 121)) == [(0, 121)]
    assert talk.fetch([], [], said=[(1, 1, [ACCEPT])], codes=(121, 0)) == [(121, 0)]
    # The second broker hears of nothing, and has taken that.
    talk = Talk()
    talk.fetch([(0, 0, 1)], [])
    assert talk.fetch([], [], said=[(0, 0, [ACCEPT])], codes=(121, 0)) == []


def test_what_the_second_broker_alone_gives_is_told_after_a_while():
    talk = Talk()
    talk.fetch([], [(0, 1, 1)])
    found = []
    for _ in range(share_groups.PATIENT_FETCHES + 2):
        talk.now += share_groups.PATIENT_SECONDS
        found.append(talk.fetch([], []))
    assert [each for each in found if each] == [[("not there", "0-1")]]
    # Neither many fetches at once nor the time alone are a proof.
    talk = Talk()
    talk.fetch([], [(0, 0, 1)])
    assert [talk.fetch([], []) for _ in range(50)] == [[]] * 50
    talk.now += 100
    assert talk.fetch([(0, 0, 1)], []) == []
    assert talk.fetch([], []) == []


def test_who_leaves_gives_everything_back():
    talk = Talk()
    talk.fetch([(0, 1, 1)], [(0, 1, 1)])
    talk.fetch([], [], epoch=-1)
    assert talk.fetch([(0, 1, 2)], [(0, 1, 1)], epoch=0) == [("delivery count 2", "delivery count 1")] * 2
    # What one of them alone had given has another count afterwards.
    talk = Talk()
    talk.fetch([(0, 0, 1)], [(0, 1, 1)])
    talk.fetch([], [], epoch=-1)
    assert talk.fetch([(1, 1, 1)], [(1, 1, 2)], epoch=0) == []


def test_it_remembers_so_many_records_and_members(monkeypatch):
    monkeypatch.setattr(share_groups, "MOST_OFFSETS", 10)
    monkeypatch.setattr(share_groups, "MOST_MEMBERS", 3)
    talk = Talk()
    for number in range(5):
        talk.fetch([(number * 10, number * 10 + 9, 1)], [(number * 10, number * 10 + 9, 1)], member=str(number))
    assert talk.groups.sizes() == (10, 3)
    # A range as no broker should give it.
    talk.groups.heard(share_groups.FETCH, *wide())
    assert talk.groups.sizes()[0] == 10


def wide():
    row = Fetched.PartitionData(partition_index=0, records=b"")
    row.acquired_records = [Fetched.AcquiredRecords(first_offset=0, last_offset=2**62, delivery_count=1)]
    answer = Fetched(responses=[Fetched.ShareFetchableTopicResponse(topic_id=TOPIC, partitions=[row])])
    return messages.ShareFetchRequest(group_id=GROUP, member_id="wide", max_records=1), answer, Fetched()


def test_what_is_accepted_is_forgotten():
    talk = Talk()
    talk.fetch([(0, 99, 1)], [(0, 99, 1)])
    talk.fetch([], [], said=[(0, 99, [ACCEPT])])
    assert talk.groups.sizes()[0] == 0
