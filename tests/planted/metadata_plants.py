"""Bugs to plant in `pykafkad/metadata`."""

from __future__ import annotations

from tests.planted.plant import Plant

QUORUM = ("tests/metadata/test_quorum.py",)
TOPICS = ("tests/metadata/test_controller.py", "tests/metadata/test_placement.py")
CONFIGS = ("tests/metadata/test_configs.py",)
IMAGE = ("tests/metadata/test_image.py", "tests/metadata/test_replay.py")
SNAPSHOTS = ("tests/metadata/test_snapshots.py",)
BROKERS = ("tests/metadata/test_registrations.py", "tests/metadata/test_controller.py")
REASSIGNMENTS = ("tests/metadata/test_reassignments.py",)
ELECTIONS = ("tests/server/test_periodic_elections.py",)
CODEC = ("tests/metadata/test_record_codec.py",)

PLANTS = (
    Plant(
        "another release has every feature of this one",
        "metadata/features.py",
        "return SUPPORTED if settings.release is None else settings.release.features",
        "return SUPPORTED",
        ("tests/server/test_act_as.py",),
    ),
    Plant(
        "another release has every version of an API",
        "handlers/table.py",
        "first, low, high = found",
        "first, low, high = found[0], found[1], row.max_version",
        ("tests/server/test_act_as.py",),
    ),
    # Quorum.
    Plant(
        "records of older epochs are committed alone",
        "metadata/quorum.py",
        "if offset > self._epoch_start_offset and offset > self.high_watermark:",
        "if offset > self.high_watermark:",
        QUORUM,
    ),
    Plant(
        "the vote of an observer counts",
        "metadata/quorum.py",
        "len(self._granted & {voter.id for voter in self.voters})",
        "len(self._granted)",
        QUORUM,
    ),
    Plant(
        "a vote of an older epoch counts",
        "metadata/quorum.py",
        "if event.epoch < self.epoch or self.state != asked or not event.granted:",
        "if self.state != asked or not event.granted:",
        QUORUM,
    ),
    Plant(
        "a granted pre-vote counts as a vote",
        "metadata/quorum.py",
        "if event.epoch < self.epoch or self.state != asked or not event.granted:",
        "if event.epoch < self.epoch or not event.granted:",
        QUORUM,
    ),
    Plant(
        "a node votes for itself before it has stored that",
        "metadata/quorum.py",
        "return [self._persist(), *self._count_vote(self.node_id, now)]",
        "return [*self._count_vote(self.node_id, now), self._persist()]",
        QUORUM,
    ),
    Plant(
        "half of the voters are a majority",
        "metadata/voters.py",
        "return len(voters) // 2 + 1",
        "return (len(voters) + 1) // 2",
        QUORUM,
    ),
    Plant(
        "a restarted leader may vote in its old epoch",
        "metadata/quorum.py",
        "elif self.leader_id == self.node_id:",
        "elif False:",
        QUORUM,
    ),
    # Topics.
    Plant(
        "every partition begins at the same rack",
        "metadata/placement.py",
        "self.turn += 1\nself.offset += 1",
        "self.turn += 1",
        TOPICS,
    ),
    Plant(
        "a broker whose directories are all cordoned gets replicas",
        "metadata/placement.py",
        "and not (broker.log_dirs and set(broker.log_dirs) <= set(broker.cordoned_log_dirs))",
        "",
        TOPICS,
    ),
    Plant(
        "a topic whose name collides is created",
        "metadata/creation.py",
        "if colliding is not None:",
        "if False:",
        TOPICS,
    ),
    Plant(
        "a fenced broker leads a new partition",
        "metadata/creation.py",
        "leader=isr[0]",
        "leader=replicas[0]",
        TOPICS,
    ),
    Plant(
        "a topic with the metadata log's name is created",
        "metadata/creation.py",
        "if name == CLUSTER_METADATA_TOPIC:",
        "if False:",
        TOPICS,
    ),
    Plant(
        "a dry run creates topics",
        "metadata/controller.py",
        "return _finish(event.token, [] if event.validate_only else changes.records, response)",
        "return _finish(event.token, changes.records, response)",
        TOPICS,
    ),
    Plant(
        "a request for any number of partitions is accepted",
        "metadata/creation.py",
        "if total > MAX_PARTITIONS_PER_REQUEST:",
        "if False:",
        TOPICS,
    ),
    Plant(
        "a block of producer ids is assigned twice",
        "metadata/controller.py",
        "next_producer_id=first + PRODUCER_ID_BLOCK_SIZE",
        "next_producer_id=first",
        TOPICS,
    ),
    # Settings.
    Plant(
        "a refused resource changes all the same",
        "metadata/configs.py",
        (
            "self._check(resource_type, name, changed, current)\n"
            "for key, value in changed.items():\n"
            "    self.records.append(record(resource_type, name, key, value))"
        ),
        (
            "for key, value in changed.items():\n"
            "    self.records.append(record(resource_type, name, key, value))\n"
            "self._check(resource_type, name, changed, current)"
        ),
        CONFIGS,
    ),
    Plant(
        "APPEND adds an item that is in the list",
        "metadata/configs.py",
        "if operation == APPEND and item not in items:",
        "if operation == APPEND:",
        CONFIGS,
    ),
    Plant(
        "AlterConfigs keeps settings that it does not name",
        "metadata/configs.py",
        "wanted.update((key, None) for key in current if key not in operations)",
        "",
        CONFIGS,
    ),
    # Image.
    Plant(
        "a deleted topic leaves its settings",
        "metadata/image.py",
        "image._configs.pop((TYPE_TOPIC, topic.name), None)",
        "",
        IMAGE,
    ),
    Plant(
        "records of an aborted transaction take effect",
        "metadata/image.py",
        'if name == "EndTransactionRecord":',
        'if name in ("EndTransactionRecord", "AbortTransactionRecord"):',
        IMAGE,
    ),
    Plant(
        "naming the same leader starts no leader epoch",
        "metadata/topics.py",
        "self.leader = record.leader\nself.leader_epoch += 1",
        "self.leader_epoch += self.leader != record.leader\nself.leader = record.leader",
        ("tests/metadata/test_topics.py",),
    ),
    Plant(
        "a collision is not seen after a topic is deleted",
        "metadata/image.py",
        "names.discard(topic.name)\nif not names:",
        "names.clear()\nif not names:",
        TOPICS,
    ),
    # Snapshots.
    Plant(
        "a snapshot has partitions as they are when it ends",
        "metadata/snapshots.py",
        "if state not in self._before:",
        "if False:",
        SNAPSHOTS,
    ),
    Plant(
        "a partition that changes twice is in the snapshot as it is in between",
        "metadata/snapshots.py",
        "if state not in self._before:",
        "if True:",
        SNAPSHOTS,
    ),
    Plant(
        "a snapshot without its footer is read",
        "metadata/snapshots.py",
        "if not finished:",
        "if False:",
        SNAPSHOTS,
    ),
    # Brokers and partitions.
    Plant(
        "a broker serves clients before it is ready",
        "metadata/registrations.py",
        "fenced=True,",
        "fenced=False,",
        BROKERS,
    ),
    Plant(
        "the epoch of a broker is not the offset of its registration",
        "metadata/registrations.py",
        "broker_epoch=image.offset + 1 + len(records)",
        "broker_epoch=image.offset + 1",
        BROKERS,
    ),
    Plant(
        "a broker that stopped uncleanly stays in the ISR",
        "metadata/registrations.py",
        "if existing is not None and event.previous_broker_epoch != existing.epoch:",
        "if False:",
        BROKERS,
    ),
    Plant(
        "a broker that lost records stays eligible",
        "metadata/partition_changes.py",
        "if replica not in self.isr and replica != self.lost]",
        "if replica not in self.isr]",
        BROKERS,
    ),
    Plant(
        "every election may be unclean",
        "metadata/partition_changes.py",
        "if self.election == UNCLEAN:",
        "if True:",
        BROKERS,
    ),
    # Reassignments.
    Plant(
        "a reassignment ends before its new replicas are in sync",
        "metadata/partition_changes.py",
        "if not isr or not replicas or not set(self.adding) <= set(isr):",
        "if not isr or not replicas:",
        REASSIGNMENTS,
    ),
    Plant(
        "a removed replica does not start a leader epoch",
        "metadata/partition_changes.py",
        "if record.leader == NO_LEADER_CHANGE and not set(state.replicas) <= set(self.replicas):",
        "if False:",
        REASSIGNMENTS,
    ),
    Plant(
        "a cancelled reassignment leaves new replicas in the ISR",
        "metadata/reassignments.py",
        "change.isr = [broker for broker in state.isr if broker not in state.adding_replicas]",
        "change.isr = list(state.isr)",
        REASSIGNMENTS,
    ),
    # Records.
    Plant(
        "a level's own records are written as those of the level before",
        "metadata/record_codec.py",
        "if since <= level)",
        "if since < level)",
        CODEC,
    ),
    Plant(
        "bytes after a record are ignored",
        "metadata/record_codec.py",
        "message, end = decoder(value, position)\nif end != len(value):",
        "message, end = decoder(value, position)\nif False:",
        CODEC,
    ),
    # Access, quotas, credentials, features.
    Plant(
        "a prefix applies to every name",
        "metadata/acls.py",
        "return name.startswith(entry.resource_name)",
        "return True",
        ("tests/metadata/test_acls.py",),
    ),
    Plant(
        "a strict filter takes entities with further parts",
        "metadata/client_quotas.py",
        "if strict and len(names) != len(wanted):",
        "if False:",
        ("tests/metadata/test_client_quotas.py",),
    ),
    Plant(
        "credentials with too few iterations are stored",
        "metadata/credentials.py",
        "if change.iterations < MIN_ITERATIONS:",
        "if False:",
        ("tests/metadata/test_credentials.py",),
    ),
    Plant(
        "an upgrade lowers the level of a feature",
        "metadata/feature_updates.py",
        "elif level < current and upgrade_type == UPGRADE:",
        "elif False:",
        ("tests/handlers/test_update_features.py",),
    ),
    # Elections that the controller begins by itself.
    Plant(
        "leaders never go back to the preferred replica",
        "metadata/elections.py",
        "if state.leader == state.replicas[0] if election == PREFERRED else state.leader != NO_LEADER:\n                continue",
        "if state.leader != NO_LEADER:\n                continue",
        ELECTIONS,
    ),
    Plant(
        "the controller elects uncleanly where the topic does not allow it",
        "metadata/elections.py",
        "if election == UNCLEAN and not topic_settings.unclean_leader_election_enable:",
        "if False:",
        ELECTIONS,
    ),
    Plant(
        "what one change of leaders leaves is not elected in the same check",
        "server/periodic_elections.py",
        "if count == MAX_ELECTIONS_PER_CHANGE:",
        "if False:",
        ELECTIONS,
    ),
)
