"""Each check of the metadata and of the logs beside them, on states made by hand."""

from types import SimpleNamespace

import pytest

from pykafkad.log.leader_epochs import LeaderEpochs
from pykafkad.metadata import record_codec
from pykafkad.metadata.image import Image
from pykafkad.metadata.partition_changes import RECOVERING
from pykafkad.wire import messages
from tests.simulation import metadata_checkers
from tests.simulation.metadata_checkers import MetadataCheckers
from tests.simulation.replication_checkers import epochs_problem

TOPIC_ID = bytes(15) + b"\7"
PLACE = ("t", 0)
FENCED, UNFENCED, STOPPING = {"fenced": 1}, {"fenced": -1}, {"in_controlled_shutdown": 1}


class Log:
    """A broker's log, as far as the checkers look."""

    is_loaded, offline, closed, log_start_offset = True, None, False, 0
    topic, partition = PLACE

    def __init__(self, end, epochs=((0, 0),), rows=()):
        self.written_end_offset = end
        self.epochs = LeaderEpochs(list(epochs))
        self.rows = rows
        self.replica = SimpleNamespace(leader_epoch=0, partition_epoch=0)


class Hand:
    """A world whose records and logs are made by hand: one partition on brokers 1, 2 and 3."""

    def __init__(self):
        self.image, self.problems, self.now, self.nodes, self.pending = Image(), [], 0.0, {}, set()
        self.checkers = SimpleNamespace(ends={}, committed={})
        self.metadata = MetadataCheckers(self, SimpleNamespace(is_pending=self.pending.__contains__), self.checkers)
        self.apply(messages.TopicRecord(name="t", topic_id=TOPIC_ID))
        for broker_id in (1, 2, 3):
            self.register(broker_id)
            self.broker(broker_id, **UNFENCED)
        self.apply(
            messages.PartitionRecord(
                partition_id=0, topic_id=TOPIC_ID, replicas=[1, 2, 3], isr=[1, 2, 3], leader=1,
                directories=[bytes(16)] * 3,
            )
        )  # fmt: skip
        assert self.problems == []

    def fail(self, text):
        self.problems.append(text)

    def apply(self, record):
        self.image.apply(record_codec.record(record), self.image.offset + 1, 1)
        self.metadata.record_committed(record)

    def register(self, broker_id, epoch=None):
        epoch = self.image.offset + 1 if epoch is None else epoch
        self.apply(messages.RegisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch, fenced=True))

    def broker(self, broker_id, **fields):
        epoch = self.image.brokers[broker_id].epoch
        self.apply(messages.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, **fields))

    def change(self, **fields):
        names = {"elr": "eligible_leader_replicas"}
        fields = {names.get(name, name): value for name, value in fields.items()}
        self.apply(messages.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields))

    def nodes_with(self, **logs):
        """Brokers that run, with the log of each."""
        for name, log in logs.items():
            broker = SimpleNamespace(serving=True, partitions=Partitions({PLACE: log} if log else {}))
            node_id = int(name[1:])
            link = SimpleNamespace(image=self.image)
            self.nodes[node_id] = SimpleNamespace(node_id=node_id, is_running=True, broker=broker, link=link)


class Partitions(dict):
    """The partitions of a broker."""

    def get(self, *place):
        return super().get(place)

    def __iter__(self):
        return iter(self.values())


@pytest.fixture
def hand():
    return Hand()


def without_leader(hand, *, elr=(), last=(1,)):
    """The partition has lost its leader, as the controller says it: one broker after the other is fenced."""
    hand.change(isr=[1, 2])
    hand.change(isr=[1], elr=[2])
    hand.change(isr=[], elr=[1, 2], leader=-1, last_known_elr=[1])
    hand.change(elr=list(elr), last_known_elr=list(last))
    assert hand.problems == []


RECORDS = {
    "the leader is not in the ISR": lambda hand: hand.change(isr=[2, 3]),
    "the ISR or the ELR has who is no replica": lambda hand: hand.change(isr=[1, 2, 4]),
    "a broker is in the ISR and in the ELR": lambda hand: hand.change(isr=[1], elr=[1]),
    "the ISR is large enough, and there is an ELR": lambda hand: hand.change(isr=[1, 2], elr=[3]),
    "somebody joins the ELR who was neither in the ISR nor in the ELR": lambda hand: [
        hand.change(isr=[1, 2]),
        hand.change(isr=[1], elr=[2, 3]),
    ],
    "3 joins the ISR and is fenced or stops": lambda hand: [
        hand.change(isr=[1, 2]),
        hand.broker(3, **FENCED),
        hand.change(isr=[1, 2, 3]),
    ],
    "2 joins the ISR and is fenced or stops": lambda hand: [
        hand.change(isr=[1, 3]),
        hand.broker(2, **STOPPING),
        hand.change(isr=[1, 2, 3]),
    ],
    "2 is fenced, and isr is (1, 2, 3)": lambda hand: hand.broker(2, **FENCED),
    "1 is fenced, and leader is 1": lambda hand: hand.broker(1, **FENCED),
    "3 is registered and fenced, and isr is (1, 2, 3)": lambda hand: hand.register(3),
    "broker 2: its epoch goes from": lambda hand: [hand.change(isr=[1, 3]), hand.register(2, epoch=0)],
    "2 is back after an unclean stop, and elr is (2,)": lambda hand: [
        hand.change(isr=[1, 2]),
        hand.change(isr=[1], elr=[2]),
        hand.metadata.stopped_uncleanly(2),
        hand.register(2),
    ],
    "an unclean election, where unclean elections are not allowed": lambda hand: [
        without_leader(hand, elr=[2]),
        hand.change(isr=[1], elr=[], leader=1, last_known_elr=[], leader_recovery_state=RECOVERING),
    ],
    "unclean elections are not allowed: Known(leader=4, isr=(4,)": lambda hand: [
        hand.register(4),
        hand.broker(4, **UNFENCED),
        hand.change(replicas=[4, 2, 1, 3], adding_replicas=[4], removing_replicas=[1, 3]),
        hand.change(isr=[4], leader=4),
    ],
    "an unclean election that does not say so": lambda hand: [
        without_leader(hand),
        hand.change(isr=[1], leader=1, last_known_elr=[]),
    ],
}


@pytest.mark.parametrize("problem", RECORDS)
def test_a_record_that_does_not_fit_is_noticed(hand, problem):
    RECORDS[problem](hand)
    assert any(problem in each for each in hand.problems), hand.problems


def test_epochs_that_do_not_rise_are_noticed(hand):
    state = hand.image.partition(*PLACE)
    state.partition_epoch -= 1
    hand.change(isr=[1, 2])
    assert "the partition epoch does not rise by one" in hand.problems.pop()
    state.leader_epoch -= 1
    hand.change(leader=2)
    assert "the leader epoch does not rise" in hand.problems.pop()


def test_what_a_controller_does_fits(hand):
    """A fenced broker, a clean restart, the last known leader, and a reassignment that ends."""
    hand.change(isr=[1, 3])
    hand.broker(2, **FENCED)
    hand.broker(2, **UNFENCED)
    hand.change(isr=[1, 2, 3])
    without_leader(hand)
    hand.change(isr=[1], leader=1, last_known_elr=[], leader_recovery_state=RECOVERING)
    hand.register(4)
    hand.broker(4, **UNFENCED)
    hand.change(replicas=[4, 2, 1, 3], adding_replicas=[4], removing_replicas=[1, 3])
    hand.change(isr=[4, 2], replicas=[4, 2], adding_replicas=[], removing_replicas=[], leader=4)
    assert hand.problems == [] and hand.metadata.joins == 4


def test_who_was_waited_for_comes_back_after_an_unclean_stop(hand):
    """The last known leader leads, in the record that takes the other one from the ELR."""
    without_leader(hand, elr=[2])
    hand.metadata.stopped_uncleanly(2)
    hand.change(isr=[1], elr=[], leader=1, last_known_elr=[], leader_recovery_state=RECOVERING)
    hand.register(2)
    assert hand.problems == []


def test_who_is_in_sync_has_what_is_committed(hand):
    hand.nodes_with(b1=Log(10), b2=Log(10), b3=Log(9))
    hand.checkers.ends[PLACE] = 9
    hand.metadata.look()
    assert hand.problems == []
    hand.checkers.ends[PLACE] = 10
    hand.metadata.look()
    assert "3 is in the ISR (1, 2, 3) or the ELR () and ends at 9, where 10 is committed" in hand.problems.pop()
    hand.change(isr=[1, 2])
    hand.metadata.look()
    assert hand.problems == []
    hand.change(isr=[1], elr=[2])
    hand.nodes[2].broker.partitions[PLACE].written_end_offset = 4
    hand.metadata.look()
    assert "2 is in the ISR (1,) or the ELR (2,) and ends at 4" in hand.problems.pop()
    hand.pending.add(PLACE)
    hand.metadata.look()
    assert hand.problems == []


def test_a_member_without_a_log_is_noticed(hand):
    hand.nodes_with(b1=Log(10), b2=None, b3=Log(10))
    hand.checkers.ends[PLACE] = 10
    hand.metadata.look()
    assert hand.problems == ["('t', 0): 2 is in the ISR or ELR and has no log"]


def test_a_member_that_stops_is_noticed(hand):
    hand.nodes_with(b1=Log(1), b2=Log(1), b3=Log(1))
    hand.checkers.ends[PLACE] = 1
    hand.broker(3, **STOPPING)
    hand.metadata.look()
    assert hand.problems == ["('t', 0): 3 is in the ISR (1, 2, 3) and is fenced or stops"]


def test_a_broker_that_goes_back_in_the_epochs_is_noticed(hand):
    hand.nodes_with(b1=Log(1))
    replica = hand.nodes[1].broker.partitions[PLACE].replica = SimpleNamespace(leader_epoch=3, partition_epoch=7)
    hand.metadata.look()
    replica.partition_epoch = 6
    hand.metadata.look()
    assert hand.problems == ["('t', 0) at 1: its epochs go from (3, 7) to (3, 6)"]
    hand.nodes[1].broker.partitions[PLACE] = Log(1)
    hand.metadata.look()
    assert len(hand.problems) == 1


def test_images_of_one_offset_that_differ_are_noticed(hand):
    hand.nodes_with(b1=Log(1))
    hand.metadata.compare_images()
    assert hand.problems == [] and hand.metadata.images == 1
    other = Image()
    other.apply(record_codec.record(messages.TopicRecord(name="u", topic_id=TOPIC_ID)), hand.image.offset, 1)
    hand.nodes[1].link.image = other
    hand.metadata.compare_images()
    assert hand.problems == [f"broker 1, the controller: their images of offset {hand.image.offset} differ"]


@pytest.fixture
def rows(monkeypatch):
    """Logs whose batches are (base offset, end offset, epoch, checksum) made by hand."""

    def batches(log, start, end):
        return [each for each in log.rows if start < each[1] and each[0] < end]

    monkeypatch.setattr(metadata_checkers, "batches", batches)
    monkeypatch.setattr("tests.simulation.replication_checkers.batches", batches)
    return [(0, 4, 0, 11), (4, 6, 2, 12), (6, 9, 2, 13)]


def test_a_cut_of_what_is_committed_is_noticed(hand, rows):
    log, node = Log(9, rows=rows), SimpleNamespace(node_id=2)
    hand.checkers.committed[PLACE] = {0: rows[0], 4: rows[1], 6: (6, 9, 3, 99)}
    hand.metadata.before_cut(node, log, 6)
    assert hand.problems == []
    hand.metadata.before_cut(node, log, 5)
    assert "a cut to 5 takes (4, 6, 2, 12), which is committed" in hand.problems.pop()
    hand.pending.add(PLACE)
    hand.metadata.before_cut(node, log, 0)
    assert hand.problems == []


def test_epochs_that_are_not_those_of_the_batches_are_noticed(hand, rows):
    node = SimpleNamespace(node_id=2)
    assert epochs_problem(Log(9, [(0, 0), (2, 4), (5, 9)], rows)) is None
    assert epochs_problem(Log(9, [(0, 0), (1, 2), (2, 4)], rows)) is not None
    assert epochs_problem(Log(9, [(0, 0)], rows)) is not None
    hand.metadata.after_cut(node, Log(9, [(0, 0), (2, 4)], rows))
    assert hand.problems == []
    hand.metadata.after_cut(node, Log(9, [(0, 0), (2, 4), (5, 9)], rows))
    assert "after a cut: [(0, 0), (2, 4), (5, 9)] go on behind the end 9" in hand.problems.pop()
