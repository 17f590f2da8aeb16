"""AlterConfigs, versions 0 to 2 (IncrementalAlterConfigs has replaced it).

Gives a resource exactly the settings of the request: settings that the request does not name are removed. Each resource
has its own result and is changed as a whole or not at all. `validate_only` checks and changes nothing. A resource or a
setting given twice, a null value, and another broker's id are INVALID_REQUEST. Broker loggers cannot be changed with
this API.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers import broker_loggers, snapshot_actions
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.context import DEFERRED
from pykafkad.handlers.operations import CONFIG_RESOURCES, config_refusal, node_id_in
from pykafkad.metadata.configs import DELETE, OPERATION_NAMES, SET, TYPE_BROKER_LOGGER, TYPE_GROUP
from pykafkad.metadata.events import AlterConfigs
from pykafkad.metadata.image import TYPE_BROKER
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.handlers.context import Context
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: Context | ControllerContext, request: messages.AlterConfigsRequest) -> object:
    """Submits the valid changes to the controller."""
    return alter(ctx, request, incremental=False)


def alter(
    ctx: Context | ControllerContext,
    request: messages.AlterConfigsRequest | messages.IncrementalAlterConfigsRequest,
    *,
    incremental: bool,
) -> object:
    """The common part of both alter APIs: the checks of the request, and results in its order."""
    response = messages.IncrementalAlterConfigsResponse if incremental else messages.AlterConfigsResponse
    counts: dict[tuple[int, str], int] = {}
    resources: list[Any] = request.resources
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        counts[key] = counts.get(key, 0) + 1
    changes: list[tuple[int, str, Any]] = []
    finished: dict[int, object] = {}
    for position, resource in enumerate(resources):
        kind, name = resource.resource_type, resource.resource_name
        code, text = errors.NONE, None
        try:
            if counts[kind, name] > 1:
                raise KafkaError(errors.INVALID_REQUEST, "Each resource must appear at most once.")
            operations = _operations(resource, incremental)
            _check(ctx, kind, name, incremental)
            if kind == TYPE_BROKER and not ctx.on_controller and snapshot_actions.are_meant(resource.configs):
                is_alone = len(request.resources) == 1
                if snapshot_actions.perform(
                    ctx, operations if incremental and name else [], request.validate_only, is_alone
                ):
                    return DEFERRED
            elif kind != TYPE_BROKER_LOGGER:
                if kind == TYPE_BROKER and incremental:
                    _check_known(operations)
                if kind == TYPE_BROKER and name and not ctx.on_controller:
                    ctx.check_live_settings(_live_after(ctx, name, operations, incremental))
                changes.append((kind, name, operations))
                continue
            else:
                broker_loggers.alter(ctx, name, operations, request.validate_only)
        except KafkaError as error:
            code, text = error.code, error.text
        finished[position] = response.AlterConfigsResourceResponse(
            error_code=code, error_message=text, resource_type=kind, resource_name=name
        )
    event = AlterConfigs(
        ctx.token, changes, incremental=incremental, validate_only=request.validate_only, refused=finished
    )
    return ctx.controller.submit(event)


def _operations(resource: Any, incremental: bool) -> Any:
    """The settings of a resource of either request, in the form of the event `AlterConfigs`. Each setting may be named
    once, and must have a value unless it is deleted. Raises `KafkaError`."""
    names = [each.name for each in resource.configs]
    if len(set(names)) != len(names):
        raise KafkaError(errors.INVALID_REQUEST, "Error due to duplicate config keys")
    without_value = [
        each.name
        for each in resource.configs
        if each.value is None and not (incremental and each.config_operation == DELETE)
    ]
    if without_value:
        raise KafkaError(errors.INVALID_REQUEST, f"Null value not supported for : {', '.join(without_value)}")
    if incremental:
        return [(each.name, each.config_operation, each.value) for each in resource.configs]
    return {each.name: each.value for each in resource.configs}


def _check_known(operations: list[tuple[str, int, str | None]]) -> None:
    for _, operation, _ in operations:
        if operation not in OPERATION_NAMES:
            raise KafkaError(errors.INVALID_REQUEST, f"Unknown operations type {operation}")


def _live_after(ctx: Context, name: str, operations: Any, incremental: bool) -> dict[str, str]:
    """The live settings of this broker with the operations. Those on lists are left out: no list of a listener changes
    live."""
    if not incremental:
        return dict(operations)
    live = dict(ctx.metadata.configs(TYPE_BROKER, name))
    for key, operation, value in operations:
        if operation == SET:
            live[key] = value
        elif operation == DELETE:
            live.pop(key, None)
    return live


def _check(ctx: Context | ControllerContext, kind: int, name: str, incremental: bool) -> None:
    release = ctx.settings.release
    has_no_groups = release is not None and "configs.without_groups" in release.answers
    is_unknown = kind not in CONFIG_RESOURCES or (kind == TYPE_GROUP and has_no_groups)
    if is_unknown or (kind == TYPE_BROKER_LOGGER and not incremental):
        raise KafkaError(errors.INVALID_REQUEST, f"Unknown resource type {kind}")
    if kind == TYPE_BROKER and name and not ctx.on_controller:
        if node_id_in(name, "Node id") != ctx.node_id:
            raise KafkaError(
                errors.INVALID_REQUEST, f"Unexpected broker id, expected {ctx.node_id}, but received {name}"
            )
    code = config_refusal(ctx, RULES["AlterConfigs"], kind, name)
    if code:
        raise KafkaError(code, errors.message(code))
