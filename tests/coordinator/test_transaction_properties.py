"""Random lives of a `TransactionShard`: what must hold whatever happens.

Replay equals live; nobody is answered twice (the world asserts that) and everybody at once; a transaction that was
answered as committed gets commit markers in all its partitions and no abort marker, and the other way round; a producer
never gets an epoch that another had."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.coordinator import transaction_records
from tests import seeds
from tests.coordinator.transaction_world import TransactionWorld, hard_state

IDS = ("t", "u", "v")
PLACES = [(topic, partition) for topic in "ab" for partition in range(3)]
SEEDS = 300


class Client:
    """A producer that mostly sends what producers send, and sometimes an old or repeated request."""

    def __init__(self, transactional_id, version):
        self.transactional_id = transactional_id
        self.version = version
        self.producer = None
        self.added = set()
        self.last_end = None


class Life:
    def __init__(self, seed):
        self.random = random = Random(seed)
        self.world = TransactionWorld(
            random.choice((1, 2)), transactional_id_expiration_ms=random.choice((20_000, 604_800_000))
        )
        self.world.settings.transaction_remove_expired_transaction_cleanup_interval_ms = 30_000
        self.clients = [Client(random.choice(IDS), random.choice((0, 2))) for _ in range(5)]
        self.given = set()
        self.decided = {}  # (producer id, epoch of the markers): (commit, partitions)
        self.marked = 0

    def run(self, steps):
        actions = (self.init, self.add, self.add, self.end, self.end, self.verify, self.wait, self.odd)
        for _ in range(steps):
            self.random.choice(actions)(self.random.choice(self.clients))
            self.check_markers()

    def init(self, client):
        expected = client.producer if self.random.random() < 0.3 else None
        if self.random.random() < 0.1:
            self.world.ids_left = self.random.choice((0, 1_000))
        before = self.world.shard.transactions.get(client.transactional_id)
        repeats = before is not None and expected is not None and expected[1] == before.last_epoch
        error, *producer = self.world.init(client.transactional_id, expected, timeout_ms=20_000)
        if error == "NONE":
            if not repeats:
                assert tuple(producer) not in self.given, "a producer got what another had"
            self.given.add(tuple(producer))
            client.producer, client.added = tuple(producer), set()
        elif error == "PRODUCER_FENCED":
            client.producer = None
        else:
            assert error in ("CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "UNKNOWN_SERVER_ERROR"), error

    def add(self, client):
        if client.producer is None:
            return
        places = self.random.sample(PLACES, self.random.randrange(1, 4))
        answer = self.world.add(
            client.producer, *places, transactional_id=client.transactional_id, version=client.version
        )
        if answer == "NONE":
            client.added.update(places)
            added = sorted(client.added)
            verified = self.world.verify(client.producer, *added, transactional_id=client.transactional_id)
            assert set(verified) == {"NONE"}
        elif answer in ("PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING"):
            client.producer = None
        else:
            assert answer == "CONCURRENT_TRANSACTIONS"

    def end(self, client):
        producer, commit = client.producer, self.random.random() < 0.6
        if client.last_end and self.random.random() < 0.1:
            producer, commit = client.last_end
        if producer is None:
            return
        transaction = self.world.shard.transactions.get(client.transactional_id)
        was_open = transaction is not None and transaction.state == "Ongoing"
        partitions = set(transaction.partitions) if transaction is not None else set()
        error, *goes_on = self.world.end(
            producer, commit, transactional_id=client.transactional_id, version=client.version
        )
        if error != "NONE":
            return
        if was_open:
            epoch = producer[1] + 1 if client.version == 2 else producer[1]
            self.decided[len(self.decided)] = (producer[0], epoch, commit, partitions)
        client.last_end = (producer, commit)
        if client.version == 2:
            client.producer = tuple(goes_on)
            self.given.add(client.producer)
        client.added = set()

    def verify(self, client):
        if client.producer is not None:
            answers = self.world.verify(client.producer, *PLACES, transactional_id=client.transactional_id)
            transaction = self.world.shard.transactions.get(client.transactional_id)
            if answers[0] in ("NONE", "TRANSACTION_ABORTABLE"):
                known = {place for place, answer in zip(PLACES, answers, strict=True) if answer == "NONE"}
                assert known == set(transaction.partitions)

    def wait(self, client):
        self.world.advance(self.random.choice((0.05, 0.2, 6, 25)))

    def odd(self, client):
        choice = self.random.random()
        if choice < 0.2:
            self.world.restart()
        elif choice < 0.4:
            self.world.holds_markers = not self.world.holds_markers
            if not self.world.holds_markers:
                self.world.write_markers()
        elif choice < 0.6:
            bad = set(self.random.sample(PLACES, self.random.randrange(4)))
            self.world.outcome = lambda place: "NOT_LEADER_OR_FOLLOWER" if place in bad else "NONE"
        elif choice < 0.7:
            client.producer = None
        elif choice < 0.75 and self.world.state(client.transactional_id) in ("Empty", "CompleteCommit"):
            self.exhaust(client)

    def exhaust(self, client):
        """Bring a producer near its last epoch, as if many transactions had passed."""
        if self.world.shard.transactions[client.transactional_id].producer_epoch < 32_700:
            client.producer, client.added = self.near_the_end(client.transactional_id), set()
            self.given.add(client.producer)

    def near_the_end(self, transactional_id):
        world = self.world
        transaction = world.shard.transactions[transactional_id]
        record = transaction.begin_anew(transaction.producer_id, 32_764, 20_000, world.clock.now_ms())
        world.log.append(transaction_records.encode(record, world.version))
        world.shard.apply(record)
        return transaction.producer_id, 32_764

    def check_markers(self):
        """A marker of one transaction says the same in all its partitions."""
        said = {}
        for _, producer_id, epoch, commit in self.world.markers:
            if commit:
                said[producer_id, epoch] = True
        # Version 1 gives several transactions one epoch, so only what was committed with a bump is compared here.
        if all(client.version == 2 for client in self.clients) and self.world.version == 2:
            for _, producer_id, epoch, commit in self.world.markers:
                assert commit == said.get((producer_id, epoch), False), "one transaction ended in two ways"

    def settle(self):
        world = self.world
        world.ids_left = 10_000
        world.outcome = lambda place: "NONE"
        world.holds_markers = False
        world.write_markers()
        world.advance(1)


@pytest.mark.parametrize("seed", seeds.sampled(range(SEEDS), 15))
def test_replay_equals_live_and_transactions_end_wholly(seed):
    life = Life(seed)
    world = life.world
    for _ in range(3):
        life.run(50)
        assert hard_state(world.shard) == hard_state(world.replayed())
    life.settle()
    assert not world.shard.ending
    assert all(each.state not in ("PrepareCommit", "PrepareAbort") for each in world.shard.transactions.values())
    marked = {}
    for place, *end in world.markers:
        marked.setdefault(tuple(end), set()).add(place)
    for producer_id, epoch, commit, partitions in life.decided.values():
        assert partitions <= marked[producer_id, epoch, commit], "an answered end lacks a marker"
    # Nothing stays open for ever, and no timer without a reason.
    world.advance(120)
    assert all(each.state != "Ongoing" for each in world.shard.transactions.values())
    assert hard_state(world.shard) == hard_state(world.replayed())
    assert set(world.timers) <= {("expiry",)}


def test_the_same_seed_gives_the_same_log():
    first, second = Life(7), Life(7)
    first.run(200)
    second.run(200)
    assert first.world.log == second.world.log
