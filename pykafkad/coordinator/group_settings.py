"""The settings of one group: its own where it has some, else the broker's."""

from __future__ import annotations

from pykafkad.settings.rows import GROUP

TYPE_GROUP = 32
"""The type of config resource whose name is a group id."""

BOUNDS = {
    "consumer_session_timeout_ms": (
        "group_consumer_min_session_timeout_ms",
        "group_consumer_max_session_timeout_ms",
    ),
    "consumer_heartbeat_interval_ms": (
        "group_consumer_min_heartbeat_interval_ms",
        "group_consumer_max_heartbeat_interval_ms",
    ),
    "consumer_assignment_interval_ms": (
        "group_consumer_min_assignment_interval_ms",
        "group_consumer_max_assignment_interval_ms",
    ),
    "share_session_timeout_ms": (
        "group_share_min_session_timeout_ms",
        "group_share_max_session_timeout_ms",
    ),
    "share_heartbeat_interval_ms": (
        "group_share_min_heartbeat_interval_ms",
        "group_share_max_heartbeat_interval_ms",
    ),
    "share_assignment_interval_ms": (
        "group_share_min_assignment_interval_ms",
        "group_share_max_assignment_interval_ms",
    ),
    "streams_session_timeout_ms": (
        "group_streams_min_session_timeout_ms",
        "group_streams_max_session_timeout_ms",
    ),
    "streams_heartbeat_interval_ms": (
        "group_streams_min_heartbeat_interval_ms",
        "group_streams_max_heartbeat_interval_ms",
    ),
    "streams_assignment_interval_ms": (
        "group_streams_min_assignment_interval_ms",
        "group_streams_max_assignment_interval_ms",
    ),
    "share_delivery_count_limit": (
        "group_share_min_delivery_count_limit",
        "group_share_max_delivery_count_limit",
    ),
    "share_partition_max_record_locks": (
        "group_share_min_partition_max_record_locks",
        "group_share_max_partition_max_record_locks",
    ),
    "share_record_lock_duration_ms": (
        "group_share_min_record_lock_duration_ms",
        "group_share_max_record_lock_duration_ms",
    ),
}
"""Setting of a group to the broker's settings that bound it."""

UPPER_BOUNDS = {"streams_num_standby_replicas": "group_streams_max_standby_replicas"}
"""The same for settings without a lower bound. Those that are in neither table have no bounds."""

_INTERVALS = frozenset(f"{kind}_assignment_interval_ms" for kind in ("consumer", "share", "streams"))
"""Releases before Kafka 4.3 do not have them, and assign at once."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.coordinator.shard import GroupShard


def number(shard: GroupShard, group_id: str, name: str) -> int:
    """The value of a setting such as `consumer_session_timeout_ms`. A value that the group was given before the
    broker's bounds were moved is moved with them."""
    settings = shard.settings
    own = {} if shard.metadata is None else shard.metadata.configs(TYPE_GROUP, group_id)
    text = own.get(name.replace("_", ".")) if own else None
    if text is None:
        if settings.release is not None and name in _INTERVALS and name.replace("_", ".") not in settings.rows[GROUP]:
            return 0
        broker_value: int = getattr(settings, f"group_{name}")
        return broker_value
    if name not in BOUNDS:
        most = UPPER_BOUNDS.get(name)
        return int(text) if most is None else min(int(text), getattr(settings, most))
    least, most = BOUNDS[name]
    value: int = min(max(int(text), getattr(settings, least)), getattr(settings, most))
    return value
