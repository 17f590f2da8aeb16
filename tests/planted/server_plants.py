"""Bugs to plant in `pykafkad/server`: what every request passes through."""

from __future__ import annotations

from tests.planted.plant import Plant

PURGATORY = ("tests/server/test_purgatory.py",)
TIMERS = ("tests/server/test_timers.py",)
COMMITS = ("tests/server/test_commits.py",)
COMMIT_SYNCS = ("tests/server/test_commit_syncs.py",)
MIN_INSYNC = ("tests/server/test_min_insync_replicas.py",)
GROUPS = ("tests/server/test_coordinator_host.py",)
MACHINES = ("tests/server/test_machine_runner.py",)
PARTITION_KEYS = ("tests/server/test_partition_key_cache.py",)
DISPATCH = ("tests/server/test_dispatch.py",)
PRODUCE = ("tests/handlers/test_produce.py",)
FETCH = ("tests/handlers/test_fetch.py",)
TASKS = ("tests/server/test_incremental_tasks.py",)
LIMITER = ("tests/server/test_long_request_limiter.py",)
SESSIONS = ("tests/server/test_session.py",)

PLANTS = (
    # Purgatory and timers.
    Plant(
        "one operation more than the limit is tried in a turn",
        "server/purgatory.py",
        "while marked and tried < limit:",
        "while marked and tried <= limit:",
        PURGATORY,
    ),
    Plant(
        "an operation is tried only once",
        "server/purgatory.py",
        "# Touched again while it is tried, it is tried again.\ndelayed.marked = False",
        "",
        PURGATORY,
    ),
    Plant(
        "keys that nobody waits for any more are kept",
        "server/purgatory.py",
        "if not watching:\n    del self._by_key[key]",
        "",
        PURGATORY,
    ),
    Plant(
        "an operation does not end at its deadline but after it",
        "server/purgatory.py",
        "is not None and deadline <= now:",
        "is not None and deadline < now:",
        PURGATORY,
    ),
    Plant(
        "an operation of a connection that is gone waits on",
        "server/purgatory.py",
        "self.ignore(delayed.operation)\nif not delayed.done:\n    self._forget(delayed)",
        "self.ignore(delayed.operation)",
        PURGATORY,
    ),
    Plant(
        "the deadlines of answered operations are kept",
        "server/purgatory.py",
        "if len(self._heap) > 64 and len(self._heap) > 4 * self.count:",
        "if False:",
        PURGATORY,
    ),
    Plant(
        "an operation that listens is not told",
        "server/purgatory.py",
        "self._touched.append(operation)",
        "pass",
        ("tests/handlers/test_fetch_long.py",),
    ),
    Plant(
        "a timer that is set again fires at its old time, too",
        "server/timers.py",
        "if self._at.get(key) == (at, sequence):",
        "if key in self._at:",
        TIMERS,
    ),
    Plant(
        "replaced timers are kept",
        "server/timers.py",
        "if len(self._heap) > 64 and len(self._heap) > 4 * len(self._at):",
        "if False:",
        TIMERS,
    ),
    # Commits.
    Plant(
        "an answer leaves before its sync",
        "server/commits.py",
        "self._gathering[log] = None\n    behind[log] = True",
        "self._gathering[log] = None",
        COMMIT_SYNCS,
    ),
    Plant(
        "whoever waits for a write that fails is not told",
        "server/commits.py",
        "if log in failed:\n    self.fail(log, failed[log])\nelif log in self._waits:",
        "if log in failed:\n    pass\nelif log in self._waits:",
        COMMITS,
    ),
    Plant(
        "whoever waits for an offset is told one record late",
        "server/commits.py",
        "while waits and waits[0][0] <= end_offset:",
        "while waits and waits[0][0] < end_offset:",
        COMMITS,
    ),
    Plant(
        "a bug of one who waits keeps the others waiting",
        "server/commits.py",
        "try:\n    then(failure)\nexcept Exception as error:\n    # A bug of one who waited is none of the others'.\n    self._broker.runtime.unexpected(error)",
        "then(failure)",
        COMMITS,
    ),
    Plant(
        "answers of a failed write promise that it was made",
        "server/commits.py",
        "self.take_back(failed, fast_answers, answers)",
        "pass",
        COMMITS,
    ),
    Plant(
        "a deleted topic acknowledges what was gathered for it",
        "server/commits.py",
        'failed[log] = StorageFailure("write", log.directory, "the partition was deleted")\ncontinue',
        "continue",
        COMMITS,
    ),
    Plant(
        "acks=1 waits for the followers",
        "server/commits.py",
        "and (behind[log] or answer[3].acks_all):",
        "and True:",
        MIN_INSYNC,
    ),
    Plant(
        "what is appended while a sync runs does not wait for the next",
        "server/commits.py",
        "if self._always_sync or self._gathering or self._syncing or log.is_flush_due:\n    needs_sync = self._needs_sync(log)",
        "if self._always_sync or log.is_flush_due:\n    needs_sync = self._needs_sync(log)",
        COMMIT_SYNCS,
    ),
    Plant(
        "two rounds of syncs run at a time",
        "server/commits.py",
        "if self._gathering and not self._syncing:",
        "if self._gathering:",
        COMMIT_SYNCS,
    ),
    Plant(
        "a failed sync commits",
        "server/commits.py",
        "if failure is None and job is not None:",
        "if job is not None:",
        COMMIT_SYNCS,
    ),
    Plant(
        "a connection whose answers were synced is held for ever",
        "server/commits.py",
        "finally:\n    for connection in self._connections:\n        connection.release()",
        "finally:\n    pass",
        COMMIT_SYNCS,
    ),
    Plant(
        "a sole replica's commit wakes nobody",
        "server/commits.py",
        "if purgatory.count:\n    purgatory.touch(log)",
        "",
        FETCH,
    ),
    # Machines and coordinators.
    Plant(
        "an answer of several parts leaves before the last is asked for",
        "server/machine_runner.py",
        "self._answers[index] = message\nself._left -= 1\nif self._is_closed and not self._left:",
        "self._answers[index] = message\nself._left -= 1\nif not self._left:",
        MACHINES,
    ),
    Plant(
        "an answer of no parts never leaves",
        "server/machine_runner.py",
        "self._is_closed = True\nif not self._left:",
        "self._is_closed = True\nif not self._left and self._answers:",
        MACHINES,
    ),
    Plant(
        "effects behind a failed write are performed",
        "server/machine_runner.py",
        "self.drop(left, failure)\n            self.failed(failure)\n            return",
        "self.failed(failure)",
        MACHINES,
    ),
    Plant(
        "what a shard misses while it is loaded is lost",
        "server/coordinator_host.py",
        "self._missed.append(event)",
        "pass",
        GROUPS,
    ),
    Plant(
        "a shard serves on in the next leader epoch",
        "server/coordinator_host.py",
        "(runner.log is not log or runner.leader_epoch != log.replica.leader_epoch)",
        "runner.log is not log",
        GROUPS,
    ),
    Plant(
        "a log that cannot be read is tried again at every change",
        "server/coordinator_host.py",
        "if runner is None and self._failed.get(partition) != (log, log.replica.leader_epoch):",
        "if runner is None:",
        GROUPS,
    ),
    Plant(
        "a coordinator's answer does not wait for its records",
        "server/coordinator_host.py",
        "self._broker.commits.after_all(self.log, then)",
        "then(None)",
        (*COMMIT_SYNCS, *GROUPS),
    ),
    Plant(
        "a committed offset that waits for its sync is told",
        "server/coordinator_host.py",
        "self._broker.commits.hold_for(self.log, connection)",
        "pass",
        COMMIT_SYNCS,
    ),
    Plant(
        "a partition with too few replicas in sync has a coordinator",
        "server/coordinator_host.py",
        "if log is None or not log.replica.has_min_isr or log.offline is not None:",
        "if log is None or log.offline is not None:",
        GROUPS,
    ),
    # Replies and dispatch.
    Plant(
        "a late answer goes to the connection's next request",
        "server/replies.py",
        "connection is None or connection.sequence != token.sequence or connection.in_service is None",
        "connection is None or connection.in_service is None",
        ("tests/server/test_replies.py",),
    ),
    Plant(
        "a bug beside the loop leaves the request without an answer",
        "server/replies.py",
        "except Exception as error:\n    self.fail(token, error)",
        "except Exception as error:\n    pass",
        DISPATCH,
    ),
    Plant(
        "a version below the least is served",
        "server/dispatch.py",
        "if route is not None and route.min_version <= version <= route.max_version:",
        "if route is not None and version <= route.max_version:",
        ("tests/handlers/test_api_versions.py",),
    ),
    Plant(
        "every API is answered before the login",
        "server/dispatch.py",
        "if stage.api_keys is not None and key not in stage.api_keys:",
        "if False:",
        SESSIONS,
    ),
    Plant(
        "a bug behind the answer is answered, too",
        "server/dispatch.py",
        "if connection.in_service is not context or context.is_answered:",
        "if False:",
        DISPATCH,
    ),
    Plant(
        "a text that is too long for the wire ends the connection",
        "server/dispatch.py",
        "len(value.encode()) > _LONGEST_TEXT",
        "len(value.encode()) > 2 * _LONGEST_TEXT",
        DISPATCH,
    ),
    Plant(
        "a request whose connection is gone keeps its place",
        "server/dispatch.py",
        "connection.unpark()\nself.long_request_limiter.leave(connection)",
        "connection.unpark()",
        LIMITER,
    ),
    Plant(
        "who waits for a group keeps the place of a long request",
        "server/dispatch.py",
        "if result is DEFERRED and route.row.waits_for_others:",
        "if False:",
        LIMITER,
    ),
    # Long requests.
    Plant(
        "a shorter request passes one that waits for its place",
        "server/long_request_limiter.py",
        "if lane.waiting or not lane.has_room(size_bytes):",
        "if not lane.has_room(size_bytes):",
        LIMITER,
    ),
    Plant(
        "the places of answered requests are not given back",
        "server/long_request_limiter.py",
        "self._taken_bytes -= self.inside.pop(connection)",
        "self.inside.pop(connection)",
        LIMITER,
    ),
    Plant(
        "a place that is given back goes to one request only",
        "server/long_request_limiter.py",
        "del self.waiting[first]\nself.enter(first, size_bytes)\nbegin()",
        "del self.waiting[first]\nself.enter(first, size_bytes)\nbegin()\nreturn",
        LIMITER,
    ),
    Plant(
        "any number of bytes waits for news",
        "server/long_request_limiter.py",
        "if not self._parked.has_room(size_bytes):\n    return False",
        "",
        LIMITER,
    ),
    Plant(
        "work goes on for a connection that is gone",
        "server/incremental_tasks.py",
        "if connection is not None and connection.close_reason is not None:",
        "if False:",
        TASKS,
    ),
    Plant(
        "one task keeps the turns of the others",
        "server/incremental_tasks.py",
        "if not self._work(job, until):\n    self._waiting.append(job)",
        "if not self._work(job, until):\n    self._waiting.appendleft(job)",
        TASKS,
    ),
    Plant(
        "a turn that ends early plans no other",
        "server/incremental_tasks.py",
        "finally:\n    if self._waiting:\n        self._plan()",
        "finally:\n    pass",
        TASKS,
    ),
    Plant(
        "those that wait get nothing of a busy turn",
        "server/incremental_tasks.py",
        "until = max(self._turn_ends(began), began + WAITING_SECONDS)",
        "until = self._turn_ends(began)",
        TASKS,
    ),
    Plant(
        "the collector of garbage stays out of service",
        "server/incremental_tasks.py",
        "if self.collector is not None and (not self._waiting or began >= self._collects_at):",
        "if self.collector is not None and began >= self._collects_at:",
        TASKS,
    ),
    # Fast paths.
    Plant(
        "acks=0 is answered",
        "server/produce_fast_path.py",
        "if acks not in (1, -1) or",
        "if acks not in (1, 0, -1) or",
        PRODUCE,
    ),
    Plant(
        "a producer goes on with what it was told before a change of the settings",
        "server/produce_fast_path.py",
        "self._partition_keys.forget()\nfor each in self._preambles:\n    each.clear()",
        "self._partition_keys.forget()",
        MIN_INSYNC,
    ),
    Plant(
        "preambles are remembered without end",
        "server/produce_fast_path.py",
        "if len(known) >= _MAX_REMEMBERED:\n    known.clear()",
        "",
        PRODUCE,
    ),
    Plant(
        "a fetch is answered with less than its least bytes",
        "server/fetch_fast_path.py",
        "if records is None or records.chunk_size < min(min_bytes, max_bytes):",
        "if records is None:",
        FETCH,
    ),
    Plant(
        "an old leader epoch is read from",
        "server/fetch_fast_path.py",
        "if log is None or (leader_epoch >= 0 and leader_epoch != log.leader_epoch):",
        "if log is None:",
        FETCH,
    ),
    Plant(
        "aborted transactions are not told",
        "server/fetch_fast_path.py",
        "if isolation_level != _READ_COMMITTED or log.has_aborted:",
        "if isolation_level != _READ_COMMITTED:",
        FETCH,
    ),
    Plant(
        "read_committed is given what is not decided",
        "server/fetch_fast_path.py",
        "committed = log.last_stable_offset",
        "pass",
        FETCH,
    ),
    Plant(
        "a fetch of two topics is answered as one of the first",
        "server/partition_key_cache.py",
        "if key[-5] != 2:",
        "if False:",
        PARTITION_KEYS,
    ),
    Plant(
        "a name of 127 characters has a length of one byte",
        "server/partition_key_cache.py",
        "if 1 < length < 128 else -1",
        "if 1 < length else -1",
        PARTITION_KEYS,
    ),
    Plant(
        "a log that needs a check is used without",
        "server/partition_key_cache.py",
        "if log is None or not self._accepts(log):",
        "if log is None:",
        PARTITION_KEYS,
    ),
    Plant(
        "keys are remembered without end",
        "server/partition_key_cache.py",
        "if len(self.logs) >= _MAX_REMEMBERED:\n    self.logs.clear()",
        "",
        PARTITION_KEYS,
    ),
    # Sessions.
    Plant(
        "a decision outlives a change of the ACLs",
        "server/session.py",
        "or self._generation != sessions.generation",
        "",
        SESSIONS,
    ),
    Plant(
        "decisions are remembered without end",
        "server/session.py",
        "or len(decisions) >= MAX_DECISIONS",
        "",
        SESSIONS,
    ),
    Plant(
        "the fast paths pass the authorizer by",
        "server/session.py",
        "self.fast_paths = fast_paths if authorizer is None else {}",
        "self.fast_paths = fast_paths",
        SESSIONS,
    ),
)
