"""The events that a replica of the metadata log is told of, and its effects beyond those of `pykafkad.effects`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.brokers import Endpoint

    Buffer = bytes | memoryview


class Start:
    """The log has been opened. It reaches from `start_offset` to `end_offset`, all of it on disk.

    `epochs` are pairs of an epoch and the offset at which it begins, both ascending. `snapshot` is the newest snapshot,
    which is there if the log does not begin at 0. `control_records` are the offsets and the messages of the control
    records in the log, before them those of the snapshot, at the offset of its last record: -1 for the snapshot that a
    directory is formatted with."""

    __slots__ = ("control_records", "end_offset", "epochs", "snapshot", "start_offset")

    def __init__(
        self,
        start_offset: int,
        end_offset: int,
        epochs: Sequence[tuple[int, int]],
        snapshot: Snapshot | None = None,
        control_records: Sequence[tuple[int, object]] = (),
    ) -> None:
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.epochs = epochs
        self.snapshot = snapshot
        self.control_records = control_records


class Tick:
    """Time has passed. Timeouts that are due take effect."""

    __slots__ = ()


class Received:
    """Another replica sent `request`. The answer goes to `token`."""

    __slots__ = ("request", "token")

    def __init__(self, token: object, request: object) -> None:
        self.token = token
        self.request = request


class Answered:
    """What became of the `request` with this `number` to `peer`: its response, or anything else for a failure."""

    __slots__ = ("number", "outcome", "peer", "request")

    def __init__(self, peer: int, number: int, request: object, outcome: object) -> None:
        self.peer = peer
        self.number = number
        self.request = request
        self.outcome = outcome


class Appended:
    """This node leads, and one batch of its own was written up to `end_offset`."""

    __slots__ = ("end_offset",)

    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset


class Synced:
    """What was written before the `Sync` with this `number` is on disk."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Resign:
    """The node gives up its leadership, if it has it."""

    __slots__ = ()


class UpgradeVersion:
    """Kraft.version is to be raised to `level`; with `validate_only` it is only asked whether that can be. `Upgraded`
    with the same `token` answers."""

    __slots__ = ("level", "token", "validate_only")

    def __init__(self, token: object, level: int, *, validate_only: bool = False) -> None:
        self.token = token
        self.level = level
        self.validate_only = validate_only


class Snapshot:
    """A snapshot of everything before `end_offset`, whose last record is of `epoch`. It is also the event that this
    node has made it; `begins_log` says that the log before it is gone."""

    __slots__ = ("begins_log", "end_offset", "epoch", "size_bytes")

    def __init__(self, end_offset: int, epoch: int, size_bytes: int, *, begins_log: bool = True) -> None:
        self.end_offset = end_offset
        self.epoch = epoch
        self.size_bytes = size_bytes
        self.begins_log = begins_log


class AppendControl:
    """Writes control records of this node as one batch in `epoch`, which it leads."""

    __slots__ = ("epoch", "records")

    def __init__(self, records: list[StoredRecord], epoch: int) -> None:
        self.records = records
        self.epoch = epoch


class AppendFetched:
    """Writes batches as the leader has them, up to `end_offset`."""

    __slots__ = ("end_offset", "records")

    def __init__(self, records: Buffer, end_offset: int) -> None:
        self.records = records
        self.end_offset = end_offset


class Truncate:
    """Cuts the log, which ends at `end_offset` from now on."""

    __slots__ = ("end_offset",)

    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset


class Locate:
    """Requests to `peer` go to `endpoints` from now on, until the voters in the log have others for it."""

    __slots__ = ("endpoints", "peer")

    def __init__(self, peer: int, endpoints: list[Endpoint]) -> None:
        self.peer = peer
        self.endpoints = endpoints


class Upgraded:
    """What became of an `UpgradeVersion`: an error code, and for people why."""

    __slots__ = ("error_code", "error_message", "token")

    def __init__(self, token: object, error_code: int, error_message: str | None) -> None:
        self.token = token
        self.error_code = error_code
        self.error_message = error_message


class Sync:
    """Begins a sync of the log. `Synced(number)` tells its end. One is under way at a time."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Committed:
    """The records before `end_offset` are committed: they can be applied."""

    __slots__ = ("end_offset",)

    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset


class ReplyWithRecords:
    """Answers a Fetch with the batches from `offset`, whole ones, and at least one even beyond `max_bytes`."""

    __slots__ = ("max_bytes", "message", "offset", "token")

    def __init__(self, token: object, message: object, offset: int, max_bytes: int) -> None:
        self.token = token
        self.message = message
        self.offset = offset
        self.max_bytes = max_bytes


class ReplyWithSnapshot:
    """Answers a FetchSnapshot with up to `max_bytes` of the snapshot at `end_offset` and `epoch`, from `position`."""

    __slots__ = ("end_offset", "epoch", "max_bytes", "message", "position", "token")

    def __init__(
        self, token: object, message: object, end_offset: int, epoch: int, position: int, max_bytes: int
    ) -> None:
        self.token = token
        self.message = message
        self.end_offset = end_offset
        self.epoch = epoch
        self.position = position
        self.max_bytes = max_bytes


class StoreSnapshot:
    """Writes `content` at `position` of a snapshot that is fetched.

    With `is_last` the snapshot is whole: it is synced and takes the place of the log, which is empty and begins at
    `end_offset`."""

    __slots__ = ("content", "end_offset", "epoch", "is_last", "position")

    def __init__(self, end_offset: int, epoch: int, position: int, content: Buffer, *, is_last: bool) -> None:
        self.end_offset = end_offset
        self.epoch = epoch
        self.position = position
        self.content = content
        self.is_last = is_last
