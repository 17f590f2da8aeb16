"""Snapshots of the data by IncrementalAlterConfigs and DescribeConfigs, so that every client's admin API can use them.

Actions have the form of settings of the broker resource. Setting `pykafkad.snapshot.create` to a name makes the
snapshot of that name. `pykafkad.snapshot.restore` restores everything from it, or one topic with `name:topic`.
`pykafkad.snapshot.delete` deletes it. `pykafkad.snapshots` lists all snapshots; DescribeConfigs answers it only if it
is asked for by name.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata.configs import SET
from pykafkad.metadata.image import TYPE_BROKER
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

    from pykafkad.handlers.context import Context

PREFIX = "pykafkad.snapshot."
LIST = "pykafkad.snapshots"


def are_meant(configs: Iterable[Any]) -> bool:
    """Whether the changes of a broker's settings contain an action."""
    return any(each.name.startswith(PREFIX) for each in configs)


def perform(ctx: Context, operations: list[tuple[str, int, str | None]], validate_only: bool, is_alone: bool) -> bool:
    """Perform one action, given as (name, operation, value). Returns whether the request is answered later.

    A restore of everything is answered by the broker that starts after it. `operations` is empty for a request that
    cannot contain an action. Raises KafkaError for several actions or resources, for an unknown action, while another
    action is under way, and for an action that is impossible.
    """
    if not operations:
        # As settings they would be stored, and no action would follow.
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
        # The restore would undo the action, or the action would delete the snapshot that is restored.
        raise KafkaError(
            errors.INVALID_REQUEST,
            f"the broker stops to go back to the snapshot {ctx.snapshots.restore_to}; ask again when it serves",
        )
    if ctx.snapshots.making is not None:
        raise KafkaError(
            errors.INVALID_REQUEST, f"the snapshot {ctx.snapshots.making} is being made; ask again when it is there"
        )
    return not validate_only and bool(act(ctx, value))


def answer(node_id: int, code: int, text: str | None) -> messages.IncrementalAlterConfigsResponse:
    """The answer to an action that ends after its request was served."""
    row = messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=code, error_message=text, resource_type=TYPE_BROKER, resource_name=str(node_id)
    )
    return messages.IncrementalAlterConfigsResponse(responses=[row])


def none_here(reason: str = "its metadata is that of controllers elsewhere") -> NoReturn:
    """In place of the snapshots of a broker that shares its metadata with other nodes. Raises KafkaError."""
    raise KafkaError(
        errors.INVALID_REQUEST,
        f"this broker has no snapshots of its data, as {reason}; `pykafkad serve --brokers 3`, also with --controllers "
        "and, on disk, with --processes, has them, and the directory of a cluster that is stopped can be copied",
    )


def none_of_one_topic(name: str, topic_name: str) -> NoReturn:
    """In place of the way back of one topic of several brokers. Raises KafkaError."""
    raise KafkaError(
        errors.INVALID_REQUEST,
        f"with several brokers a single topic ({topic_name}) does not go back alone; go back with everything: {name}",
    )


def _restore(ctx: Context, value: str) -> bool:
    name, colon, topic = value.partition(":")
    if colon:
        ctx.snapshots.rewind(name, topic, ctx.token)
    else:
        ctx.snapshots.restore(name, ctx)
    return True


_ACTIONS: dict[str, Callable[[Context, Any], object]] = {
    "create": lambda ctx, value: not ctx.snapshots.create(value, ctx.token),
    "restore": _restore,
    "delete": lambda ctx, value: ctx.snapshots.delete(value),
}
