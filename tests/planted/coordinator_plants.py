"""Bugs to plant in `pykafkad/coordinator`."""

from __future__ import annotations

from tests.planted.plant import Plant

MEMBERS = ("tests/coordinator/test_join.py", "tests/coordinator/test_sync_heartbeat_leave.py")
OFFSETS = ("tests/coordinator/test_offsets.py",)
LOADING = ("tests/coordinator/test_loading.py",)
PENDING = ("tests/coordinator/test_pending_offsets.py",)
REPLACED = ("tests/coordinator/test_replaced_coordinator.py",)
TRANSACTIONS = ("tests/coordinator/test_transactions.py", "tests/coordinator/test_transaction_properties.py")
TRANSACTION_LOG = ("tests/coordinator/test_transaction_records.py",)
CODEC = ("tests/coordinator/test_record_codec.py",)

PLANTS = (
    # Members.
    Plant(
        "a heartbeat does not extend the session",
        "coordinator/membership.py",
        "step.expect_heartbeat(group, group.members[request.member_id])",
        "pass",
        MEMBERS,
    ),
    Plant(
        "a fenced static member is accepted",
        "coordinator/classic_group.py",
        "if known != member_id:\n    return FENCED_INSTANCE_ID",
        "",
        MEMBERS,
    ),
    Plant(
        "a member of any generation is accepted",
        "coordinator/classic_group.py",
        "return NONE if generation == self.generation else ILLEGAL_GENERATION",
        "return NONE",
        MEMBERS,
    ),
    Plant(
        "a group has no maximal size",
        "coordinator/membership.py",
        "if group.state is EMPTY or len(group.members) < limit:",
        "if True:",
        MEMBERS,
    ),
    Plant(
        "a group gives out any number of member ids",
        "coordinator/membership.py",
        "if not member_id and len(group.pending_joins) >= MAX_PENDING_JOINS:",
        "if False:",
        MEMBERS,
    ),
    Plant(
        "a new member whose answer is delayed never expires",
        "coordinator/member.py",
        "return not self.is_new and (self",
        "return (self",
        MEMBERS,
    ),
    Plant(
        "a follower that joins a stable group again gets no answer before a rebalance",
        "coordinator/membership.py",
        "(group.state is STABLE and group.leader_id != member.member_id)",
        "False",
        MEMBERS,
    ),
    Plant(
        "a leader that joins a stable group again starts no rebalance",
        "coordinator/membership.py",
        "(group.state is STABLE and group.leader_id != member.member_id)",
        "group.state is STABLE",
        MEMBERS,
    ),
    Plant(
        "requests that wait are not answered when the coordinator resigns",
        "coordinator/shard.py",
        "rebalance.answer_join(step, member, rebalance.join_error(errors.NOT_COORDINATOR, member.member_id))",
        "pass",
        MEMBERS,
    ),
    # Rebalances.
    Plant(
        "a dynamic member that has not joined stays in the group",
        "coordinator/rebalance.py",
        "if member.join_token is None and member.instance_id is None:",
        "if False:",
        MEMBERS,
    ),
    Plant(
        "a static member that has not joined is removed",
        "coordinator/rebalance.py",
        "if member.join_token is None and member.instance_id is None:",
        "if member.join_token is None:",
        MEMBERS,
    ),
    Plant(
        "a member that never fetches its assignment stays in the group",
        "coordinator/rebalance.py",
        "if group.pending_syncs and group.state in (COMPLETING_REBALANCE, STABLE):",
        "if False:",
        MEMBERS,
    ),
    Plant(
        "the initial delay ends when all members have joined",
        "coordinator/rebalance.py",
        "group.state is PREPARING_REBALANCE and group.previous_state is not EMPTY and group.has_all_joined()",
        "group.state is PREPARING_REBALANCE and group.has_all_joined()",
        MEMBERS,
    ),
    Plant(
        "new members do not extend the initial delay",
        "coordinator/rebalance.py",
        "if group.previous_state is EMPTY and group.new_member_added and group.remaining_delay_ms:",
        "if False:",
        MEMBERS,
    ),
    Plant(
        "assignments are sent before they are written",
        "coordinator/assignment.py",
        (
            "step.append([record])\n"
            "for member, content in members:\n"
            "    rebalance.answer_sync(step, group, member, sync_response(group, content))"
        ),
        (
            "for member, content in members:\n"
            "    rebalance.answer_sync(step, group, member, sync_response(group, content))\n"
            "step.append([record])"
        ),
        MEMBERS,
    ),
    # Offsets.
    Plant(
        "an offset of an earlier topic of the same name is returned",
        "coordinator/offsets.py",
        "NO_TOPIC_ID != topic.topic_id != committed.topic_id != NO_TOPIC_ID",
        "False",
        OFFSETS,
    ),
    Plant(
        "offsets of a later topic of the same name are deleted",
        "coordinator/offsets.py",
        "each.topic_id in known_ids and each.record_offset <= newest",
        "each.record_offset <= newest",
        OFFSETS,
    ),
    Plant(
        "offsets of subscribed topics expire",
        "coordinator/offsets.py",
        "if not subscribed and _is_expired(",
        "if _is_expired(",
        OFFSETS,
    ),
    Plant(
        "the retention time begins with the commit while the group has members",
        "coordinator/offsets.py",
        "committed.commit_timestamp_ms if since_ms is None else since_ms",
        "committed.commit_timestamp_ms",
        OFFSETS,
    ),
    Plant(
        "a commit during a rebalance is accepted",
        "coordinator/classic_group.py",
        "return errors.REBALANCE_IN_PROGRESS if self.state is COMPLETING_REBALANCE else NONE",
        "return NONE",
        OFFSETS,
    ),
    Plant(
        "metadata that is too long is committed",
        "coordinator/offsets.py",
        "if not too_long:",
        "if True:",
        OFFSETS,
    ),
    Plant(
        "a commit does not keep the session alive",
        "coordinator/shard.py",
        "if isinstance(group, ClassicGroup) and request.member_id in group.members:",
        "if False:",
        OFFSETS,
    ),
    # Loading and the log.
    Plant(
        "offsets of an aborted transaction take effect",
        "coordinator/loading.py",
        "if any(record.key == _COMMIT for record in records):",
        "if True:",
        LOADING,
    ),
    Plant(
        "offsets of an open transaction take effect",
        "coordinator/loading.py",
        "elif header.is_transactional:",
        "elif False:",
        LOADING,
    ),
    Plant(
        "the record that took effect last wins, whatever its offset is",
        "coordinator/loading.py",
        "elif known is not None and known[0] >= offset:",
        "elif False:",
        LOADING,
    ),
    Plant(
        "the marker of an aborted transaction commits its offsets",
        "coordinator/offsets.py",
        "if is_commit and (known is None",
        "if (known is None",
        PENDING,
    ),
    Plant(
        "the offset of a transaction replaces a later one",
        "coordinator/offsets.py",
        "or ended.record_offset > known.record_offset)",
        "or True)",
        PENDING,
    ),
    Plant(
        "a deleted offset comes back with the end of a transaction",
        "coordinator/offsets.py",
        "self.pending.forget(key.group, key.topic, key.partition)",
        "pass",
        PENDING,
    ),
    Plant(
        "a group with pending offsets expires",
        "coordinator/offsets.py",
        "nothing_left = self.pending is None or not self.pending.places(group.group_id)",
        "nothing_left = True",
        PENDING,
    ),
    Plant(
        "an aborted record is newer than one that takes effect",
        "coordinator/loading.py",
        "offset, value = (_NEVER if known is None else known[0]), None",
        "value = None",
        ("tests/coordinator/test_properties.py",),
    ),
    Plant(
        "the sign bit of a hash is cleared",
        "coordinator/partitioning.py",
        "(0 if value == -0x8000_0000 else abs(value))",
        "(value & 0x7FFF_FFFF)",
        CODEC,
    ),
    Plant(
        "an id beyond the block of producer ids is given out",
        "coordinator/producer_ids.py",
        "if self.next_id == self.end_id:",
        "if self.next_id > self.end_id:",
        CODEC,
    ),
    Plant(
        "an offset with an expiry time is written without it",
        "coordinator/record_codec.py",
        "elif value.expire_timestamp != NO_TIMESTAMP:",
        "elif False:",
        OFFSETS,
    ),
    # Transactions.
    Plant(
        "an end that is asked for again is promised without a record",
        "coordinator/transaction_shard.py",
        "return [self._append(transaction.repeat(now_ms)), _end_answer(event, NO_PRODUCER_ID, NO_EPOCH)]",
        "return [_end_answer(event, NO_PRODUCER_ID, NO_EPOCH)]",
        REPLACED,
    ),
    Plant(
        "a second producer of a transactional id gets the first one's epoch",
        "coordinator/transaction_shard.py",
        "producer_id, epoch, last = transaction.producer_id, current + 1, NO_EPOCH",
        "producer_id, epoch, last = transaction.producer_id, max(current, 0), NO_EPOCH",
        TRANSACTIONS,
    ),
    Plant(
        "the coordinator's own abort does not fence the producer",
        "coordinator/transaction_shard.py",
        "epoch = min(transaction.producer_epoch + 1, MAX_EPOCH)\nnext_id, version",
        "epoch = transaction.producer_epoch\nnext_id, version",
        TRANSACTIONS,
    ),
    Plant(
        "a fenced producer may add partitions",
        "coordinator/transaction_rules.py",
        "if transaction.producer_epoch != epoch:",
        "if transaction.producer_epoch < epoch:",
        TRANSACTIONS,
    ),
    Plant(
        "a producer that goes on before the markers are written is fenced",
        "coordinator/transaction_rules.py",
        "if transaction is not None and transaction.state in PREPARED:",
        "if False:",
        TRANSACTIONS,
    ),
    Plant(
        "a transaction is complete when the first markers are written",
        "coordinator/transaction_shard.py",
        "if left:\n    pause",
        "if False:\n    pause",
        TRANSACTIONS,
    ),
    Plant(
        "a prepared transaction is not completed after a load",
        "coordinator/transaction_shard.py",
        "effects.append(self._markers(transaction))",
        "pass",
        TRANSACTIONS,
    ),
    Plant(
        "a late outcome of earlier markers ends the next transaction",
        "coordinator/transaction_shard.py",
        "if (transaction.producer_id, transaction.producer_epoch) != (event.producer_id, event.producer_epoch):",
        "if False:",
        TRANSACTIONS,
    ),
    Plant(
        "an end may be repeated with the other outcome",
        "coordinator/transaction_states.py",
        "(COMPLETE_COMMIT, False): _WRONG,",
        "(COMPLETE_COMMIT, False): _DONE,",
        TRANSACTIONS,
    ),
    Plant(
        "the producer of the last epoch goes on with it",
        "coordinator/transaction.py",
        "producer_id, epoch = self.next_producer_id, 0",
        "pass",
        TRANSACTIONS,
    ),
    Plant(
        "open transactions are not looked for after a load",
        "coordinator/transaction_shard.py",
        "if any(transaction.state is ONGOING for transaction in self.transactions.values()):",
        "if False:",
        TRANSACTIONS,
    ),
    Plant(
        "an id with an open transaction is forgotten",
        "coordinator/transaction_shard.py",
        "if transaction.state in EXPIRING and transaction.update_ms <= since_ms",
        "if transaction.update_ms <= since_ms",
        TRANSACTIONS,
    ),
    Plant(
        "partitions that are added later push out the first ones",
        "coordinator/transaction.py",
        "{**self.partitions, **dict.fromkeys(partitions)}",
        "dict.fromkeys(partitions)",
        TRANSACTIONS,
    ),
    Plant(
        "the start of a transaction moves with each partition",
        "coordinator/transaction.py",
        "start_ms = self.start_ms if self.state is ONGOING else now_ms\nreturn self._transition(\n    ONGOING,",
        "start_ms = now_ms\nreturn self._transition(\n    ONGOING,",
        TRANSACTIONS,
    ),
    Plant(
        "a record of transaction version 0 holds the later fields",
        "coordinator/transaction_records.py",
        "version = min(transaction_version, _LATEST_VERSION)",
        "version = _LATEST_VERSION",
        TRANSACTION_LOG,
    ),
)
