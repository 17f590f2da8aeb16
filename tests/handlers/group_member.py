"""What members of share and streams groups have in common, over a connection to a whole broker."""

from __future__ import annotations

from pykafkad.wire import messages

MEMBER = "11111111-1111-1111-1111-111111111111"


class GroupMember:
    """One member, with a connection of its own."""

    def __init__(self, world, member, group):
        self.world = world
        self.peer = world.connect()
        self.member = member
        self.group = group
        self.epoch = 0

    def find(self):
        """Wait until the coordinator of the group is loaded."""
        request = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
        for _ in range(20):
            (row,) = self.peer.ask(request, 6).coordinators
            if row.error_code == 0 and not self.world.broker.groups.is_loading:
                return self
            self.world.turn()
        raise AssertionError(f"no coordinator: {row}")
