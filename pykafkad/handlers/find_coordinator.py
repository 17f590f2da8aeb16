"""FindCoordinator, versions 0 to 6.

Names the broker that coordinates a group, a transactional id or a share partition: the leader of its partition of
`__consumer_offsets`, `__transaction_state` or `__share_group_state`. If that topic does not exist, it is created and
the answer is COORDINATOR_NOT_AVAILABLE, so that clients ask again. Version 1 adds a key type (0 group, 1 transaction,
2 share), version 4 several keys with a row each (KIP-699). A key that is no share partition is INVALID_REQUEST.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.partitioning import TRANSACTION_TOPIC, partition_for
from pykafkad.coordinator.shard import TOPIC
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

GROUP = 0
TRANSACTION = 1
SHARE = 2
NO_NODE = (-1, "", -1)

_TOPICS = {GROUP: TOPIC, TRANSACTION: TRANSACTION_TOPIC, SHARE: "__share_group_state"}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context


_DESCRIBE_GROUP, _DESCRIBE_TRANSACTIONAL_ID, _CLUSTER_ACTION = RULES["FindCoordinator"]


def handle(ctx: Context, request: messages.FindCoordinatorRequest) -> Generator[None, None, object]:
    if ctx.version >= 4:
        rows = []
        for key in request.coordinator_keys:
            rows.append(_row(ctx, request.key_type, key))
            yield
        return messages.FindCoordinatorResponse(coordinators=rows)
    row = _row(ctx, request.key_type, request.key)
    return messages.FindCoordinatorResponse(
        error_code=row.error_code,
        error_message=row.error_message
        or ("NONE" if row.error_code == errors.NONE else errors.message(row.error_code)),
        node_id=row.node_id,
        host=row.host,
        port=row.port,
    )


def _row(ctx: Context, key_type: int, key: str) -> messages.FindCoordinatorResponse.Coordinator:
    error_code, message, (node_id, host, port) = _find(ctx, key_type, key)
    return messages.FindCoordinatorResponse.Coordinator(
        key=key, error_code=error_code, error_message=message, node_id=node_id, host=host, port=port
    )


def _find(ctx: Context, key_type: int, key: str) -> tuple[int, str, tuple[int, str, int]]:
    if key_type == GROUP and not may(ctx, _DESCRIBE_GROUP, key):
        return _DESCRIBE_GROUP.error, "", NO_NODE
    if key_type == TRANSACTION and not may(ctx, _DESCRIBE_TRANSACTIONAL_ID, key):
        return _DESCRIBE_TRANSACTIONAL_ID.error, "", NO_NODE
    if key_type == SHARE and ctx.version < 6:
        return errors.INVALID_REQUEST, "", NO_NODE
    if key_type == SHARE:
        if not may(ctx, _CLUSTER_ACTION):
            return _CLUSTER_ACTION.error, "", NO_NODE
        named = _share_partition(key)
        if named is None:
            return errors.INVALID_REQUEST, "", NO_NODE
        key = named
    name = _TOPICS.get(key_type)
    if name is None:
        return errors.INVALID_REQUEST, f"Unknown coordinator type received: {key_type}", NO_NODE
    image = ctx.metadata
    topic = image.topics.get(name)
    if topic is None:
        from pykafkad.metadata.events import AutoCreateTopics
        from pykafkad.metadata.topic_askers import asker_of

        ctx.controller.submit(AutoCreateTopics([name], None, {name: asker_of(ctx, is_automatic=True)}))
        return errors.COORDINATOR_NOT_AVAILABLE, "", NO_NODE
    if key_type == TRANSACTION:
        ctx.producer_ids.prepare()
    leader = topic.partitions[partition_for(key, len(topic.partitions))].leader
    broker = image.brokers.get(leader)
    if broker is None or broker.fenced:
        return errors.COORDINATOR_NOT_AVAILABLE, "", NO_NODE
    return errors.NONE, "", (leader, *ctx.advertised(leader))


def _share_partition(key: str) -> str | None:
    """The name of a share partition from a key of the form `group:topic id:partition`, or None for another key. The
    group's name may contain colons."""
    from pykafkad.uuids import from_text, to_text

    rest, _, index = key.rpartition(":")
    group, _, topic_id = rest.rpartition(":")
    try:
        partition = int(index)
        name = f"{group}:{to_text(from_text(topic_id))}:{partition}"
    except ValueError:
        return None
    return name if group.strip() and -(2**31) <= partition < 2**31 else None
