"""Records that change a group of their type, which the first of them makes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypeVar

    from pykafkad.coordinator.group_types import Group
    from pykafkad.coordinator.shard import GroupShard

    class _NewGroup(Group, Protocol):
        def __init__(self, group_id: str) -> None: ...

    G = TypeVar("G", bound=_NewGroup)
    Apply = Callable[[GroupShard, Any, Any], None]
    """Applies key and value of a record (None for a tombstone) to a shard."""


def of_group(group_class: type[G], change: Callable[[G, Any, Any], None]) -> Apply:
    """`change` gets the group, key and value. A tombstone makes no group, and is ignored where there is none."""

    def apply(shard: GroupShard, key: Any, value: Any) -> None:
        group = shard.groups.get(key.group_id)
        if not isinstance(group, group_class):
            if value is None:
                return
            group = shard.groups[key.group_id] = group_class(key.group_id)
        change(group, key, value)

    return apply


def group_itself(group_class: type[G], change: Callable[[G, Any, Any], None]) -> Apply:
    """The same for the record of the group itself: its tombstone deletes the group."""
    apply_value = of_group(group_class, change)

    def apply(shard: GroupShard, key: Any, value: Any) -> None:
        if value is not None:
            apply_value(shard, key, value)
        elif isinstance(shard.groups.get(key.group_id), group_class):
            del shard.groups[key.group_id]

    return apply
