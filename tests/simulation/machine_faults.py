"""Faults of single machines for `replication_faults`: each takes the world, and says whether it happened."""

from __future__ import annotations

import errno


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
            if world.may_stop(node):
                self._restarted = self._left.pop()
                node.stop()
                world.later_start(node, world.chance.random())
        world.cluster.network.at(world.now + self.PAUSE_SECONDS, self._go_on)


def rolling(world):
    """Begin one; it has happened when it ends."""
    if not world.is_rolling:
        Rolling(world)
    return False


def drift(world):
    """The clock of a machine runs faster or slower than those of the others from now on, or as fast again."""
    clock = world.chance.choice([world.controller_clock, *(each.clock for each in world.nodes.values())])
    clock.set_rate(world.chance.choice([0.5, 0.8, 1.0, 1.3, 2.0]))
    return True


def disk_fails(world):
    """A write or a sync of a machine fails once. Its log is out of service from then on, and the others go on; a while
    later the process is killed, and starts on a disk that works and has what was written."""
    node = world.any_running()
    if node is None or node in world.failing:
        return False
    chance, disk, incarnation = world.chance, node.disk, node.incarnation
    error = chance.choice([errno.EIO, errno.ENOSPC])
    disk.fail(chance.choice(["write", "sync"]), at=chance.randint(1, 5), part=chance.randrange(200), error=error)
    world.failing.add(node)

    def replace():
        if not node.is_running or node.incarnation != incarnation:
            world.failing.discard(node)
        elif not node.is_stopping and world.may_stop_uncleanly(node):
            world.happened["disk fails"] += not disk.is_to_fail
            world.failing.discard(node)
            node.kill()
            world.later_start(node, world.chance.random())
        else:
            world.cluster.network.at(world.now + 0.5, replace)

    world.cluster.network.at(world.now + 4.0 * chance.random(), replace)
    return False


def disk_fills(world):
    """A machine's disk has no space for a while. A log whose write fails is out of service, and comes back when there
    is space again; nobody starts the machine again for that."""
    node = world.any_running()
    if node is None or node in world.failing:
        return False
    disk, incarnation = node.disk, node.incarnation
    disk.fill(part=world.chance.randrange(200))
    world.failing.add(node)

    def is_alive():
        return node.is_running and node.incarnation == incarnation

    def has_offline():
        return any(log.offline is not None for log in node.broker.partitions)

    def make_room():
        if is_alive():
            world.happened["disk fills"] += has_offline()
            disk.heal()
        end()

    def end():
        # A stop is not a clean one while a log is out of service.
        if is_alive() and has_offline():
            world.cluster.network.at(world.now + 0.5, end)
        else:
            world.failing.discard(node)

    world.cluster.network.at(world.now + 4.0 * world.chance.random(), make_room)
    return False
