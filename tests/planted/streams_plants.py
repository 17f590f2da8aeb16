"""Bugs to plant in what `pykafkad` has of streams groups."""

from __future__ import annotations

from tests.planted.plant import Plant

LIVES = ("tests/coordinator/test_streams_properties.py",)
GROUP = ("tests/coordinator/test_streams_group.py",)
REQUESTS = ("tests/coordinator/test_streams_requests.py",)
TOPICS = ("tests/coordinator/test_streams_topics.py",)
ASSIGNOR = ("tests/coordinator/test_streams_assignor.py",)

PLANTS = (
    Plant(
        "an active task is given away before its owner gave it up",
        "coordinator/streams_group.py",
        "return wanted.difference(taken, *",
        "return wanted.difference(*",
        (*LIVES, *GROUP),
    ),
    Plant(
        "a process gets a copy of a task that it runs",
        "coordinator/streams_group.py",
        "return wanted.difference(own, *",
        "return wanted.difference(*",
        LIVES,
    ),
    Plant(
        "tasks that a member gave up stay taken",
        "coordinator/streams_group.py",
        "self._release(member.process_id, {key: tasks - has.get(key, set()) for key, tasks in had.items()})",
        "pass",
        (*LIVES, *GROUP),
    ),
    Plant(
        "a member need not say that it gave up its tasks",
        "coordinator/streams_reconciliation.py",
        "if self.owned is None:\n    return True",
        "if self.owned is None:\n    return False",
        GROUP,
    ),
    Plant(
        "a member that gave up its tasks stays where it is",
        "coordinator/streams_reconciliation.py",
        "return member if self._has_any(member.revoking) else self._towards_target(member.epoch + 1)",
        "return member",
        (*LIVES, *GROUP),
    ),
    Plant(
        "a member with an epoch of before is served whatever it has",
        "coordinator/streams_heartbeat.py",
        "return request.member_epoch == member.previous_epoch and all(",
        "return request.member_epoch == member.previous_epoch or all(",
        GROUP,
    ),
    Plant(
        "changed topics lead to no new assignment",
        "coordinator/streams_heartbeat.py",
        "if group.topology is None or found != group.metadata_hash or group.configured is None:",
        "if group.topology is None or group.configured is None:",
        (*LIVES, *GROUP),
    ),
    Plant(
        "the second topology replaces the first",
        "coordinator/streams_heartbeat.py",
        "if group.topology.epoch <= topology.epoch and group.topology != topology:",
        "if False:",
        GROUP,
    ),
    Plant(
        "a changed number of standby copies is not noticed",
        "coordinator/streams_heartbeat.py",
        "and configs == group.assignment_configs",
        "",
        GROUP,
    ),
    Plant(
        "the first target is computed at once",
        "coordinator/streams_group.py",
        "if not self.is_delayed and delay_ms > 0:",
        "if False:",
        GROUP,
    ),
    Plant(
        "the request to shut down outlives the group's members",
        "coordinator/streams_group.py",
        "if not self.members:\n    self.shutdown_member_id = None",
        "if False:\n    self.shutdown_member_id = None",
        GROUP,
    ),
    Plant(
        "a subtopology has as many tasks as its smallest source has partitions",
        "coordinator/streams_topics.py",
        "task_count = max(self._source_counts(subtopology))",
        "task_count = min(self._source_counts(subtopology))",
        TOPICS,
    ),
    Plant(
        "a repartition topic that nobody writes is taken",
        "coordinator/streams_topics.py",
        "if any(topic.name not in counts for each in subtopologies for topic in each.repartition_source_topics):",
        "if False:",
        TOPICS,
    ),
    Plant(
        "a standby task goes to a process that has the task",
        "coordinator/streams_assignor.py",
        "found = task not in process.tasks",
        "found = True",
        ASSIGNOR,
    ),
    Plant(
        "tasks do not stay where they are",
        "coordinator/streams_assignor.py",
        "if member is None or member.load >= self._active_quota.per_member:",
        "if True:",
        ASSIGNOR,
    ),
    Plant(
        "commits of tasks that were given up count",
        "coordinator/streams_group.py",
        "if since is None or epoch < since:",
        "if False:",
        REQUESTS,
    ),
)
