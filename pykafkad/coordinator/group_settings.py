"""The settings of one group: its own where it has some, else the broker's."""

from __future__ import annotations

TYPE_GROUP = 32
"""The type of config resource whose name is a group id."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.coordinator.shard import GroupShard


def number(shard: GroupShard, group_id: str, name: str) -> int:
    """The value of a number such as `consumer.session.timeout.ms`. A value that the group was given before the broker's
    bounds (`group.consumer.min.session.timeout.ms`) were moved is moved with them."""
    settings = shard.settings
    text = None if shard.metadata is None else shard.metadata.configs(TYPE_GROUP, group_id).get(name)
    if text is None:
        broker_value: int = getattr(settings, "group_" + name.replace(".", "_"))
        return broker_value
    kind, _, rest = name.replace(".", "_").partition("_")
    least = getattr(settings, f"group_{kind}_min_{rest}", None)
    most = getattr(settings, f"group_{kind}_max_{rest}", None)
    value = int(text)
    if least is not None:
        value = max(value, least)
    return value if most is None else min(value, most)
