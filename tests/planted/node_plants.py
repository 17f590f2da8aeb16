"""Bugs to plant in `pykafkad/server`: what a node holds and does by itself."""

from __future__ import annotations

from tests.planted.plant import Plant

COMMIT_SYNCS = ("tests/server/test_commit_syncs.py",)
MIN_INSYNC = ("tests/server/test_min_insync_replicas.py",)
FETCH = ("tests/handlers/test_fetch.py",)
SESSIONS = ("tests/server/test_session.py",)
QUIET = ("tests/server/test_quiet_partitions.py",)
ROLES = ("tests/server/test_pending_roles.py",)
PENDING = ("tests/server/test_pending_partitions.py",)
METADATA_LOG = ("tests/server/test_metadata_log.py", "tests/server/test_metadata_syncs.py")
METADATA_SYNCS = ("tests/server/test_metadata_syncs.py",)
HEARTBEATS = ("tests/server/test_heartbeat_fast_path.py",)
MOVES = ("tests/handlers/test_alter_replica_log_dirs.py",)
HOUSEKEEPING = ("tests/server/test_housekeeping.py",)
DELETED = ("tests/server/test_deleted_partitions.py",)
DIRECTORIES = ("tests/server/test_directories.py",)
OFFLOAD = ("tests/server/test_offload.py",)
STOP = ("tests/server/test_start_and_stop.py",)

BROKERS = ("tests/server/test_replicated_brokers.py",)

PLANTS = (
    # Partitions and topics.
    Plant(
        "followers open all their logs in one turn",
        "server/runtime.py",
        "return self._loads <= self.loads_per_turn",
        "return True",
        ROLES,
    ),
    Plant(
        "a follower asks for more a turn after its answer",
        "server/leader_fetcher.py",
        "finally:\n    self._ask()",
        "finally:\n    self._plan(self._broker.runtime.now)",
        BROKERS,
    ),
    Plant(
        "a follower that may open no log in a turn never asks for it",
        "server/leader_fetcher.py",
        "is_partial, later = True, now",
        "is_partial = True",
        ROLES,
    ),
    Plant(
        "logs out of service take a share of those that are opened in a turn",
        "server/followed_partition.py",
        "return not log.is_loaded and log.offline is None and not log.closed",
        "return not log.is_loaded",
        ROLES,
    ),
    Plant(
        "an answer leaves while one of its partitions has no log",
        "server/pending_partitions.py",
        "while answers and answers[0][0] <= self.added - len(order):",
        "while answers and answers[0][0] <= self.added - len(order) + 1:",
        PENDING,
    ),
    Plant(
        "partitions beyond a turn's share get no logs",
        "server/pending_partitions.py",
        "finally:\n    if self._order:\n        self._plan((self, _GO_ON))",
        "finally:\n    pass",
        PENDING,
    ),
    Plant(
        "a change of all partitions is adopted in one turn",
        "server/partitions.py",
        "roles.add(topic, index)",
        "self._take(image, topic, index, state)",
        ROLES,
    ),
    Plant(
        "any change wakes those who wait for whatever partition is followed",
        "server/broker.py",
        "*self.partitions.not_led_among(delta.partitions)",
        "*(self.partitions.not_led_here if delta.partitions else ())",
        ROLES,
    ),
    Plant(
        "who asks for a partition that waits for its role gets it as it was",
        "server/partitions.py",
        "elif self.roles.waiting and self.roles.take(topic, partition):",
        "elif False:",
        ROLES,
    ),
    Plant(
        "a partition adopts the state that it began to wait with",
        "server/partitions.py",
        "self._take(image, topic, index, image.topics[topic].partitions[index])\nlog = self._by_name[topic, index]",
        "state = image.topics[topic].partitions[index]\n"
        "if self._by_name[topic, index].replica.leader_epoch + 1 == state.leader_epoch:\n"
        "    self._take(image, topic, index, state)\n"
        "log = self._by_name[topic, index]",
        ROLES,
    ),
    Plant(
        "a partition that is deleted goes on waiting for its role",
        "server/partitions.py",
        "self.roles.take(topic, index)\nlog = self._by_id.pop",
        "log = self._by_id.pop",
        ROLES,
    ),
    Plant(
        "partitions wait for their roles when their broker has stopped",
        "server/partitions.py",
        "self.pending.finish()\nself.roles.finish()",
        "self.pending.finish()",
        ROLES,
    ),
    Plant(
        "the first partitions of a session starve the others",
        "handlers/fetch_follower.py",
        "session.partitions[key] = session.partitions.pop(key)",
        "pass",
        QUIET,
    ),
    Plant(
        "a follower waits at its leader although partitions are left to be looked at",
        "handlers/fetch_follower.py",
        "return rows, True",
        "return rows, enough",
        QUIET,
    ),
    Plant(
        "followers that are not in sync ask without a pause",
        "handlers/fetch_follower.py",
        "if not all(each.has_no_news(changes) for each in loud[AT_ONCE:]):",
        "if True:",
        QUIET,
    ),
    Plant(
        "the controller decides about all partitions of a broker in one step",
        "metadata/partition_changes.py",
        "if number % _AT_ONCE == 0:\n    yield",
        "",
        ("tests/metadata/test_registrations.py",),
    ),
    Plant(
        "a session between brokers is answered for all of its partitions",
        "handlers/fetch.py",
        "if partition.has_news(row) or self._full:",
        "if True:",
        ("tests/simulation/test_large_cluster.py",),
    ),
    Plant(
        "a slow disk holds the loop",
        "server/pending_partitions.py",
        "if self._now() >= deadline:\n    break",
        "",
        PENDING,
    ),
    Plant(
        "a changed min.insync.replicas counts after a restart",
        "server/partitions.py",
        "log.replica.settings_changed(min_insync_replicas=settings.min_insync_replicas)",
        "",
        MIN_INSYNC,
    ),
    Plant(
        "who waits at a leader that is none any more goes on waiting",
        "server/partitions.py",
        "if was_leader:\n    self._commits.fail(log, KafkaError(errors.NOT_LEADER_OR_FOLLOWER))",
        "",
        MIN_INSYNC,
    ),
    Plant(
        "folders of unknown topics stay",
        "server/partitions.py",
        "if loading and self._image is None:\n    self._put_strays_aside(image)",
        "",
        DELETED,
    ),
    Plant(
        "one topic more than the limit waits to be created",
        "server/auto_creation.py",
        "if len(self._waiting) >= MAX_WAITING:",
        "if len(self._waiting) > MAX_WAITING:",
        ("tests/server/test_auto_creation.py",),
    ),
    Plant(
        "topics beyond a turn's share are not created",
        "server/auto_creation.py",
        "if waiting:\n    self._node.runtime.timers.set((self, _GO_ON), self._node.runtime.now)",
        "",
        ("tests/server/test_auto_creation.py",),
    ),
    # Metadata.
    Plant(
        "a topic's creation is answered before its logs are there",
        "server/metadata_log.py",
        "if self._opens:",
        "if False:",
        PENDING,
    ),
    Plant(
        "who waits for a failed write of the metadata is not told",
        "server/metadata_log.py",
        "self.drop(left, failure)\n# Nothing",
        "# Nothing",
        METADATA_LOG,
    ),
    Plant(
        "the metadata is synced on the loop",
        "server/controller_node.py",
        "self.syncs_beside_loop = not self._is_stopping",
        "pass",
        METADATA_SYNCS,
    ),
    Plant(
        "brokers that are not here are named as alive",
        "server/controller_node.py",
        "if other.id != self.node_id:\n    self.submit(events.FenceBroker(other.id, other.epoch))",
        "pass",
        METADATA_LOG,
    ),
    Plant(
        "a log is synced while its copy is synced for the last time",
        "server/moves.py",
        "commits.postpone_syncs(move.log)",
        "pass",
        MOVES,
    ),
    Plant(
        "a repeated heartbeat is answered although its member has changed",
        "server/heartbeat_fast_path.py",
        "or group.members.get(member.member_id) is not member",
        "",
        HEARTBEATS,
    ),
    Plant(
        "a repeated heartbeat is answered before what its coordinator wrote is committed",
        "server/heartbeat_fast_path.py",
        "or not self._commits.is_settled(runner.log)",
        "",
        HEARTBEATS,
    ),
    Plant(
        "a repeated heartbeat extends no session",
        "server/heartbeat_fast_path.py",
        "group.deadlines[deadline] = session_ends",
        "pass",
        HEARTBEATS,
    ),
    Plant(
        "nobody hears that a block of producer ids has come",
        "server/producer_id_blocks.py",
        "self._broker.purgatory.touch(self)",
        "pass",
        METADATA_SYNCS,
    ),
    # Housekeeping and directories.
    Plant(
        "deletions end with the first few",
        "server/housekeeping.py",
        'self._runtime.logs.warning("storage", "delete-failed", reason=failure)\nself._remove_some()',
        'self._runtime.logs.warning("storage", "delete-failed", reason=failure)\nself._is_removing = False',
        DELETED,
    ),
    Plant(
        "a failed background sync is forgotten",
        "server/housekeeping.py",
        "job.failed(result)\nself._failed(job.log, directory, result)",
        "job.finish()",
        HOUSEKEEPING,
    ),
    Plant(
        "log starts are written as seldom as high watermarks",
        "server/housekeeping.py",
        "often = min(\nsettings.replica_high_watermark_checkpoint_interval_ms,\nsettings.log_flush_start_offset_checkpoint_interval_ms)",
        "often = settings.replica_high_watermark_checkpoint_interval_ms",
        HOUSEKEEPING,
    ),
    Plant(
        "a turn renames any number of folders",
        "server/housekeeping.py",
        "for _ in range(_RENAMES_PER_TURN):",
        "for _ in range(100 * _RENAMES_PER_TURN):",
        DELETED,
    ),
    Plant(
        "cordoned directories get new partitions",
        "server/directories.py",
        "free = [directory for directory in self.online if not self.is_cordoned(directory.path)]",
        "free = self.online",
        DIRECTORIES,
    ),
    Plant(
        "partitions go where the most are",
        "server/directories.py",
        "return min(free, key=lambda directory: len(directory.logs))",
        "return max(free, key=lambda directory: len(directory.logs))",
        DIRECTORIES,
    ),
    Plant(
        "two directories may have one id",
        "server/directories.py",
        "if len(set(known)) != len(known):",
        "if False:",
        DIRECTORIES,
    ),
    Plant(
        "a second copy of a partition stays",
        "server/directories.py",
        "other.remove_copy(topic, partition)",
        "pass",
        DIRECTORIES,
    ),
    Plant(
        "a lack of descriptors gives up the directory",
        "server/directories.py",
        "if not failure.is_passing and directory is not None",
        "if directory is not None",
        DIRECTORIES,
    ),
    Plant(
        "a broker without directories serves on",
        "server/directories.py",
        'self._runtime.fail("the last directory of log.dirs failed")',
        "pass",
        DIRECTORIES,
    ),
    # Broker and runtime.
    Plant(
        "the fast paths do not hear of changed settings",
        "server/broker.py",
        "self.forget_topics()\nif delta.acls:",
        "if delta.acls:",
        MIN_INSYNC,
    ),
    Plant(
        "sessions do not hear of new ACLs",
        "server/broker.py",
        "self.sessions.acls_changed()",
        "pass",
        SESSIONS,
    ),
    Plant(
        "a fetch waits on when half a request is behind it",
        "server/broker.py",
        "and delayed.operation.ends_early and connection.has_whole_frame():",
        "and delayed.operation.ends_early:",
        FETCH,
    ),
    Plant(
        "a request behind any that waits ends it",
        "server/broker.py",
        "if delayed is not None and delayed.operation.ends_early and connection.has_whole_frame():",
        "if delayed is not None and connection.has_whole_frame():",
        ("tests/server/test_broker.py",),
    ),
    Plant(
        "what could not be tried in a turn waits for the next event",
        "server/broker.py",
        "return 0.0 if self.purgatory.is_behind else self.purgatory.next_deadline()",
        "return self.purgatory.next_deadline()",
        ("tests/server/test_broker.py",),
    ),
    Plant(
        "a turn that is ended several times tries more than its limit",
        "server/broker.py",
        "self._waits_turn = self.runtime.turns",
        "pass",
        ("tests/server/test_broker.py",),
    ),
    Plant(
        "a stop does not wait for the syncs",
        "server/broker.py",
        "while self.commits.is_syncing:\n    self.runtime.offload.close()\n    self.commits.begin()",
        "",
        COMMIT_SYNCS,
    ),
    Plant(
        "the loop sleeps past the next timer",
        "server/runtime.py",
        "if timer_at is not None and timer_at < at:",
        "if False:",
        ("tests/server/test_runtime.py",),
    ),
    Plant(
        "the loop sleeps past the deadline of a node",
        "server/runtime.py",
        "if node_at is not None and node_at < at:",
        "if False:",
        ("tests/server/test_runtime.py",),
    ),
    Plant(
        "a bug in a timer ends the loop",
        "server/runtime.py",
        "try:\n    owner.fired(inner)\nexcept Exception as error:\n    self.unexpected(error, timer=inner)",
        "owner.fired(inner)",
        ("tests/server/test_runtime.py",),
    ),
    Plant(
        "what members are told at the stop does not leave",
        "server/runtime.py",
        "self.reactor.drain(lambda: deadline - self.clock.now())",
        "",
        STOP,
    ),
    Plant(
        "a job's result waits for the next event",
        "server/offload.py",
        "job, then = item\nself._results.append((then, outcome(job)))\nself._wake()",
        "job, then = item\nself._results.append((then, outcome(job)))",
        OFFLOAD,
    ),
    Plant(
        "results of the last jobs are lost in a stop",
        "server/offload.py",
        "self._thread = None\nself.finished()",
        "self._thread = None",
        OFFLOAD,
    ),
    Plant(
        "a bug in what follows a job ends the loop",
        "server/offload.py",
        "try:\n    then(result)\nexcept Exception as error:\n    self._failed(error)",
        "then(result)",
        OFFLOAD,
    ),
    Plant(
        "a job for which there is no thread is not done",
        "server/offload.py",
        "self._results.append((then, outcome(job)))\nself._wake()\nreturn",
        "return",
        OFFLOAD,
    ),
    Plant(
        "a shard is loaded without what was appended in the same turn",
        "server/coordinator_host.py",
        "log.write_pending()",
        "pass",
        ("tests/server/test_coordinator_host.py",),
    ),
    Plant(
        "a coordinator stays away after a full disk",
        "server/coordinator_host.py",
        "self._failed.pop(log.partition, None)\nself.follow()",
        "pass",
        ("tests/server/test_full_disk.py",),
    ),
    Plant(
        "a single broker begins in the directory of several",
        "server/directories.py",
        "if others:",
        "if False:",
        ("tests/server/test_directories.py",),
    ),
    # Commands on a cluster.
    Plant(
        "a drained broker's replica goes to a rack that has one",
        "cli/drain_plan.py",
        "(self._brokers[each].rack in racks, self._held[each], each)",
        "(self._held[each], each)",
        ("tests/cli/test_drain_plan.py",),
    ),
    Plant(
        "the replica that comes is the preferred leader at once",
        "cli/drain_plan.py",
        "self.replicas[place] = [*rest, taker]",
        "self.replicas[place] = [taker, *rest]",
        ("tests/cli/test_drain_plan.py",),
    ),
    Plant(
        "a broker that is drained still gets new replicas",
        "cli/cluster_moves.py",
        'return _set_cordoned(admin, broker, "*")',
        "return None",
        ("tests/cli/test_cluster.py",),
    ),
    Plant(
        "a replica that comes counts as lacking",
        "cli/cluster_state.py",
        "len(partition.replicas) - (0 if move is None else len(move.adding))",
        "len(partition.replicas)",
        ("tests/cli/test_cluster_state.py",),
    ),
    Plant(
        "a balance gives up a rack",
        "cli/balance_plan.py",
        "if self._keeps_racks(place, giver, taker):",
        "if True:",
        ("tests/cli/test_balance_plan.py",),
    ),
    Plant(
        "a balance leaves the preferred leaders where they are",
        "cli/balance_plan.py",
        "made.alternate()",
        "pass",
        ("tests/cli/test_balance_plan.py",),
    ),
)
