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
