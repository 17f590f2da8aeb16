"""Snapshots of the data by way of IncrementalAlterConfigs and DescribeConfigs, so that every client's admin API can ask
for them.

They stand among the settings of the broker's own resource, and are actions: setting `pykafkad.snapshot.create` to a
name makes that snapshot; `pykafkad.snapshot.restore` goes back to it with everything, or with one topic for
`name:topic`; `pykafkad.snapshot.delete` removes it. `pykafkad.snapshots` is their list, which DescribeConfigs gives
when it is asked for by name."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata.configs import SET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pykafkad.handlers.context import Context

PREFIX = "pykafkad.snapshot."
LIST = "pykafkad.snapshots"


def are_meant(configs: Iterable[Any]) -> bool:
    """Whether these changes of a broker's settings, as they stand in the request, hold an action."""
    return any(each.name.startswith(PREFIX) for each in configs)


def perform(ctx: Context, operations: list[tuple[str, int, str | None]], validate_only: bool, is_alone: bool) -> bool:
    """Do one action, of (name, operation, value); whether the request is answered later, which for a way back the
    broker does that serves after it.

    Raises KafkaError for more than one action or resource, for an unknown action, while another is under way, and for
    what stands in its way. `operations` are none of a request that can't hold an action."""
    if not operations:
        # As settings they would be taken, and nothing be done.
        raise KafkaError(
            errors.INVALID_REQUEST,
            "a snapshot is asked for by IncrementalAlterConfigs, of the broker's resource by its id",
        )
    if len(operations) != 1 or not is_alone:
        raise KafkaError(errors.INVALID_REQUEST, "an action of a snapshot stands alone in its request")
    ((name, operation, value),) = operations
    act = _ACTIONS.get(name.removeprefix(PREFIX))
    if act is None or operation != SET:
        raise KafkaError(
            errors.INVALID_CONFIG, f"{name}: only SET of {', '.join(PREFIX + each for each in _ACTIONS)} is known"
        )
    if ctx.snapshots.restore_to is not None:
        # What was asked would be lost with everything since, or take away the very snapshot that is gone back to.
        raise KafkaError(
            errors.INVALID_REQUEST,
            f"the broker stops to go back to the snapshot {ctx.snapshots.restore_to}; ask again when it serves",
        )
    if ctx.snapshots.making is not None:
        raise KafkaError(
            errors.INVALID_REQUEST, f"the snapshot {ctx.snapshots.making} is being made; ask again when it is there"
        )
    return not validate_only and bool(act(ctx, value))


def _restore(ctx: Context, value: str) -> bool:
    name, colon, topic = value.partition(":")
    if colon:
        ctx.snapshots.rewind(name, topic)
    else:
        ctx.snapshots.restore(name, ctx)
    return not colon


_ACTIONS: dict[str, Callable[[Context, Any], object]] = {
    "create": lambda ctx, value: not ctx.snapshots.create(value, ctx.token),
    "restore": _restore,
    "delete": lambda ctx, value: ctx.snapshots.delete(value),
}
