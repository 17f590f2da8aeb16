"""Bugs to plant in the shell of a quorum of several voters."""

from __future__ import annotations

from tests.planted.plant import Plant

SHELL = ("tests/server/test_raft_controller.py",)
COMBINED = ("tests/simulation/test_combined.py",)
LONE = ("tests/server/test_lone_combined.py",)
KRAFT = ("tests/server/test_kraft_version.py",)
STRANGE = ("tests/server/test_strange_nodes.py",)
FORMAT = ("tests/cli/test_format.py",)
IMAGES = ("tests/metadata/test_image_replacement.py",)

PLANTS = (
    Plant(
        "an observer whose leader has gone refuses pre-votes for ever",
        "raft/requests.py",
        "and now < replica.role.deadline",
        "",
        ("tests/raft/test_elections.py",),
    ),
    Plant(
        "a combined node closes its controllers' listener before its broker has left",
        "server/combined_process.py",
        'def stop_listening(self) -> None:\n    """The process stops; the broker\'s controlled shutdown may need this controller, and so may other nodes."""',
        "def stop_listening(self) -> None:\n    self.socket_server.stop_listening()",
        COMBINED,
    ),
    Plant(
        "a stop waits for a quorum that is gone",
        "server/broker_lifecycle.py",
        "if self.state == LEAVING and self._runtime.now - self._heard_at >= self._session_seconds:",
        "if False:",
        COMBINED,
    ),
    Plant(
        "a combined node waits for the session of its own earlier life",
        "metadata/broker_lifecycle.py",
        "existing.incarnation_id != request.incarnation_id and not event.is_own:",
        "existing.incarnation_id != request.incarnation_id:",
        LONE,
    ),
    Plant(
        "everybody may do at a controller what its own broker may",
        "handlers/controller_context.py",
        "if authorizer is None or self.is_local:",
        "if True:",
        LONE,
    ),
    Plant(
        "kraft.version is raised without a look at the voters",
        "server/raft_controller.py",
        "_, event.refusal = voter_changes.upgrade_refusal(machine, level)",
        "pass",
        KRAFT,
    ),
    Plant(
        "a level that another controller lacks is finalized",
        "metadata/feature_updates.py",
        "if not low <= level <= high:",
        "if False:",
        KRAFT,
    ),
    Plant(
        "a replica on a new disk stays offline",
        "server/directories.py",
        "and (self.failed or not can_copy):",
        ":",
        STRANGE,
    ),
    Plant(
        "two nodes on copies of one directory are not named",
        "server/raft_strangers.py",
        "if other is not None and found.turns >= TURNS and now - found.since >= TURNS_SECONDS:",
        "if False:",
        STRANGE,
    ),
    Plant(
        "a node that was formatted to join begins a second cluster",
        "server/raft_controller.py",
        "self._check_may_begin()",
        "pass",
        LONE,
    ),
    Plant(
        "a combined node that stops syncs the metadata on its loop before its broker has left",
        "server/combined_process.py",
        'def finish_work(self) -> None:\n    """The broker\'s controlled shutdown has turns to come, in which the loop waits for no sync."""',
        "def finish_work(self) -> None:\n    super().finish_work()",
        LONE,
    ),
    Plant(
        "a directory is formatted before all of it is there",
        "cli/format.py",
        'disk.make_directories(path)\ndisk.replace(f"{path}/{snapshots.BOOTSTRAP_FILE}"',
        'disk.make_directories(path)\ndisk.write(f"{path}/meta.properties", b"version=1\\nnode.id=1\\n")\n'
        'disk.replace(f"{path}/{snapshots.BOOTSTRAP_FILE}"',
        FORMAT,
    ),
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
        "a voter that knows no pre-votes is asked for them without end",
        "server/raft_shell.py",
        "if type(answer) is Failure and answer.is_final and type(effect.request) is messages.VoteRequest:",
        "if False:",
        SHELL,
    ),
    Plant(
        "the registration of a controller holds up its fetches",
        "server/raft_member.py",
        "self._asked.send(node_id, request, then)",
        "self._peers.send(node_id, request, then)",
        SHELL,
    ),
)
