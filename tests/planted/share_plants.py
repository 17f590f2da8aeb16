"""Bugs to plant in what `pykafkad` has of share groups."""

from __future__ import annotations

from tests.planted.plant import Plant

PARTITION = ("tests/coordinator/test_share_partition.py",)
STATE = ("tests/coordinator/test_share_state.py",)
FETCH = ("tests/handlers/test_share_fetch.py",)
ACKNOWLEDGE = ("tests/handlers/test_share_acknowledge.py",)
HEARTBEAT = ("tests/handlers/test_share_group_heartbeat.py",)

PLANTS = (
    Plant(
        "a record is delivered more often than the limit",
        "coordinator/share_in_flight.py",
        "return ARCHIVED if state == AVAILABLE and self.delivery_count >= max_delivery_count else state",
        "return state",
        PARTITION,
    ),
    Plant(
        "a record whose acknowledgement is being stored can be acquired",
        "coordinator/share_in_flight.py",
        "return self.state == AVAILABLE and self.transition is None",
        "return self.state == AVAILABLE or self.transition is not None",
        PARTITION,
    ),
    Plant(
        "a member acknowledges what another has",
        "coordinator/share_acknowledgement.py",
        "if owner != member_id:",
        "if False:",
        PARTITION,
    ),
    Plant(
        "a write that fails counts as stored",
        "coordinator/share_in_flight.py",
        "if is_stored or self.is_archived:",
        "if True:",
        PARTITION,
    ),
    Plant(
        "the start offset passes records that are being acknowledged",
        "coordinator/share_in_flight.py",
        "return self.state in TERMINAL and self.transition is None",
        "return self.state in TERMINAL",
        PARTITION,
    ),
    Plant(
        "locks never run out",
        "coordinator/share_partition.py",
        "if piece.lock_deadline > now:",
        "if True:",
        PARTITION,
    ),
    Plant(
        "any number of records is in flight",
        "coordinator/share_partition.py",
        "free = self.limits.max_record_locks - self.records_in_flight",
        "free = 1_000_000",
        PARTITION,
    ),
    Plant(
        "the older of two overlapping ranges wins",
        "coordinator/share_batches.py",
        "winner = max(piece, batch, key=lambda each: each.rank)",
        "winner = min(piece, batch, key=lambda each: each.rank)",
        STATE,
    ),
    Plant(
        "a leader of before still writes",
        "coordinator/share_state.py",
        "return epoch != NO_EPOCH and highest is not None and highest > epoch",
        "return False",
        STATE,
    ),
    Plant(
        "there is never a second snapshot",
        "coordinator/share_state.py",
        "if state.updates >= self._updates_per_snapshot:",
        "if False:",
        STATE,
    ),
    Plant(
        "records that a snapshot still needs are pruned",
        "coordinator/share_state.py",
        "return min(\n    (state.snapshot_offset for state",
        "return max(\n    (state.snapshot_offset for state",
        STATE,
    ),
    Plant(
        "a session continues with any epoch",
        "handlers/share_fetch.py",
        "if session.epoch != request.share_session_epoch:",
        "if False:",
        FETCH,
    ),
    Plant(
        "a connection that ends keeps its records",
        "server/share_groups.py",
        "for group_id, member_id in self.sessions.of_connection(connection_id):",
        "for group_id, member_id in ():",
        FETCH,
    ),
    Plant(
        "an unknown type of acknowledgement is taken",
        "handlers/share_acknowledgements.py",
        "if min(types) < 0 or max(types) > highest_type or (RENEW in types and not is_renewal):",
        "if min(types) < 0 or (RENEW in types and not is_renewal):",
        (*ACKNOWLEDGE, *PARTITION),
    ),
    Plant(
        "a member with an epoch that was never given is served",
        "coordinator/share_heartbeat.py",
        "if epoch > member.epoch:",
        "if False:",
        HEARTBEAT,
    ),
    Plant(
        "partitions are assigned before their state has begun",
        "coordinator/share_heartbeat.py",
        "if not must_bump and not group.topics_changed:",
        "if True:",
        HEARTBEAT,
    ),
    Plant(
        "a group is deleted without its state",
        "coordinator/share_offsets.py",
        "topics = {} if group.members else _topics_with_state(shard, group)",
        "topics = {}",
        ("tests/coordinator/test_share_group.py",),
    ),
    Plant(
        "an error of a share partition stays",
        "server/share_groups.py",
        "if not led.error:",
        "if True:",
        FETCH,
    ),
)
