"""Bugs to plant in `pykafkad/handlers`."""

from __future__ import annotations

from tests.planted.plant import Plant

AUTHORIZATION = ("tests/handlers/test_authorization.py",)
FETCH = ("tests/handlers/test_fetch.py",)
FETCH_SESSIONS = ("tests/handlers/test_fetch_sessions.py",)
PRODUCE = ("tests/handlers/test_produce.py",)
MIN_INSYNC = ("tests/server/test_min_insync_replicas.py",)
LEADER_HINTS = ("tests/handlers/test_leader_hints.py",)
LIST_OFFSETS = ("tests/handlers/test_list_offsets.py",)
DELETE_GROUPS = ("tests/handlers/test_delete_groups.py",)
DELETE_RECORDS = ("tests/handlers/test_delete_records.py",)
DELETE_TOPICS = ("tests/handlers/test_delete_topics.py",)
API_VERSIONS = ("tests/handlers/test_api_versions.py",)
OFFSET_COMMIT = ("tests/handlers/test_offset_commit.py",)
OFFSET_FETCH = ("tests/handlers/test_offset_fetch.py",)
OFFSET_DELETE = ("tests/handlers/test_offset_delete.py",)
LONG_REQUESTS = ("tests/handlers/test_long_requests.py",)
COORDINATOR = ("tests/handlers/test_find_coordinator.py",)
METADATA = ("tests/handlers/test_metadata.py",)

PLANTS = (
    # Authorization.
    Plant(
        "the other right that would do as well is not looked at",
        "handlers/authorization.py",
        "operation, resource_type = rule.instead\nif ctx.allowed(",
        "operation, resource_type = rule.instead\nif False and ctx.allowed(",
        AUTHORIZATION,
    ),
    Plant(
        "a refusal has the error of its resource type, not of its rule",
        "handlers/authorization.py",
        "return errors.NONE if may(ctx, rule, name) else rule.error",
        "return errors.NONE if may(ctx, rule, name) else ERRORS[rule.resource_type]",
        AUTHORIZATION,
    ),
    Plant(
        "who may describe a topic may read its records",
        "handlers/authorization_rules.py",
        'needs("Read", "Topic", "topics.topic", "topics.topic_id"),\nneeds(\n"ClusterAction"',
        'needs("Describe", "Topic", "topics.topic", "topics.topic_id"),\nneeds(\n"ClusterAction"',
        ("tests/handlers/test_authorization_facts.py",),
    ),
    Plant(
        "DeleteGroups asks for no right",
        "handlers/delete_groups.py",
        "if not may(ctx, _DELETE_GROUP, group_id):",
        "if False:",
        AUTHORIZATION,
    ),
    Plant(
        "the operations of the cluster are told to those who may not describe it",
        "handlers/operations.py",
        'if not may(ctx, RULES["DescribeCluster"][0]):\n    return 0',
        "",
        ("tests/handlers/test_describe_cluster.py",),
    ),
    Plant(
        "OffsetFetch of all topics shows those that may not be described",
        "handlers/offset_fetch.py",
        "rows = [row for row in rows if may(ctx, _SEE_TOPIC, row.name)]",
        "",
        (*OFFSET_FETCH, *AUTHORIZATION),
    ),
    Plant(
        "a topic id that may be described and not deleted is deleted",
        "handlers/delete_topics.py",
        (
            "if not may(self._ctx, _DELETE_TOPIC, topic.name):\n"
            "    shown = topic.name if may(self._ctx, _DESCRIBE_TOPIC, topic.name) else None\n"
            "    self.refuse(shown, topic_id, _DELETE_TOPIC.error)\n"
            "    return None\n"
        ),
        "",
        DELETE_TOPICS,
    ),
    # Versions.
    Plant(
        "ApiVersions tells features with minimum 0 to old clients",
        "handlers/api_versions.py",
        "if low > 0 or ctx.version >= 4",
        "if low > 0 or ctx.version >= 3",
        API_VERSIONS,
    ),
    Plant(
        "the name of a client's software may end with a dash",
        "handlers/api_versions.py",
        "and text[-1] in _LETTERS",
        "",
        API_VERSIONS,
    ),
    Plant(
        "a special time is known one version early",
        "handlers/list_offsets.py",
        "return ctx.version < _SPECIAL_SINCE",
        "return ctx.version + 1 < _SPECIAL_SINCE",
        LIST_OFFSETS,
    ),
    Plant(
        "an error of a group stands at the top in version 1",
        "handlers/offset_fetch.py",
        "if version >= 2:",
        "if version >= 1:",
        OFFSET_FETCH,
    ),
    Plant(
        "share groups are known to version 5",
        "handlers/find_coordinator.py",
        "ctx.version < 6:",
        "ctx.version < 5:",
        COORDINATOR,
    ),
    Plant(
        "an empty list of topics means all in version 1",
        "handlers/metadata.py",
        "(ctx.version == 0 and not request.topics)",
        "(ctx.version <= 1 and not request.topics)",
        METADATA,
    ),
    # Fetch.
    Plant(
        "a fetch waits although it has exactly the least bytes",
        "handlers/fetch.py",
        "total >= self.min_bytes",
        "total > self.min_bytes",
        FETCH,
    ),
    Plant(
        "every partition gives a batch, whatever the limit of the request",
        "handlers/fetch.py",
        "size = self._read_one(partition, row, log, left, total == 0)",
        "size = self._read_one(partition, row, log, left, True)",
        FETCH,
    ),
    Plant(
        "a fetch waits on at a log whose place another took",
        "handlers/fetch.py",
        "if enough or any(log.closed for log in self.keys) else None",
        "if enough else None",
        ("tests/server/test_data_snapshots.py",),
    ),
    Plant(
        "a deleted topic does not end the wait of a fetch for several",
        "handlers/fetch.py",
        "has_gone = self._absent is not None and partition not in self._absent",
        "has_gone = False",
        ("tests/handlers/test_fetch.py", "tests/server/test_directories.py"),
    ),
    Plant(
        "an epoch that is not known yet counts as fenced",
        "handlers/fetch.py",
        "errors.FENCED_LEADER_EPOCH if asked < epoch else errors.UNKNOWN_LEADER_EPOCH",
        "errors.FENCED_LEADER_EPOCH",
        FETCH,
    ),
    Plant(
        "a follower's log that goes on after its epoch ended is not told",
        "handlers/fetch_replicas.py",
        "if epoch < asked or end_offset < partition.fetch_offset:",
        "if epoch < asked:",
        FETCH,
    ),
    Plant(
        "read_committed is given what is not decided yet",
        "handlers/fetch.py",
        "return log.last_stable_offset if self._read_committed else log.high_watermark",
        "return log.high_watermark",
        FETCH,
    ),
    Plant(
        "a fetch asks for more than max.bytes of the broker allows",
        "handlers/fetch.py",
        "self.min_bytes = min(request.min_bytes, self.max_bytes)",
        "self.min_bytes = request.min_bytes",
        FETCH,
    ),
    # Fetch sessions.
    Plant(
        "a session goes on with an old epoch",
        "handlers/fetch.py",
        "if session.epoch != request.session_epoch:",
        "if session.epoch < request.session_epoch:",
        FETCH_SESSIONS,
    ),
    Plant(
        "forgotten partitions stay in the session",
        "handlers/fetch.py",
        "session.partitions.pop((topic.topic_id if by_id else topic.topic, index), None)",
        "pass",
        FETCH_SESSIONS,
    ),
    Plant(
        "a served partition keeps its place in the session",
        "handlers/fetch.py",
        "if session.partitions.get(key) is partition:",
        "if False:",
        FETCH_SESSIONS,
    ),
    Plant(
        "the epoch of a session wraps to 0",
        "handlers/fetch_sessions.py",
        "self.epoch = 1 if self.epoch >= _MAX_EPOCH else self.epoch + 1",
        "self.epoch = 0 if self.epoch >= _MAX_EPOCH else self.epoch + 1",
        FETCH_SESSIONS,
    ),
    Plant(
        "a session does not tell of a new log start",
        "handlers/fetch_sessions.py",
        "return row.high_watermark != self.high_watermark or row.log_start_offset != self.log_start_offset",
        "return row.high_watermark != self.high_watermark",
        FETCH_SESSIONS,
    ),
    Plant(
        "a session that ends goes on counting its partitions",
        "handlers/fetch_sessions.py",
        "if session is not None:\n    self.partitions -= session.counted",
        "",
        FETCH_SESSIONS,
    ),
    Plant(
        "a session of the same size takes the place of another",
        "handlers/fetch_sessions.py",
        "(privileged, size) <= (victim.privileged, victim.counted)",
        "(privileged, size) < (victim.privileged, victim.counted)",
        FETCH_SESSIONS,
    ),
    # Produce.
    Plant(
        "acks=all is taken with too few replicas in sync",
        "handlers/produce.py",
        "if self._request.acks == -1 and not log.replica.has_min_isr:",
        "if False:",
        MIN_INSYNC,
    ),
    Plant(
        "acks=1 is refused with too few replicas in sync",
        "handlers/produce.py",
        "if self._request.acks == -1 and not log.replica.has_min_isr:",
        "if not log.replica.has_min_isr:",
        MIN_INSYNC,
    ),
    Plant(
        "an error of acks=0 leaves the connection open",
        "handlers/produce.py",
        "if self._request.acks == 0:\n    for log, _ in self._unwritten:\n        ctx.written_without_answer(log)\n    if self._failed:",
        "if self._request.acks == 0:\n    for log, _ in self._unwritten:\n        ctx.written_without_answer(log)\n    if False:",
        PRODUCE,
    ),
    Plant(
        "clients write to internal topics",
        "handlers/produce.py",
        "if topic.name in _INTERNAL_TOPICS and ctx.client_id != _ADMIN_CLIENT_ID:",
        "if False:",
        PRODUCE,
    ),
    Plant(
        "records for another leader are taken",
        "handlers/produce.py",
        "if log in ctx.partitions.not_led_here:\n    raise errors.KafkaError(errors.NOT_LEADER_OR_FOLLOWER)",
        "",
        LEADER_HINTS,
    ),
    Plant(
        "a batch that is opened elsewhere is appended to a topic deleted meanwhile",
        "handlers/produce.py",
        "if log.closed:\n    code =",
        "if False:\n    code =",
        ("tests/handlers/test_long_batches.py",),
    ),
    # Offsets.
    Plant(
        "a partition that is named twice is answered like any other",
        "handlers/list_offsets.py",
        "(twice if key in seen else seen).add(key)",
        "seen.add(key)",
        LIST_OFFSETS,
    ),
    Plant(
        "a time finds a record that is not committed",
        "handlers/list_offsets.py",
        "return found if found is not None and found[0] < last_fetchable else None",
        "return found",
        MIN_INSYNC,
    ),
    Plant(
        "offsets of a topic deleted meanwhile are committed",
        "handlers/offset_commit.py",
        "if ctx.metadata.topic_by_id(topic.topic_id) is not None:",
        "if True:",
        LONG_REQUESTS,
    ),
    Plant(
        "one missing partition refuses the other offsets of its topic",
        "handlers/offset_commit.py",
        "topic.partitions = present",
        "topic.partitions = []",
        OFFSET_COMMIT,
    ),
    Plant(
        "a committed offset is told before it is synced",
        "handlers/offset_fetch.py",
        "ctx.groups.read(group_id, ctx.token)",
        "pass",
        ("tests/server/test_commit_syncs.py",),
    ),
    Plant(
        "offsets are looked up in overlapping parts",
        "handlers/offset_fetch.py",
        "for start in range(0, len(indexes) or 1, AT_ONCE):",
        "for start in range(0, len(indexes) or 1, AT_ONCE - 1):",
        OFFSET_FETCH,
    ),
    Plant(
        "refused rows hide the error of a whole group",
        "handlers/offset_delete.py",
        "if answer.error_code:\n    return answer",
        "",
        OFFSET_DELETE,
    ),
    # Groups and topics.
    Plant(
        "a group that is named twice is deleted twice",
        "handlers/delete_groups.py",
        "for group_id in dict.fromkeys(request.groups_names):",
        "for group_id in request.groups_names:",
        DELETE_GROUPS,
    ),
    Plant(
        "groups of another coordinator are not answered",
        "handlers/delete_groups.py",
        "results=without_shard + deleted + refused",
        "results=deleted + refused",
        DELETE_GROUPS,
    ),
    Plant(
        "a broker that is fenced is named as the coordinator",
        "handlers/find_coordinator.py",
        "if broker is None or broker.fenced:",
        "if broker is None:",
        COORDINATOR,
    ),
    Plant(
        "records of a compacted topic are deleted",
        "handlers/delete_records.py",
        'if "compact" in policy and "delete" not in policy:',
        "if False:",
        DELETE_RECORDS,
    ),
    Plant(
        "a topic that is named by name and by id is deleted",
        "handlers/delete_topics.py",
        "chosen.pop(topic.id, None)",
        "pass",
        DELETE_TOPICS,
    ),
    Plant(
        "a topic that is named twice is deleted",
        "handlers/delete_topics.py",
        "for name, count in self._names.items():\n    yield\n    if count == 1:",
        "for name, count in self._names.items():\n    yield\n    if True:",
        DELETE_TOPICS,
    ),
    Plant(
        "a topic is created although the client does not want it",
        "handlers/metadata.py",
        "creates = request.allow_auto_topic_creation and ctx.settings.auto_create_topics_enable",
        "creates = ctx.settings.auto_create_topics_enable",
        METADATA,
    ),
    Plant(
        "the row of a topic that changed while it was described is kept",
        "handlers/metadata.py",
        "if topic.described is mark:",
        "if True:",
        ("tests/server/test_incremental_tasks.py",),
    ),
    Plant(
        "a broker's id may have spaces around it",
        "handlers/operations.py",
        "not digits.isdecimal() or",
        "not digits.strip().isdecimal() or",
        ("tests/handlers/test_describe_configs.py", "tests/handlers/test_alter_configs.py"),
    ),
)
