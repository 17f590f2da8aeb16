"""Bugs to plant around the coordinator of streams groups: handlers, the creation of internal topics, descriptions."""

from __future__ import annotations

from tests.planted.plant import Plant

CREATION = ("tests/server/test_internal_topics.py",)
HEARTBEAT = ("tests/handlers/test_streams_group_heartbeat.py",)
DESCRIBE = ("tests/handlers/test_streams_group_describe.py",)
COMMAND = ("tests/cli/test_group_descriptions.py",)

PLANTS = (
    Plant(
        "an internal topic is asked for again while it is made",
        "server/internal_topics.py",
        "if topic.name not in self._under_way and not self.failures((topic.name,)):",
        "if not self.failures((topic.name,)):",
        CREATION,
    ),
    Plant(
        "a creation that failed is tried again at once",
        "server/internal_topics.py",
        "self._failures[name] = now + seconds, text",
        "self._failures[name] = now, text",
        (*CREATION, *HEARTBEAT),
    ),
    Plant(
        "failures of topics are remembered without a limit",
        "server/internal_topics.py",
        "while len(self._failures) > MAX_FAILURES:",
        "while False:",
        CREATION,
    ),
    Plant(
        "whoever sends a heartbeat has internal topics made",
        "server/internal_topics.py",
        "forbidden = [name for name in names if not may(caller, _CREATE_TOPIC, name)]",
        "forbidden: list[str] = []",
        HEARTBEAT,
    ),
    Plant(
        "a topology may read the topics of the coordinators",
        "handlers/streams_group_heartbeat.py",
        "internal = [name for name in names if name in INTERNAL_TOPICS]",
        "internal: list[str] = []",
        HEARTBEAT,
    ),
    Plant(
        "the protocol cannot be switched off by its feature",
        "handlers/group_protocols.py",
        "and features.get(_FEATURES[group_type], 0) >= 1",
        "and True",
        HEARTBEAT,
    ),
    Plant(
        "a group without an id is looked for",
        "handlers/streams_group_describe.py",
        "if not group_id:",
        "if False:",
        DESCRIBE,
    ),
    Plant(
        "a topology is told whoever asks",
        "handlers/streams_group_describe.py",
        "if not may(ctx, _DESCRIBE_TOPIC, name):",
        "if False:",
        DESCRIBE,
    ),
    Plant(
        "a member that has too much is not named",
        "cli/group_descriptions.py",
        "extra = [place for place in member.places if place not in member.target]",
        "extra: list[str] = []",
        COMMAND,
    ),
    Plant(
        "a task reads partitions that its topics do not have",
        "cli/group_descriptions.py",
        "if number < counts.get(topic, 0)",
        "if number >= 0",
        COMMAND,
    ),
)
