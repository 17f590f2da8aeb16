"""Rounds of faults over three nodes that are a broker and a controller each: kills, losses of power, stops, cuts.

Whatever was acknowledged is in every replica at the end, at the offset that was told; all images and logs are the same.
`python -m tests.simulation.combined_rounds FIRST LAST` plays seeds and says which fail."""

import sys
from random import Random

from pykafkad.wire.records import iterate_records
from tests.simulation.combined import CombinedNodes
from tests.simulation.controller_rounds import content, main
from tests.simulation.controllers import controller_of, host_of
from tests.simulation.network import Link

NODES = (1, 2, 3)
STEPS = 25
TOPIC = "t"


class Rounds:
    """One seed. One node at a time is away, or cut off from another: the others can go on."""

    def __init__(self, seed, *, steps=STEPS):
        self.random = Random(seed)
        self.world = CombinedNodes(seed, NODES, dynamic=self.random.random() < 0.5)
        self.world.network.set_usual_link(Link(delay=0.001, jitter=self.random.choice((0.0, 0.002, 0.05))))
        self.steps = steps
        self.down = None
        self.acknowledged = {}
        self.sent = 0
        self.kinds = set()

    def play(self):
        """Faults, then healing; everything that was acknowledged is there."""
        world = self.world
        world.until_serving()
        world.create_topic(TOPIC)
        for _ in range(self.steps):
            self.random.choice(
                (
                    self._produce,
                    self._produce,
                    self._produce,
                    self._pass,
                    self._kill,
                    self._cut,
                    self._stop,
                    self._reset,
                )
            )()
        self._heal()
        world.until_serving()
        world.until(lambda: world.in_sync(TOPIC), 120.0)
        before = len(self.acknowledged)
        self._produce()
        world.until(lambda: len(self.acknowledged) > before, 30.0)
        world.until(world.in_step, 120.0)
        world.until(lambda: len(set(map(self._end_offset, NODES))) == 1, 60.0)
        self._check()

    # --- what happens -------------------------------------------------------------------------------------------------

    def _pass(self, seconds=None):
        world = self.world
        world.run(world.clock.now() + (seconds or self.random.choice((0.01, 0.1, 0.5, 2.0, 5.0))))

    def _produce(self):
        value = str(self.sent).encode()
        self.sent += 1

        def told(base_offset):
            self.acknowledged[value] = base_offset

        self.world.produce(TOPIC, value, told)
        self._pass(self.random.choice((0.002, 0.05, 0.5)))

    def _settle(self):
        """Everybody is there, and in sync: whoever goes next takes nothing with it."""
        self._heal()
        self.world.until_serving()
        self.world.until(lambda: self.world.in_sync(TOPIC), 120.0)

    def _kill(self):
        self._settle()
        node_id = self.random.choice(NODES)
        self._produce()
        self.world.kill(node_id, loses_power=self.random.random() < 0.5)
        self.down = node_id
        self.kinds.add("kill")

    def _stop(self):
        self._settle()
        node_id = self.random.choice(NODES)
        assert self.world.stop(node_id), "a controlled shutdown did not end"
        self.down = node_id
        self.kinds.add("stop")

    def _cut(self):
        if self.down is not None:
            return
        one, other = self.random.sample(NODES, 2)
        self.world.network.cut(host_of(one), host_of(other))
        if self.random.random() < 0.7:
            self.world.network.cut(host_of(other), host_of(one))
        self.kinds.add("cut")

    def _reset(self):
        one, other = self.random.sample(NODES, 2)
        self.world.network.reset(host_of(one), host_of(other))

    def _heal(self):
        for one in NODES:
            for other in NODES:
                if one != other:
                    self.world.network.mend(host_of(one), host_of(other))
        if self.down is not None:
            self.world.start(self.down)
            self.down = None

    # --- what must hold -----------------------------------------------------------------------------------------------

    def _end_offset(self, node_id):
        return self.world.processes[node_id].broker.partitions.get(TOPIC, 0).end_offset

    def _check(self):
        world = self.world
        assert len({content(controller_of(each).image) for each in world.processes.values()}) == 1, "images differ"
        logs = [world.records_of(each, TOPIC) for each in NODES]
        assert logs[0] == logs[1] == logs[2], "logs differ"
        found = {}
        for base_offset, data in logs[0].items():
            for record in iterate_records(memoryview(data)):
                found.setdefault(bytes(record.value), []).append(base_offset)
        for value, offset in self.acknowledged.items():
            assert offset in found.get(value, ()), f"{value} was acknowledged at {offset} and is at {found.get(value)}"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Rounds))
