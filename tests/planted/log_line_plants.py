"""Bugs to plant in what people are told: log lines of groups, transactions and peers."""

from __future__ import annotations

from tests.planted.plant import Plant

NEWS = ("tests/coordinator/test_group_news.py",)
LOGS = ("tests/server/test_logs.py",)
HOST = ("tests/server/test_coordinator_host.py",)

PEERS = ("tests/server/test_peer_lines.py",)
TOPICS = ("tests/handlers/test_log_lines.py",)
MEMORY = ("tests/test_memory_disk.py",)

SERVE = ("tests/cli/test_serve.py",)
SETTINGS = ("tests/test_config.py",)

STRANGE = ("tests/server/test_strange_replicas.py",)
NODES = ("tests/server/test_strange_nodes.py",)

PLANTS = (
    Plant(
        "a follower that led before is named for the records that it has to cut",
        "server/strange_replicas.py",
        "and not 0 <= last_fetched_epoch < epoch:",
        ":",
        STRANGE,
    ),
    Plant(
        "refusals of several elections are taken for one that lasts",
        "server/strange_replicas.py",
        "if known is None or now - known.last >= LASTING_SECONDS:",
        "if known is None:",
        STRANGE,
    ),
    Plant(
        "refusals of several partitions are taken for one that lasts",
        "server/strange_replicas.py",
        "elif known.place != place:",
        "elif False:",
        STRANGE,
    ),
    Plant(
        "a refusal that is over keeps its place",
        "server/strange_replicas.py",
        "if now - self._refusals[oldest].last < LASTING_SECONDS:",
        "if True:",
        STRANGE,
    ),
    Plant(
        "one broker of a host is named for all of them",
        "server/strange_replicas.py",
        'f"broker {follower} {words}"',
        "words",
        STRANGE,
    ),
    Plant(
        "a voter that has lost its disk is not named",
        "server/raft_strangers.py",
        "if offset < known:",
        "if False:",
        NODES,
    ),
    Plant(
        "what a voter had in an earlier epoch counts in the next one",
        "server/raft_strangers.py",
        "self._fetched_to.clear()",
        "pass",
        NODES,
    ),
    Plant(
        "a voter that cuts its log after an election is named as one that has lost its disk",
        "server/raft_strangers.py",
        "elif offset > known and partition.last_fetched_epoch == self._epoch:",
        "elif offset > known:",
        NODES,
    ),
    Plant(
        "a leader's damaged batches are not told",
        "server/raft_shell.py",
        "self._strangers.doubted_answer(place, self.machine.doubts)",
        "pass",
        NODES,
    ),
    Plant(
        "who asked only for a check of a new topic is kept",
        "metadata/controller.py",
        "if not event.validate_only:",
        "if True:",
        TOPICS,
    ),
    Plant(
        "who asks for topics is kept without a limit",
        "metadata/topic_askers.py",
        "if len(askers) >= MAX_KEPT:",
        "if False:",
        TOPICS,
    ),
    Plant(
        "a topic that came by itself looks as one that was asked for",
        "server/auto_creation.py",
        "askers[name] = asker",
        "pass",
        TOPICS,
    ),
    Plant(
        "the advertised listeners of the file stay beside --listen",
        "cli/serve.py",
        "del properties[name]",
        "pass",
        SERVE,
    ),
    Plant(
        "--listen takes away the advertised listeners of --set as well",
        "cli/serve.py",
        'or not origin.startswith(f"{path}:"):',
        ":",
        SERVE,
    ),
    Plant(
        "settings without effect are all told together",
        "settings/notices.py",
        'if is_noticed and text.strip() != (row.default or ""):',
        "if False:",
        SETTINGS,
    ),
    Plant(
        "a setting that says the default is a warning",
        "settings/notices.py",
        'if is_noticed and text.strip() != (row.default or ""):',
        "if is_noticed:",
        SETTINGS,
    ),
    Plant(
        "a health check is named each time",
        "server/peer_lines.py",
        "if text in host.reasons or len(host.reasons) >= REASONS:",
        "if len(host.reasons) >= REASONS:",
        PEERS,
    ),
    Plant(
        "reasons that are always new are all named",
        "server/peer_lines.py",
        "or len(host.reasons) >= REASONS:",
        ":",
        PEERS,
    ),
    Plant(
        "a host that has been named is never named again",
        "server/peer_lines.py",
        "elif now - host.since >= NAMED_AGAIN_SECONDS:",
        "elif False:",
        PEERS,
    ),
    Plant(
        "hosts that were named are kept without a limit",
        "server/peer_lines.py",
        "if len(self._hosts) >= HOSTS:",
        "if False:",
        PEERS,
    ),
    Plant(
        "what is not offered is named with each request",
        "server/logs.py",
        "if self.threshold <= 1 and line not in self._told_once:",
        "if self.threshold <= 1:",
        PEERS,
    ),
    Plant(
        "each retry at the memory bound is a warning",
        "memory_disk.py",
        "and now >= self._tell_again_at:",
        ":",
        MEMORY,
    ),
    Plant(
        "a rebalance ends with the first member that has its target",
        "coordinator/group_news.py",
        "return bool(member.is_reconciled_to(epoch))",
        "return True",
        NEWS,
    ),
    Plant(
        "all members are looked at with each record of one",
        "coordinator/group_news.py",
        "if waiting is None:",
        "if True:",
        NEWS,
    ),
    Plant(
        "a member whose session expires is said to have left",
        "coordinator/group_news.py",
        '"member-expired" if is_late else "member-left"',
        '"member-left"',
        NEWS,
    ),
    Plant(
        "members of a classic group join once more when it becomes a consumer group",
        "coordinator/group_news.py",
        "if value is not None and each not in before}",
        "if value is not None}",
        NEWS,
    ),
    Plant(
        "the time of a rebalance counts from the first one of its group",
        "coordinator/assignment.py",
        "group.rebalance_began = NEVER",
        "pass",
        NEWS,
    ),
    Plant(
        "a storm of members is told of in full",
        "coordinator/step.py",
        "if self._told <= TOLD_PER_STEP:",
        "if True:",
        NEWS,
    ),
    Plant(
        "lines that clients cause have no limit of their own",
        "server/logs.py",
        "if self._lines_this_second > BOUNDED_LINES_PER_SECOND:",
        "if False:",
        LOGS,
    ),
    Plant(
        "the log tells of members whose records could not be written",
        "coordinator/step.py",
        "self.effects.append(Tell(event, fields))",
        "self.effects.insert(0, Tell(event, fields))",
        HOST,
    ),
    Plant(
        "nobody is told of a transaction that timed out",
        "coordinator/transaction_shard.py",
        "effects.append(_timed_out(transaction))",
        "pass",
        NEWS,
    ),
)
