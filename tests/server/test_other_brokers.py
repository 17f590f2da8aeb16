"""What brokers of one cluster ask of each other: markers and verification of transactions, state of share groups."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.uuids import to_text
from pykafkad.wire import messages
from tests.handlers.group_member import MEMBER
from tests.handlers.requests import batch, fetch, produce
from tests.handlers.share_requests import Share, acquired, codes
from tests.simulation.brokers_world import BrokersWorld
from tests.simulation.network import Link

TRANSACTION = 1


@pytest.fixture(params=[1, 2, 3])
def world(request):
    """The network takes its time, in another order for each seed."""
    made = BrokersWorld(seed=request.param)
    made.network.set_usual_link(Link(delay=0.001, jitter=0.002))
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


class Producer:
    """A transactional producer that asks whom it should."""

    def __init__(self, world, transactional_id="id"):
        self.world = world
        self.transactional_id = transactional_id
        self.coordinator = self.find(TRANSACTION, transactional_id)
        answer = self.until_coordinated(
            messages.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), 5
        )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences = {}

    def find(self, kind, key):
        """The node id of a coordinator."""
        request = messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        rows = []

        def is_found():
            rows[:] = self.world.ask(1, request, 6).coordinators
            return not rows[0].error_code

        self.world.until(is_found)
        return rows[0].node_id

    def until_coordinated(self, request, version, node_id=None):
        """The answer when the coordinator is loaded and not busy."""
        answers = []

        def is_answered():
            answers[:] = [self.world.ask(node_id or self.coordinator, request, version)]
            return answers[0].error_code not in (
                errors.COORDINATOR_LOAD_IN_PROGRESS,
                errors.CONCURRENT_TRANSACTIONS,
                errors.NOT_COORDINATOR,
            )

        self.world.until(is_answered)
        assert not answers[0].error_code, errors.name(answers[0].error_code)
        return answers[0]

    def add(self, *partitions, topic="t"):
        """AddPartitionsToTxn as clients before 4.0 send it."""
        request = messages.AddPartitionsToTxnRequest
        asked = request(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[request.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        (row,) = self.world.ask(self.coordinator, asked, 3).results_by_topic_v3_and_below
        return [each.partition_error_code for each in row.results_by_partition]

    def send(self, partition, value, version=12):
        """A record of the transaction to the leader of a partition; the row of the answer."""
        sequence = self.sequences.get(partition, 0)
        records = batch(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        request = produce("t", {partition: records}, transactional_id=self.transactional_id)
        answer = self.world.ask(self.world.leader("t", partition), request, version)
        (row,) = answer.responses[0].partition_responses
        if not row.error_code:
            self.sequences[partition] = sequence + 1
        return row

    def end(self, *, commit=True, version=5):
        request = messages.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = self.until_coordinated(request, version)
        if version >= 5:
            self.producer_id, self.epoch, self.sequences = answer.producer_id, answer.producer_epoch, {}

    def state(self):
        request = messages.DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        (row,) = self.world.ask(self.coordinator, request, 0).transaction_states
        return row.transaction_state


def committed(world, partition):
    """The last stable offset and the high watermark of a partition, and how many aborted transactions it tells of."""
    request = fetch("t", {partition: 0}, isolation_level=1)
    row = world.ask(world.leader("t", partition), request, 12).responses[0].partitions[0]
    return row.last_stable_offset, row.high_watermark, len(row.aborted_transactions or ())


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_over_partitions_at_three_brokers(world, commit):
    """Each broker adds its partition at the coordinator, and gets its marker from there."""
    world.create_topic("t", 3)
    assert {world.leader("t", index) for index in range(3)} == {1, 2, 3}
    producer = Producer(world)
    for index in range(3):
        assert producer.send(index, b"v").error_code == 0
        assert committed(world, index)[0] == 0
    assert producer.state() == "Ongoing"
    producer.end(commit=commit)
    world.until(lambda: producer.state() == ("CompleteCommit" if commit else "CompleteAbort"))
    assert [committed(world, index) for index in range(3)] == [(2, 2, 0 if commit else 1)] * 3


def test_a_batch_outside_of_the_transaction_is_refused(world):
    """The leader of the partition asks the coordinator at another broker (KIP-890)."""
    world.create_topic("t", 3)
    producer = Producer(world)
    elsewhere = [index for index in range(3) if world.leader("t", index) != producer.coordinator]
    assert producer.add(elsewhere[0]) == [0]
    assert producer.send(elsewhere[0], b"v", version=11).error_code == 0
    assert producer.send(elsewhere[1], b"v", version=11).error_code == errors.TRANSACTION_ABORTABLE
    producer.end(commit=False, version=4)
    world.until(lambda: producer.state() == "CompleteAbort")


def test_markers_wait_for_the_leader_of_a_partition(world):
    """The transaction ends everywhere when a broker that was down is back."""
    world.create_topic("t", 3)
    producer = Producer(world)
    for index in range(3):
        assert producer.send(index, b"v").error_code == 0
    away = next(index for index in range(3) if world.leader("t", index) != producer.coordinator)
    node_id = world.leader("t", away)
    world.stop_broker(node_id)
    producer.end()
    world.advance(3)
    assert producer.state() == "PrepareCommit"
    world.start_broker(node_id)
    world.until(lambda: producer.state() == "CompleteCommit")
    assert [committed(world, index) for index in range(3)] == [(2, 2, 0)] * 3


def test_markers_are_written_again_when_their_answer_was_lost(world):
    """The connection to the leader breaks while the coordinator waits; the marker is written once that counts."""
    world.create_topic("t", 3)
    producer = Producer(world)
    for index in range(3):
        assert producer.send(index, b"v").error_code == 0
    away = next(index for index in range(3) if world.leader("t", index) != producer.coordinator)
    node_id = world.leader("t", away)
    world.process.kill_broker(node_id)
    producer.end()
    world.advance(2)
    world.start_broker(node_id)
    world.until(lambda: producer.state() == "CompleteCommit")
    for index in range(3):
        stable, high_watermark, aborted = committed(world, index)
        assert stable == high_watermark and not aborted


def test_offsets_of_a_transaction_at_another_coordinator(world):
    """The group's coordinator asks that of the transaction, which later writes its marker there."""
    world.create_topic("t", 1)
    producer = Producer(world)
    group, node_id = next(
        (group, found)
        for group in (f"g{number}" for number in range(50))
        if (found := producer.find(0, group)) != producer.coordinator
    )
    request = messages.TxnOffsetCommitRequest
    row = request.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    asked = request(
        transactional_id=producer.transactional_id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[request.TxnOffsetCommitRequestTopic(name="t", partitions=[row])],
    )
    codes = []

    def is_taken():
        codes[:] = [world.ask(node_id, asked, 5).topics[0].partitions[0].error_code]
        return codes[0] not in (errors.COORDINATOR_LOAD_IN_PROGRESS, errors.COORDINATOR_NOT_AVAILABLE)

    world.until(is_taken)
    assert codes == [0]

    def offset():
        request = messages.OffsetFetchRequest
        topic = request.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
        fetched = request(groups=[request.OffsetFetchRequestGroup(group_id=group, topics=[topic])])
        (found,) = world.ask(node_id, fetched, 8).groups
        return found.topics[0].partitions[0].committed_offset

    assert offset() == -1
    producer.end()
    world.until(lambda: producer.state() == "CompleteCommit")
    assert offset() == 7


def test_each_broker_gives_out_ids_of_its_own(world):
    """Blocks of producer ids do not overlap."""
    request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    ids = [world.ask(node_id, request, 4).producer_id for node_id in (1, 2, 3) for _ in range(3)]
    assert len(set(ids)) == 9


class Router:
    """A member's connection to each broker: a request goes to the one that it concerns."""

    def __init__(self, world, coordinator):
        self.world = world
        self.coordinator = coordinator
        self.peers = {}

    def ask(self, request, version):
        name = type(request).__name__
        node_id = self.coordinator
        if name.startswith(("ShareFetch", "ShareAcknowledge", "Produce")):
            node_id = self.world.leader("t")
        peer = self.peers.get(node_id)
        if peer is None or peer.closed:
            peer = self.peers[node_id] = self.world.connect(node_id)
        before = len(peer.answers)
        peer.send(request, version)
        self.world.until(lambda: len(peer.answers) > before)
        return peer.answers[before]


class FarShare(Share):
    """A member of a share group whose coordinator, partition and state are at three brokers."""

    def __init__(self, world, group, coordinator, topic_id):
        self.world, self.member, self.group, self.epoch = world, MEMBER, group, 0
        self.topic_id, self.session, self.assigned = topic_id, 0, {}
        self.peer = Router(world, coordinator)

    def find(self):
        """It is found already."""
        world, host = self.world, self.world.broker(self.peer.coordinator).groups
        world.until(lambda: host.shards() and not host.is_loading)
        return self


def share_at_three_brokers(world):
    """A member, and where the state of its share partition is."""
    return share_where(world, lambda leader, coordinator, state_at: len({leader, coordinator, state_at}) == 3)


def share_where(world, is_so):
    """The same of a group for which `is_so` of the leader, the coordinator of the group, and that of its state."""
    topic_id = world.create_topic("t", 1)
    leader = world.leader("t")
    for key_type, key in ((0, "g"), (2, f"g:{to_text(topic_id)}:0")):
        request = messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        world.until(lambda request=request: not world.ask(1, request, 6).coordinators[0].error_code)
    for group in (f"g{number}" for number in range(200)):
        found = []
        for key_type, key in ((0, group), (2, f"{group}:{to_text(topic_id)}:0")):
            request = messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            found.append(world.ask(1, request, 6).coordinators[0].node_id)
        if is_so(leader, *found):
            return FarShare(world, group, found[0], topic_id), found[1]
    raise AssertionError("there is no such group")


def until_acquired(share):
    """The first answer with records; the state comes from another broker."""
    answers = []

    def has_records():
        answers[:] = [share.fetch()]
        assert not answers[0].error_code and set(codes(answers[0]).values()) <= {"NONE"}
        return acquired(answers[0])

    share.world.until(has_records)
    return answers[0]


def test_a_share_group_at_three_brokers(world):
    """The coordinator of the group begins the state, the leader of the partition reads and writes it, at a third."""
    share, state_at = share_at_three_brokers(world)
    share.begin_at_the_start().join()
    share.produce(b"a", b"b", b"c")
    assert acquired(until_acquired(share)) == [(0, 2, 1)]
    answer = share.acknowledge((0, 1, [1]))
    assert codes(answer) == {0: "NONE"}
    (shard,) = [each for each in world.broker(state_at).share_groups.states.shards() if each.states]
    assert [key[0] for key in shard.states] == [share.group]
    request = messages.DescribeShareGroupOffsetsRequest
    topic = request.DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0])
    asked = request(groups=[request.DescribeShareGroupOffsetsRequestGroup(group_id=share.group, topics=[topic])])
    (group,) = share.peer.ask(asked, 1).groups
    (row,) = group.topics[0].partitions
    # What is done with above the start offset does not move it before the next write.
    assert (row.error_code, row.start_offset, row.lag) == (0, 0, 1)


def test_the_state_of_a_share_group_waits_for_its_coordinator(world):
    """The broker with the state is killed while the leader of the partition asks for it: another one has it then."""
    share, state_at = share_at_three_brokers(world)
    share.begin_at_the_start().join()
    share.produce(b"a", b"b")
    assert acquired(until_acquired(share)) == [(0, 1, 1)]
    world.process.kill_broker(state_at)
    peer = share.peer.peers[world.leader("t")]
    before = len(peer.answers)
    request = messages.ShareAcknowledgeRequest
    given = request.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    row = request.AcknowledgePartition(partition_index=0, acknowledgement_batches=[given])
    topics = [request.AcknowledgeTopic(topic_id=share.topic_id, partitions=[row])]
    peer.send(
        request(group_id=share.group, member_id=share.member, share_session_epoch=share.session, topics=topics), 2
    )
    world.advance(8)
    assert len(peer.answers) == before
    world.until(lambda: len(peer.answers) > before)
    assert codes(peer.answers[-1]) == {0: "NONE"}


def test_state_is_asked_for_again_when_its_coordinator_loses_the_partition(world, monkeypatch):
    """It is at the leader's own broker here, which others were told to lead at that moment."""
    share, state_at = share_where(world, lambda leader, coordinator, state_at: leader == state_at != coordinator)
    share.begin_at_the_start().join()
    share.produce(b"a", b"b")
    states, abandoned = world.broker(state_at).share_groups.states, []
    submit = type(states).submit

    def abandons_the_first(host, name, event):
        if host is states and not abandoned:
            abandoned.append(event)
            event.token.abandon("it leads no more")
            return
        submit(host, name, event)

    monkeypatch.setattr(type(states), "submit", abandons_the_first)
    assert acquired(until_acquired(share)) == [(0, 1, 1)] and abandoned


def test_a_broker_is_found_by_its_name():
    """The name server is asked beside the loop, once for all that wait, and again when it did not know."""
    world = BrokersWorld(advertised="broker.test")
    asked, known = [], []

    def addresses(host, port):
        asked.append(host if world.runtime.cpu_offload.working else "on the thread of the syncs")
        if not known:
            raise OSError("no such name")
        return known

    world.host.addresses = addresses
    others, answers = world.broker(1).other_brokers, []
    request = messages.MetadataRequest(topics=[])
    for _ in range(3):
        others.send(2, request, answers.append)
    assert not asked
    world.advance(0.1)
    assert asked == ["broker.test"] and [type(each).__name__ for each in answers] == ["Failure"] * 3
    known.append("127.0.0.1")
    for _ in range(3):
        others.send(2, request, answers.append)
    world.until(lambda: len(answers) == 6)
    assert len(asked) == 2 and {type(each).__name__ for each in answers[3:]} == {"MetadataResponse"}
    others.send(3, request, answers.append)
    world.until(lambda: len(answers) == 7)
    assert len(asked) == 2
    world.advance(61, step=1)
    others.send(3, request, answers.append)
    world.until(lambda: len(answers) == 8)
    assert asked == ["broker.test"] * 3
    world.stop()


def test_only_so_many_requests_wait_for_the_address_of_a_name(monkeypatch):
    monkeypatch.setattr("pykafkad.server.other_brokers.MAX_LOOKING_UP", 2)
    world = BrokersWorld(advertised="broker.test")
    world.host.addresses = lambda host, port: ["127.0.0.1"]
    others, answers = world.broker(1).other_brokers, []
    for number in range(4):
        others.send(
            2, messages.MetadataRequest(topics=[]), lambda answer, number=number: answers.append((number, answer))
        )
    world.until(lambda: len(answers) == 4)
    failed = {number for number, answer in answers if type(answer).__name__ == "Failure"}
    assert failed == {2, 3}
    world.stop()
