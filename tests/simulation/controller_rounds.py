"""Rounds of faults over a quorum of the product's own controllers: kills, losses of power, stops, cuts, lost disks.

Whatever was acknowledged is in every image at the end, all images and logs are the same, and no two nodes decide in one
epoch. `python -m tests.simulation.controller_rounds FIRST LAST` plays seeds and says which fail."""

import sys
import traceback
from random import Random

from pykafkad.metadata import snapshots
from tests.simulation.controllers import Controllers
from tests.simulation.network import Link

NODES, MORE_NODES = (1, 2, 3), (1, 2, 3, 4, 5)
MORE_EVERY = 8
"""One seed of so many has five controllers."""
OBSERVER = 9
GROUP = 32
STEPS = 30
SMALL_SNAPSHOTS = {
    "metadata_log_max_record_bytes_between_snapshots": 600,
    "metadata_max_retention_bytes": 4000,
    "internal_metadata_log_segment_bytes": 1000,
}


class Rounds:
    """One seed. Each change sets a setting of a group of its own, so that every image tells which are there."""

    def __init__(self, seed, *, steps=STEPS):
        self.random = Random(seed)
        settings = SMALL_SNAPSHOTS if self.random.random() < 0.7 else {}
        self.node_ids = MORE_NODES if seed % MORE_EVERY == MORE_EVERY - 1 else NODES
        self.world = Controllers(seed, self.node_ids, dynamic=self.random.random() < 0.5, **settings)
        self.world.network.set_usual_link(Link(delay=0.001, jitter=self.random.choice((0.0, 0.002, 0.05))))
        self.steps = steps
        self.down = set()
        self.tokens = []
        self.kinds = set()

    def play(self):
        """Faults, then healing; everything that was acknowledged is there."""
        world = self.world
        world.elect()
        world.observe(OBSERVER)
        for _ in range(self.steps):
            self.random.choice(
                (self._change, self._change, self._change, self._pass, self._kill, self._start, self._cut, self._mend,
                 self._stop, self._reset, self._wipe, self._observer)
            )()  # fmt: skip
        self._heal()
        world.until(world.in_step, 120.0)
        last = self._change_at(world.elect())
        world.until(lambda: last.outcome == 0 and world.in_step(), 120.0)
        self._check()

    # --- what happens -------------------------------------------------------------------------------------------------

    def _pass(self, seconds=None):
        world = self.world
        world.run(world.clock.now() + (seconds or self.random.choice((0.01, 0.1, 0.5, 2.0, 5.0))))

    def _change(self):
        for node_id in self.random.sample(sorted(self.world.processes), len(self.world.processes)):
            self._change_at(node_id)
        self._pass(self.random.choice((0.001, 0.005, 0.1)))

    def _change_at(self, node_id):
        token = self.world.change(node_id, "50000", resource=(GROUP, f"group-{len(self.tokens)}"))
        token.name = f"group-{len(self.tokens)}"
        self.tokens.append(token)
        return token

    def _kill(self):
        world = self.world
        if len(world.processes) > 1:
            node_id = self.random.choice(sorted(world.processes))
            world.kill(node_id, loses_power=self.random.random() < 0.5)
            self.down.add(node_id)
            self.kinds.add("kill")

    def _stop(self):
        world = self.world
        if len(world.processes) > 1:
            node_id = self.random.choice(sorted(world.processes))
            world.stop(node_id)
            self.down.add(node_id)
            self.kinds.add("stop")

    def _start(self):
        if self.down:
            node_id = self.random.choice(sorted(self.down))
            self.down.discard(node_id)
            self.world.start(node_id)

    def _cut(self):
        hosts = [f"10.0.0.{each}" for each in (*self.node_ids, OBSERVER)]
        one, other = self.random.sample(hosts, 2)
        self.world.network.cut(one, other)
        if self.random.random() < 0.7:
            self.world.network.cut(other, one)
        self.kinds.add("cut")

    def _mend(self):
        hosts = [f"10.0.0.{each}" for each in (*self.node_ids, OBSERVER)]
        for one in hosts:
            for other in hosts:
                if one != other:
                    self.world.network.mend(one, other)

    def _reset(self):
        one, other = self.random.sample([f"10.0.0.{each}" for each in self.node_ids], 2)
        self.world.network.reset(one, other)

    def _wipe(self):
        """A disk is lost while all others have everything: with static voters more is not promised."""
        world = self.world
        if world.dynamic or self.random.random() < 0.5:
            return
        self._heal()
        world.until(world.in_step, 120.0)
        node_id = self.random.choice(self.node_ids)
        world.kill(node_id)
        world.wipe(node_id)
        world.start(node_id)
        world.until(world.in_step, 120.0)
        self.kinds.add("wipe")

    def _observer(self):
        """The observer is killed and comes back, sometimes with an empty disk."""
        world = self.world
        world.kill(OBSERVER, loses_power=self.random.random() < 0.5)
        if self.random.random() < 0.5:
            world.format(OBSERVER)
        world.observe(OBSERVER)
        self.kinds.add("observer")

    def _heal(self):
        self._mend()
        while self.down:
            self._start()

    # --- what must hold -----------------------------------------------------------------------------------------------

    def _check(self):
        world = self.world
        images = [each.controller.image for each in world.processes.values()]
        images += [each.image for each in world.observers.values()]
        acknowledged = {(GROUP, token.name) for token in self.tokens if token.outcome == 0}
        for image in images:
            assert acknowledged <= set(image.all_configs())
        assert len({content(image) for image in images}) == 1, "images differ"
        # A snapshot may have taken the place of all of a log.
        logs = [found for found in (world.log_of(each) for each in (*self.node_ids, OBSERVER)) if found]
        common = sorted(set.intersection(*map(set, logs)))
        assert common and common[-1] == max(map(max, logs)), "one log ends before another"
        assert all(len({log[offset] for log in logs}) == 1 for offset in common), "logs differ"
        assert self.tokens[-1].outcome == 0


def content(image):
    """An image as the bytes of its snapshot, whatever the order of its entries."""
    writing = snapshots.Writing(image, 0, 0)
    data = b"".join(map(bytes, writing.pieces()))
    writing.close()
    return tuple(sorted(repr(record.value) for record in snapshots.read(data))), image.offset, image.epoch


def main(first, last, make=Rounds):
    """Play the rounds that `make` makes of each seed; the exit code says whether one failed."""
    failed = []
    kinds = {}
    for seed in range(first, last):
        rounds = make(seed)
        try:
            rounds.play()
        except Exception:
            failed.append(seed)
            print(f"seed {seed}:")
            traceback.print_exc()
        for kind in rounds.kinds:
            kinds[kind] = kinds.get(kind, 0) + 1
    print(f"{last - first} seeds, failed: {failed}, {kinds}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
