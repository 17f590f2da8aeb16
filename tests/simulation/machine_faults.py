"""Faults of single machines for `replication_faults`: each takes the world, and says whether it happened."""

from __future__ import annotations


def wipe(world):
    """A machine stops, and its disk is replaced by an empty one. Nothing acknowledged may be lost with it: what the
    others have is on another machine, too, and that stays so until this one has copied everything."""
    node = world.any_running()
    if node is None or not world.may_lose_power or not world.losses.can_lose(node.node_id):
        return False
    world.may_lose_power = False
    world.wiped = node
    node.kill(wiped=True)
    world.later_start(node, world.chance.choice([0.1, 1.0, 5.0]) * world.chance.random())
    return True


class Rolling:
    """A clean restart of every broker, one after the other, each when the one before serves again."""

    PAUSE_SECONDS = 0.1
    """Between two looks at whether the next one can go on."""

    def __init__(self, world):
        self._world = world
        self._left = world.chance.sample(list(world.nodes.values()), len(world.nodes))
        self._restarted = None
        world.is_rolling = True
        self._go_on()

    def _serves(self, node):
        registered = self._world.image.brokers[node.node_id]
        return node.is_running and not node.is_paused and node.broker.serving and registered.active

    def _go_on(self):
        world = self._world
        if world.is_healing:
            return
        if self._restarted is None or self._serves(self._restarted):
            if not self._left:
                world.is_rolling = False
                world.happened["rolling"] += 1
                return
            node = self._left[-1]
            if node.is_running and not node.is_paused and not world.controller.is_busy:
                self._restarted = self._left.pop()
                node.stop()
                world.later_start(node, world.chance.random())
        world.cluster.network.at(world.now + self.PAUSE_SECONDS, self._go_on)


def rolling(world):
    """Begin one; it has happened when it ends."""
    if not world.is_rolling:
        Rolling(world)
    return False
