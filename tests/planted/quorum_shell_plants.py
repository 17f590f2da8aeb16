"""Bugs to plant in the shell of a quorum of several voters."""

from __future__ import annotations

from tests.planted.plant import Plant

SHELL = ("tests/server/test_raft_controller.py",)
IMAGES = ("tests/metadata/test_image_replacement.py",)

PLANTS = (
    Plant(
        "a change that a leader was deciding is never answered when it leads no more",
        "server/raft_controller.py",
        "then(_NotLeading(), False)",
        "pass",
        SHELL,
    ),
    Plant(
        "a sync of the quorum's log that fails counts as done",
        "server/raft_shell.py",
        "if isinstance(result, Exception):\n    # Whatever a sync raised, it did not happen.",
        "if False:",
        SHELL,
    ),
    Plant(
        "a snapshot that was fetched before a kill leaves the old log",
        "server/raft_log.py",
        "if log.end_offset < end_offset or log.epochs.latest < epoch:",
        "if False:",
        SHELL,
    ),
    Plant(
        "the address of a leader is not learnt from answers",
        "server/raft_addresses.py",
        "if isinstance(answer, _ABOUT_LEADER):\n    for each in answer.node_endpoints:",
        "if False:\n    for each in answer.node_endpoints:",
        SHELL,
    ),
    Plant(
        "a follower of the image does not hear of a snapshot",
        "server/raft_member.py",
        "self._applied_to(self.applied, self._tell_change())",
        "self._applied_to(self.applied, bool(self.image.take_delta()))",
        SHELL,
    ),
    Plant(
        "a snapshot leaves topics that it does not have",
        "metadata/image_replacement.py",
        "yield messages.RemoveTopicRecord(topic_id=topic.id)",
        "pass",
        IMAGES,
    ),
    Plant(
        "the registration of a controller holds up its fetches",
        "server/raft_member.py",
        "self._asked.send(node_id, request, then)",
        "self._peers.send(node_id, request, then)",
        SHELL,
    ),
)
