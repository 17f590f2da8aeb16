"""DescribeConfigs, versions 1 to 4.

Every setting of topics, this broker, broker loggers, client-metrics subscriptions and groups. A broker is named by its
id; the empty name means the dynamic settings of all brokers. A setting has its value (none for a password), its source,
its synonyms in order of precedence, its type, and whether it can be changed while the broker runs. `configuration_keys`
picks settings; null and empty mean all. Another broker's id is INVALID_REQUEST, because a broker answers only for
itself. Synonyms come on request; from version 3 types and, on request, one line of documentation. An unknown resource
type fails the whole request with INVALID_REQUEST.

Gaps: there is one broker logger, `root`, where Kafka lists one per Java class.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers import snapshot_actions
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.broker_loggers import KAFKA_LEVELS, ROOT
from pykafkad.handlers.operations import CONFIG_RESOURCES, config_refusal, node_id_in
from pykafkad.metadata.configs import TYPE_BROKER_LOGGER, TYPE_CLIENT_METRICS, TYPE_GROUP
from pykafkad.metadata.image import TYPE_BROKER, TYPE_TOPIC
from pykafkad.metadata.topics import name_problem
from pykafkad.settings import entries
from pykafkad.wire import messages

# Limit of cached answers (by settings, synonyms and documentation). A cache that is full is emptied.
MAX_KEPT = 64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context

_Result = messages.DescribeConfigsResponse.DescribeConfigsResult
_Setting = messages.DescribeConfigsResponse.DescribeConfigsResourceResult


def handle(ctx: Context, request: messages.DescribeConfigsRequest) -> Generator[None, None, object]:
    """One result per resource, in the order of the request."""
    release = ctx.settings.release
    has_no_groups = release is not None and "configs.without_groups" in release.answers
    if any(
        each.resource_type not in CONFIG_RESOURCES or (has_no_groups and each.resource_type == TYPE_GROUP)
        for each in request.resources
    ):
        text = errors.message(errors.INVALID_REQUEST)
        return messages.DescribeConfigsResponse(
            results=[_failed(each, errors.INVALID_REQUEST, text) for each in request.resources]
        )
    results = []
    for each in request.resources:
        results.append(_resource(ctx, request, each))
        yield
    return messages.DescribeConfigsResponse(results=results)


def _resource(
    ctx: Context,
    request: messages.DescribeConfigsRequest,
    resource: messages.DescribeConfigsRequest.DescribeConfigsResource,
) -> _Result:
    code = config_refusal(ctx, RULES["DescribeConfigs"], resource.resource_type, resource.resource_name)
    if code:
        return _failed(resource, code, errors.message(code))
    try:
        rows = _rows(ctx, request, resource)
    except KafkaError as error:
        return _failed(resource, error.code, error.text or "")
    return messages.DescribeConfigsResponse.DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=rows,
    )


def _rows(
    ctx: Context,
    request: messages.DescribeConfigsRequest,
    resource: messages.DescribeConfigsRequest.DescribeConfigsResource,
) -> list[_Setting]:
    """The rows of a resource's chosen settings. The rows of all settings are cached until the broker's settings change,
    because most topics have the same."""
    kind, name = resource.resource_type, resource.resource_name
    check, describe = _RESOURCES[kind]
    check(ctx, name)
    wanted = resource.configuration_keys
    release = ctx.settings.release
    if (
        kind == TYPE_CLIENT_METRICS
        and release is not None
        and "DescribeConfigs.set_client_metrics_only" in release.answers
    ):
        # Which ones are asked for was not looked at.
        wanted = None
    if wanted or kind == TYPE_BROKER_LOGGER:
        found = describe(ctx, name)
        if wanted and snapshot_actions.LIST in wanted and kind == TYPE_BROKER and not ctx.on_controller:
            found = [*found, _snapshots(ctx)]
        return [_row(entry, request) for entry in found if not wanted or entry.name in wanted]
    overrides = () if kind == TYPE_BROKER else tuple(ctx.metadata.configs(kind, name).items())
    key = (kind, kind == TYPE_BROKER and not name, overrides, request.include_synonyms, request.include_documentation)
    kept = ctx.settings.described
    if key not in kept:
        if len(kept) >= MAX_KEPT:
            kept.clear()
        kept[key] = messages.CachedArray(_row(entry, request) for entry in describe(ctx, name))
    rows: list[_Setting] = kept[key]
    return rows


def _failed(resource: messages.DescribeConfigsRequest.DescribeConfigsResource, code: int, text: str | None) -> _Result:
    return messages.DescribeConfigsResponse.DescribeConfigsResult(
        error_code=code,
        error_message=text,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _row(entry: entries.Entry, request: messages.DescribeConfigsRequest) -> _Setting:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return messages.DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            messages.DescribeConfigsResponse.DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in synonyms
        ],
        config_type=entry.type_id,
        documentation=entry.help if request.include_documentation or entry.help == "" else None,
    )


def _check_topic(ctx: Context, name: str) -> None:
    problem = name_problem(name)
    if problem is not None:
        raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, problem)
    if name not in ctx.metadata.topics:
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)


def _topic(ctx: Context, name: str) -> list[entries.Entry]:
    return entries.describe_topic(ctx.settings, ctx.metadata.configs(TYPE_TOPIC, name))


def _check_broker(ctx: Context, name: str) -> None:
    if name and node_id_in(name, "Broker id") != ctx.node_id:
        text = f"Unexpected broker id, expected {ctx.node_id} or empty string, but received {name}"
        raise KafkaError(errors.INVALID_REQUEST, text)


def _broker(ctx: Context, name: str) -> list[entries.Entry]:
    return entries.describe_broker(ctx.settings) if name else entries.describe_broker_defaults(ctx.settings)


def _snapshots(ctx: Context) -> entries.Entry:
    """The list of snapshots. It is listed only if it is asked for by name, because Kafka has no such setting."""
    entry = entries.Entry(snapshot_actions.LIST, ",".join(ctx.snapshots.names()), [], None, True)
    entry.type_id = entries.TYPE_IDS["list"]
    entry.sensitive = False
    entry.help = "The snapshots of the data."
    return entry


def _check_broker_logger(ctx: Context, name: str) -> None:
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Broker id must not be empty")
    if node_id_in(name, "Broker id") != ctx.node_id:
        raise KafkaError(errors.INVALID_REQUEST, f"Unexpected broker id, expected {ctx.node_id} but received {name}")


def _broker_logger(ctx: Context, _name: str) -> list[entries.Entry]:
    root = entries.Entry(ROOT, KAFKA_LEVELS[ctx.log_level], [], None, False)
    root.source = entries.DYNAMIC_BROKER_LOGGER_CONFIG
    root.sensitive = False
    root.help = ""
    return [root]


def _check_client_metrics(_ctx: Context, name: str) -> None:
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Client metrics subscription name must not be empty")


def _client_metrics(ctx: Context, name: str) -> list[entries.Entry]:
    return entries.describe_client_metrics(ctx.settings, ctx.metadata.configs(TYPE_CLIENT_METRICS, name))


def _check_group(_ctx: Context, name: str) -> None:
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Group name must not be empty")


def _group(ctx: Context, name: str) -> list[entries.Entry]:
    return entries.describe_group(ctx.settings, ctx.metadata.configs(TYPE_GROUP, name))


# Resource type to the function that checks a name and the function that lists its settings.
_RESOURCES = {
    TYPE_TOPIC: (_check_topic, _topic),
    TYPE_BROKER: (_check_broker, _broker),
    TYPE_BROKER_LOGGER: (_check_broker_logger, _broker_logger),
    TYPE_CLIENT_METRICS: (_check_client_metrics, _client_metrics),
    TYPE_GROUP: (_check_group, _group),
}
