"""Replicas of one partition, several of them by hand: what is committed, who is in sync, and that neither is ever taken
back."""

from types import SimpleNamespace

from hypothesis import given, settings, strategies as st

from pykafkad.log.replica import FOLLOWER, LEADER, NONE, Committed, ProposeIsr, Replica
from tests.seeds import examples

LAG = 10.0
EPOCHS = {1: 100, 2: 200, 3: 300}


def state(leader=1, leader_epoch=0, partition_epoch=0, replicas=(1, 2, 3), isr=(1, 2, 3), lost=()):
    return SimpleNamespace(
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        replicas=replicas,
        isr=isr,
        lost=lost,
    )


def leader(now=0.0, end_offset=0, min_insync_replicas=1, **fields):
    """Broker 1 leads."""
    replica = Replica(1, EPOCHS.get, lag_seconds=LAG, min_insync_replicas=min_insync_replicas)
    replica.opened(end_offset, 0)
    replica.image_changed(state(**fields), now)
    return replica


def test_a_sole_replica_commits_alone():
    replica = leader(replicas=(1,), isr=(1,), min_insync_replicas=2)
    assert replica.commits_alone and replica.has_min_isr
    assert replica.appended(5, 0.0) == (Committed(5),)
    assert replica.appended(5, 0.0) == ()


def test_what_must_be_synced_first_is_not_committed_before():
    replica = leader(replicas=(1,), isr=(1,))
    assert replica.appended(5, 0.0, is_durable=False) == ()
    assert replica.synced(3, 0.0) == (Committed(3),)
    assert replica.synced(5, 0.0) == (Committed(5),)


def test_the_slowest_member_of_the_isr_says_what_is_committed():
    replica = leader()
    assert not replica.commits_alone
    assert replica.appended(10, 0.0) == ()
    assert replica.fetched(2, 7, 0, 1.0) == ()
    assert replica.fetched(3, 4, 0, 1.0) == (Committed(4),)
    assert replica.fetched(3, 10, 0, 2.0) == (Committed(7),)


def test_fetches_of_another_epoch_of_strangers_and_from_beyond_the_end_say_nothing():
    replica = leader(replicas=(1, 2), isr=(1, 2))
    replica.appended(10, 0.0)
    assert replica.fetched(2, 10, 1, 1.0) == ()
    assert replica.fetched(3, 10, 0, 1.0) == ()
    assert replica.fetched(2, 11, 0, 1.0) == ()
    assert replica.fetched(2, 10, 0, 1.0, broker_epoch=199) == (), "an earlier life of the broker"
    assert replica.fetched(2, 10, 0, 1.0, broker_epoch=200) == (Committed(10),)


def test_nothing_is_committed_below_the_least_isr():
    replica = leader(isr=(1,), min_insync_replicas=2)
    assert not replica.has_min_isr
    assert replica.appended(10, 100.0) == ()
    assert replica.image_changed(state(isr=(1, 2), partition_epoch=1), 100.0) == ()
    assert replica.has_min_isr and replica.fetched(2, 10, 0, 101.0) == (Committed(10),)


def test_a_topic_cannot_ask_for_more_copies_than_it_has():
    assert leader(replicas=(1, 2), isr=(1, 2), min_insync_replicas=3).has_min_isr
    assert not leader(replicas=(1, 2), isr=(1,), min_insync_replicas=3).has_min_isr


def test_a_setting_that_is_lowered_lets_the_next_append_commit():
    replica = leader(isr=(1,), min_insync_replicas=2)
    replica.appended(10, 100.0)
    replica.settings_changed(min_insync_replicas=1)
    assert replica.has_min_isr and replica.appended(11, 100.0) == (Committed(11),)


def test_a_follower_that_lags_leaves_and_one_proposal_is_under_way():
    replica = leader()
    replica.appended(10, 0.0)
    replica.fetched(2, 10, 0, 5.0)
    assert replica.tick(9.0) == ()
    assert replica.tick(11.0) == (ProposeIsr((1, 2), 0, 0),)
    assert replica.tick(30.0) == (), "one proposal at a time"
    assert replica.high_watermark == 0, "whoever is in the ISR counts until the metadata says otherwise"
    assert replica.image_changed(state(isr=(1, 2), partition_epoch=1), 30.0) == (Committed(10),)


def test_a_follower_that_reached_the_end_of_its_last_fetch_was_caught_up_then():
    """It never reaches the end of a leader that is written to all the time."""
    replica = leader(isr=(1, 2), replicas=(1, 2))
    replica.appended(10, 5.0)
    replica.fetched(2, 0, 0, 5.0)
    replica.appended(20, 9.0)
    replica.fetched(2, 10, 0, 9.0)
    assert replica.tick(5.0 + LAG) == ()
    assert replica.tick(5.1 + LAG) == (ProposeIsr((1,), 0, 0),)


def test_a_refused_proposal_is_made_again():
    replica = leader()
    replica.appended(10, 0.0)
    assert replica.tick(11.0) == (ProposeIsr((1,), 0, 0),)
    replica.isr_refused(ProposeIsr((1, 2), 0, 0))
    assert replica.tick(12.0) == (), "it was another one"
    replica.isr_refused(ProposeIsr((1,), 0, 0))
    assert replica.tick(12.0) == (ProposeIsr((1,), 0, 0),)


def test_a_follower_joins_when_it_has_what_is_committed_and_counts_from_its_proposal_on():
    replica = leader(isr=(1, 2))
    replica.appended(10, 0.0)
    replica.fetched(2, 10, 0, 0.0)
    assert replica.high_watermark == 10
    assert replica.fetched(3, 9, 0, 1.0) == ()
    assert replica.fetched(3, 10, 0, 1.0) == (ProposeIsr((1, 2, 3), 0, 0),)
    replica.appended(20, 1.0)
    assert replica.fetched(2, 20, 0, 2.0) == (), "the third is in the maximal ISR"
    assert replica.fetched(3, 15, 0, 2.0) == (Committed(15),)


def test_a_proposed_follower_that_was_never_caught_up_is_waited_for():
    replica = leader(isr=(1, 2))
    replica.appended(10, 0.0)
    assert replica.fetched(2, 5, 0, 0.0) == (Committed(5),)
    assert replica.fetched(3, 6, 0, 1.0) == (ProposeIsr((1, 2, 3), 0, 0),)
    assert replica.fetched(2, 10, 0, 1.0) == (Committed(6),), "the third may be in the ISR by now"
    replica.isr_refused(ProposeIsr((1, 2, 3), 0, 0))
    assert replica.fetched(2, 10, 0, 2.0) == (Committed(10),)


def test_a_follower_joins_only_behind_the_start_of_the_epoch():
    """Its log up to there may be of an epoch that the leader knows nothing of."""
    replica = leader(end_offset=10, isr=(1,), replicas=(1, 2), min_insync_replicas=2)
    assert replica.fetched(2, 5, 0, 1.0) == ()
    assert replica.fetched(2, 10, 0, 1.0) == (ProposeIsr((1, 2), 0, 0),)


def test_a_dead_broker_and_one_of_an_earlier_life_do_not_join():
    alive = {}
    replica = Replica(1, alive.get, lag_seconds=LAG)
    replica.opened(0, 0)
    replica.image_changed(state(isr=(1,), replicas=(1, 2)), 0.0)
    assert replica.fetched(2, 0, 0, 1.0, broker_epoch=200) == ()
    alive[2] = 201
    assert replica.fetched(2, 0, 0, 1.0, broker_epoch=200) == ()
    assert replica.fetched(2, 0, 0, 1.0, broker_epoch=202) == (), "a life that the metadata does not know yet"
    assert not replica.commits_alone, "it may join soon"
    assert replica.fetched(2, 0, 0, 1.0, broker_epoch=201) == (ProposeIsr((1, 2), 0, 0),)


def test_a_caught_up_follower_that_may_join_is_waited_for():
    replica = leader(isr=(1,), replicas=(1, 2))
    (proposal,) = replica.fetched(2, 0, 0, 0.0)
    replica.isr_refused(proposal)
    assert not replica.commits_alone
    assert replica.appended(10, 1.0) == ()
    assert replica.tick(11.5) == (Committed(10),), "but not for longer than it may lag"


def test_who_may_fetch_as_a_follower_and_the_epochs_of_their_lives():
    replica = leader(replicas=(1, 2), isr=(1, 2))
    assert replica.knows(2) and not replica.knows(3) and not replica.knows(1)
    assert [replica.is_of_earlier_life(2, epoch) for epoch in (-1, 199, 200, 201)] == [False, True, False, False]
    assert replica.broker_epoch_of(2) == -1, "it has not fetched yet"
    replica.fetched(2, 0, 0, 1.0, broker_epoch=200)
    assert replica.broker_epoch_of(2) == 200


def test_an_older_state_changes_nothing():
    replica = leader(leader_epoch=3, partition_epoch=7, isr=(1, 2))
    assert replica.image_changed(state(leader_epoch=3, partition_epoch=6), 0.0) == ()
    assert replica.image_changed(state(leader=2, leader_epoch=2, partition_epoch=9), 0.0) == ()
    assert replica.role == LEADER and replica.isr == (1, 2)


def test_a_follower_knows_what_its_leader_tells_and_cuts_what_it_does_not_have():
    replica = leader(leader=2)
    assert replica.role == FOLLOWER and not replica.commits_alone
    assert replica.appended(10, 0.0) == () and replica.tick(100.0) == ()
    assert replica.leader_committed(7) == (Committed(7),)
    assert replica.leader_committed(20) == (Committed(10),)
    replica.truncated(8)
    assert (replica.end_offset, replica.high_watermark) == (8, 8)


def test_a_follower_whose_log_is_out_of_service_holds_nothing_back_and_does_not_join():
    """Whatever it said a moment ago."""
    replica = leader()
    assert replica.fetched(2, 0, 0, 0.5) == replica.appended(5, 0.6) == replica.fetched(3, 5, 0, 1.0) == ()
    assert replica.image_changed(state(isr=(1, 3), partition_epoch=1), 1.0) == ()
    assert replica.image_changed(state(isr=(1, 3), partition_epoch=2, lost=(2,)), 1.0) == (Committed(5),)
    assert replica.fetched(2, 5, 0, 2.0) == ()
    assert replica.image_changed(state(isr=(1, 3), partition_epoch=3), 2.0) == ()
    assert replica.fetched(2, 5, 0, 3.0) == (ProposeIsr((1, 3, 2), 0, 3),)


def test_a_partition_without_a_leader_has_no_role():
    assert leader(leader=-1).role == NONE


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("append unsynced"), st.integers(1, 5)),
        st.tuples(st.just("sync"), st.integers(0, 5)),
        st.tuples(st.just("fetch"), st.sampled_from((2, 3)), st.integers(0, 8), st.integers(-1, 1)),
        st.tuples(st.just("time"), st.floats(0.1, 15.0)),
        st.tuples(st.just("accept")),
        st.tuples(st.just("refuse")),
        st.tuples(st.just("settings"), st.integers(1, 3)),
        st.tuples(st.just("elect"), st.sampled_from((1, 1, 2))),
        st.tuples(st.just("fence"), st.sampled_from((2, 3)), st.booleans()),
    ),
    max_size=60,
)


class Model:
    """A replica, the metadata that it is told of, and what holds after every step."""

    def __init__(self):
        self.alive = dict(EPOCHS)
        self.replica = Replica(1, self.alive.get, lag_seconds=LAG)
        self.state = state()
        self.now, self.end, self.durable = 0.0, 0, 0
        self.known = {2: 0, 3: 0}
        self.proposal = None
        self.least = 1
        self.before = (self.replica.leader_epoch, 0)
        self.replica.opened(0, 0)
        self.do(self.replica.image_changed(self.state, 0.0))

    def do(self, effects):
        committed = [effect for effect in effects if type(effect) is Committed]
        proposed = [effect for effect in effects if type(effect) is ProposeIsr]
        assert len(committed) + len(proposed) == len(effects) and len(committed) < 2 and len(proposed) < 2
        if proposed:
            assert self.proposal is None, "at most one is in flight"
            self.proposal = proposed[0]
            assert self.proposal.isr[0] == 1 or 1 in self.proposal.isr
            assert set(self.proposal.isr) <= set(self.state.replicas)
        high_watermark = self.replica.high_watermark
        assert not committed or committed[0].end_offset == high_watermark
        assert high_watermark <= self.end, "never above what is appended"
        assert self.replica.leader_epoch != self.before[0] or high_watermark >= self.before[1], "it never falls"
        if high_watermark > self.before[1]:
            assert committed and self.replica.role == LEADER
            assert len(self.state.isr) >= min(self.least, len(self.state.replicas))
            assert high_watermark <= self.durable
            members = set(self.state.isr) | set(self.proposal.isr if self.proposal else ())
            assert all(high_watermark <= self.known[each] for each in members - {1}), "everybody in the ISR has it"
        self.before = (self.replica.leader_epoch, high_watermark)

    def change(self, **fields):
        self.state = state(**{**vars(self.state), "partition_epoch": self.state.partition_epoch + 1, **fields})
        self.proposal = None
        self.do(self.replica.image_changed(self.state, self.now))

    def step(self, kind, *args):
        replica = self.replica
        if kind in ("append", "append unsynced"):
            if replica.role != LEADER:
                return
            self.end += args[0]
            if kind == "append":
                self.durable = self.end
            self.do(replica.appended(self.end, self.now, is_durable=kind == "append"))
        elif kind == "sync":
            self.durable = max(self.durable, self.end - args[0])
            self.do(replica.synced(self.durable, self.now))
        elif kind == "fetch":
            broker, behind, epoch = args
            offset = max(0, self.end - behind)
            if epoch == 0 and replica.role == LEADER:
                self.known[broker] = offset
            self.do(replica.fetched(broker, offset, self.state.leader_epoch + epoch, self.now))
        elif kind == "time":
            self.now += args[0]
            self.do(replica.tick(self.now))
        elif kind == "accept" and self.proposal is not None:
            self.change(isr=self.proposal.isr)
        elif kind == "refuse" and self.proposal is not None:
            replica.isr_refused(self.proposal)
            self.proposal = None
        elif kind == "settings":
            self.least = args[0]
            replica.settings_changed(min_insync_replicas=args[0])
        elif kind == "elect":
            self.known = {2: -1, 3: -1}
            self.change(leader=args[0], leader_epoch=self.state.leader_epoch + 1)
        elif kind == "fence":
            broker, is_fenced = args
            self.alive.pop(broker, None) if is_fenced else self.alive.setdefault(broker, EPOCHS[broker])


@settings(max_examples=examples(300), deadline=None)
@given(STEPS)
def test_what_is_committed_is_with_everybody_in_sync_and_never_taken_back(steps):
    model = Model()
    for step in steps:
        model.step(*step)


def test_consumers_may_read_from_followers_in_sync_that_have_the_offset():
    """The largest is the most caught up: by its end, then by the time, then by its id (KIP-392)."""
    replica = leader(end_offset=10, replicas=(1, 2, 3, 4), isr=(1, 2, 3))
    assert replica.readable_from(0, 0.0) == []
    replica.fetched(2, 10, 0, 1.0, log_start_offset=3)
    replica.fetched(3, 9, 0, 1.0, log_start_offset=0)
    replica.fetched(4, 1, 0, 1.0, log_start_offset=0)
    assert sorted(replica.readable_from(5, 2.5)) == [(9, -2500, 3), (10, -1500, 2)]
    assert [each[2] for each in replica.readable_from(1, 2.5)] == [3]
    assert [each[2] for each in replica.readable_from(10, 2.5)] == [2]
    replica.fetched(3, 10, 0, 2.0, log_start_offset=0)
    assert max(replica.readable_from(5, 2.5))[2] == 3, "it was caught up last"
    replica.fetched(2, 10, 0, 2.0, log_start_offset=0)
    assert max(replica.readable_from(5, 2.5))[2] == 3, "of two that are alike the one with the larger id"
