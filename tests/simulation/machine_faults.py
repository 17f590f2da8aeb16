"""Faults of single machines for `replication_faults`: each takes the world, and says whether it happened."""

from __future__ import annotations

import errno


def wipe(world):
    """A machine stops, and its disk is replaced by an empty one. Nothing acknowledged may be lost with it: what the
    others have is on another machine, too, and that stays so until this one has copied everything. No other one is
    down meanwhile: the two could be an ISR that is large enough, for which the third leaves it without being eligible,
    and then nobody leads."""
    node = world.any_running()
    if node is None or not world.may_lose_power or world.losses.unknown():
        return False
    if not world.losses.can_lose(node.node_id):
        return False
    world.may_lose_power = False
    world.wiped, world.is_wipe_known = node, False
    node.kill(wiped=True)
    world.losses.disk_replaced(node.node_id)
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
    later the process is killed, and starts on a disk that works and has what was written. A machine that may not be
    killed does not fail: nobody would lead what it alone has."""
    node = world.any_running()
    if node is None or node in world.failing or not world.may_stop_uncleanly(node):
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

    def make_room():
        if node.is_running and node.incarnation == incarnation:
            world.happened["disk fills"] += node.has_offline_logs
            disk.heal()
        _end_when_logs_are_back(world, node, incarnation)

    world.cluster.network.at(world.now + 4.0 * world.chance.random(), make_room)
    return False


def full_start(world):
    """A machine's process is killed, and one write of the next one finds no space. Either it cannot start, and is
    started again, or it serves without a log that could not be recovered, until that is tried again."""
    node = world.any_running()
    if node is None or node in world.failing or not world.may_stop_uncleanly(node):
        return False
    node.kill()
    node.lacks_space_at = world.chance.randint(1, 12)
    world.failing.add(node)
    world.later_start(node, world.chance.random())

    def look():
        if not node.is_running:
            world.cluster.network.at(world.now + 0.1, look)
        else:
            world.happened["full start"] += node.has_offline_logs
            _end_when_logs_are_back(world, node, node.incarnation)

    look()
    return False


def _end_when_logs_are_back(world, node, incarnation):
    """The machine stops cleanly again, should it be stopped. It does not while a log is out of service, or a write is
    still to fail."""

    def look():
        is_to_fail = node.has_offline_logs or node.disk.is_to_fail
        if node.is_running and node.incarnation == incarnation and is_to_fail:
            world.cluster.network.at(world.now + 0.5, look)
        else:
            world.failing.discard(node)

    look()
