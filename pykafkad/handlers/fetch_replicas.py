"""What the answer to a Fetch says of the other replicas of a partition: where the caller's log diverges from this one,
who leads, and from which replica a consumer reads best (KIP-392)."""

from __future__ import annotations

from pykafkad import config, errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.handlers.context import Context
    from pykafkad.handlers.fetch_sessions import FetchPartition
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.brokers import Broker

_PREFERRED_SINCE = 11
_NONE_PREFERRED = -1

# Errors of callers that do not know the present leader.
_WITH_LEADER = (errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH)


def add_leaders(
    ctx: Context,
    response: messages.FetchResponse,
    rows: Iterable[tuple[FetchPartition, messages.FetchResponse.PartitionData]],
    *,
    with_addresses: bool,
) -> None:
    """Add the leaders of partitions whose leader the caller does not know (KIP-951). Kafka gives no addresses to
    followers, which know the brokers of their cluster."""
    leaders: dict[int, Broker] = {}
    for partition, row in rows:
        if row.error_code not in _WITH_LEADER or partition.topic is None:
            continue
        leader, epoch, broker = ctx.leader_hint(partition.topic, partition.partition)
        row.current_leader = messages.FetchResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        if with_addresses and broker is not None:
            leaders[leader] = broker
    for node_id, broker in leaders.items():
        host, port = ctx.advertised(node_id)
        endpoint = messages.FetchResponse.NodeEndpoint(node_id=node_id, host=host, port=port, rack=broker.rack)
        response.node_endpoints.append(endpoint)


def diverging(partition: FetchPartition, log: PartitionLog) -> messages.FetchResponse.EpochEndOffset | None:
    """The epoch and its end offset at which the caller's log diverges from this one (KIP-595), or None. Raises
    KafkaError for an offset or epoch that this log does not have."""
    asked = partition.last_fetched_epoch
    if asked < 0:
        return None
    epoch, end_offset = log.end_offset_for_epoch(asked)
    if epoch < 0 or end_offset < 0 or partition.fetch_offset < log.log_start_offset:
        raise errors.KafkaError(errors.OFFSET_OUT_OF_RANGE)
    if epoch < asked or end_offset < partition.fetch_offset:
        return messages.FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def tell(ctx: Context, follower: int, partition: FetchPartition, log: PartitionLog, code: int) -> None:
    """Have a follower named that was refused, if what it asks for cannot be. Other callers have no id."""
    if follower >= 0:
        asked = partition.fetch_offset, partition.last_fetched_epoch
        ctx.replication.follower_refused(ctx.connection.peer, follower, log, code, *asked)


def rack_of_caller(ctx: Context, request: messages.FetchRequest) -> str:
    """The rack of a consumer that is to read from a replica there; empty if it says none, or no replica is chosen."""
    if ctx.version < _PREFERRED_SINCE or ctx.settings.replica_selector_class != config.RACK_AWARE_SELECTOR:
        return ""
    return request.rack_id


def preferred(ctx: Context, log: PartitionLog, rack: str, fetch_offset: int) -> int:
    """The id of the most caught up follower in a consumer's rack from which it can read on; -1 if that is none, or the
    leader, which is this broker, is in the rack itself."""
    brokers, listener = ctx.metadata.brokers, ctx.listener

    def is_near(broker_id: int) -> bool:
        broker = brokers.get(broker_id)
        return broker is not None and not broker.fenced and broker.rack == rack and listener in broker.endpoints

    if is_near(ctx.node_id):
        return _NONE_PREFERRED
    found = [each for each in log.replica.readable_from(fetch_offset, ctx.now) if is_near(each[2])]
    return max(found)[2] if found else _NONE_PREFERRED
