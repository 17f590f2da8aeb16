"""The events of a `ShareStateShard`, besides `TopicsDeleted`, `Loaded` and `Resigned` (`events.py`) and `TimerFired`.

Each concerns one share partition: a group's share of one partition. `row` is the partition's row of the request. The
reply to `token` is the partition's row of the response. `is_known` says whether the partition exists."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Key = tuple[str, bytes, int]
    """Group id, topic id, partition."""


class _OfSharePartition:
    __slots__ = ("is_known", "key", "row", "token")

    def __init__(self, key: Key, row: Any, is_known: bool, token: object = None) -> None:
        self.key = key
        self.row = row
        self.is_known = is_known
        self.token = token

    def __repr__(self) -> str:
        return f"{type(self).__name__}(key={self.key!r}, row={self.row!r}, is_known={self.is_known})"


class InitializeState(_OfSharePartition):
    """The state begins anew, at an offset or at one that is not known yet."""

    __slots__ = ()


class ReadState(_OfSharePartition):
    """A leader of the partition takes the state over."""

    __slots__ = ()


class WriteState(_OfSharePartition):
    """The leader of the partition reports what changed."""

    __slots__ = ()


class DeleteState(_OfSharePartition):
    """The state is deleted."""

    __slots__ = ()


class ReadSummary(_OfSharePartition):
    """Somebody asks where the share partition stands."""

    __slots__ = ()
