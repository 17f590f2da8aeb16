"""Messages with numbers that are wrong: what they say cannot be trusted any more, but no node ends by them."""

import pytest

from pykafkad.raft import forms
from tests.seeds import examples
from tests.simulation.raft_checkers import FLAT, Broken
from tests.simulation.raft_world import RaftWorld

SEEDS = 60
PARTS = 2
NESTED = ("diverging_epoch", "current_leader", "snapshot_id")


class LyingWorld(RaftWorld):
    """Some messages arrive with another number in one of their fields."""

    def __init__(self, seed):
        super().__init__(seed)
        self.encodes = 1.0
        self.lies = 0

    def _over_the_wire(self, message):
        message = super()._over_the_wire(message)
        if self.random.random() < 0.03:
            self._change(message)
        return message

    def _change(self, message):
        row = message if type(message) in FLAT else forms.only_partition(message)
        if row is None:
            return
        row = self.random.choice([row, row, *(getattr(row, name) for name in NESTED if hasattr(row, name))])
        names = [name for name in type(row).__slots__ if type(getattr(row, name)) is int]
        if not names:
            # A default that all messages share.
            return
        name = self.random.choice(names)
        number = getattr(row, name)
        wrong = (-2, -1, 0, 1, 2, 3, number + 1, number - 1, number + 100, 2**31 - 1)
        setattr(row, name, self.random.choice(wrong))
        self.lies += 1


@pytest.mark.parametrize("part", range(PARTS))
def test_no_lie_ends_a_node(part):
    """A promise of the quorum may break by lies of its voters. Nothing else goes wrong."""
    lies = 0
    for seed in range(part, examples(SEEDS), PARTS):
        world = LyingWorld(seed)
        try:
            world.run()
        except Broken:
            pass
        lies += world.lies
    assert lies
