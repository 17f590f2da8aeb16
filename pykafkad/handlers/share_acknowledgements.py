"""The acknowledgements of a ShareFetch or ShareAcknowledge (KIP-932): checks, and the way to the share partitions."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.share_acknowledgement import REJECT, RENEW
from pykafkad.handlers.authorization import refusal
from pykafkad.metadata.features import SHARE_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.handlers.authorization import Rule
    from pykafkad.handlers.context import Context

    Partition = tuple[bytes, int]
    """Topic id and index."""
    Outcome = tuple[int, str | None]
    """Error code and text."""

MAX_MEMBER_ID_LENGTH = 36


def request_error(ctx: Context, request: Any, read_group: Rule) -> int:
    """The error of a request that is refused whatever its session is, or NONE."""
    if not ctx.metadata.features.get(SHARE_VERSION, 0):
        return errors.UNSUPPORTED_VERSION
    if request.group_id is None:
        return errors.INVALID_REQUEST
    if error := refusal(ctx, read_group, request.group_id):
        return error
    if not request.member_id or len(request.member_id) > MAX_MEMBER_ID_LENGTH:
        return errors.INVALID_REQUEST
    return errors.NONE


class Acknowledgements:
    """The outcome for each partition of a request that acknowledges. `then` is called when the last one is known."""

    __slots__ = ("_left", "_then", "outcomes")

    def __init__(self, then: Callable[[], object]) -> None:
        self._then = then
        self._left = 1
        self.outcomes: dict[Partition, Outcome] = {}

    @property
    def is_done(self) -> bool:
        """Whether all outcomes are known."""
        return self._left == 0

    def submit(self, ctx: Context, request: Any, read_topic: Rule) -> None:
        """Give all records of the request back."""
        share, is_renewal = ctx.share_groups, ctx.version >= 2 and request.is_renew_ack
        highest = RENEW if ctx.version >= 2 else REJECT
        empty: list[Partition] = []
        gives_back = False
        for topic in request.topics:
            topic_id = bytes(topic.topic_id)
            known = ctx.metadata.topic_by_id(topic_id)
            for asked in topic.partitions:
                partition = topic_id, asked.partition_index
                if known is None:
                    code = errors.UNKNOWN_TOPIC_ID
                elif not _are_valid(asked.acknowledgement_batches, highest, is_renewal):
                    code = errors.INVALID_REQUEST
                elif not (code := refusal(ctx, read_topic, known.name)) and not (
                    0 <= asked.partition_index < len(known.partitions)
                ):
                    code = errors.UNKNOWN_TOPIC_OR_PARTITION
                self.outcomes[partition] = code, None
                if code:
                    continue
                if not asked.acknowledgement_batches:
                    empty.append(partition)
                    continue
                gives_back = True
                led = share.get((request.group_id, *partition))
                if led is None:
                    code = errors.UNKNOWN_TOPIC_OR_PARTITION
                    self.outcomes[partition] = code, errors.message(code)
                    continue
                self._left += 1
                rows = [
                    (each.first_offset, each.last_offset, each.acknowledge_types)
                    for each in asked.acknowledgement_batches
                ]
                led.acknowledge(request.member_id, rows, self._taker(partition))
        for partition in () if gives_back else empty:
            # Kafka tells of a partition without batches only beside one with some.
            del self.outcomes[partition]
        self._finish_one()

    def submit_nothing(self) -> None:
        """The request gives nothing back."""
        self._left = 0

    def _taker(self, partition: Partition) -> Callable[[int, str | None], object]:
        def take(code: int, text: str | None) -> None:
            self.outcomes[partition] = code, text if code else None
            self._finish_one()

        return take

    def _finish_one(self) -> None:
        self._left -= 1
        if not self._left:
            self._then()


def _are_valid(batches: list[Any], highest_type: int, is_renewal: bool) -> bool:
    """Whether the batches of a partition are in order, and have one type of acknowledgement or one for each record."""
    last_offset = -1
    for batch in batches:
        types = batch.acknowledge_types
        length = batch.last_offset - batch.first_offset + 1
        if length < 1 or batch.first_offset < last_offset or len(types) not in (1, length):
            return False
        if min(types) < 0 or max(types) > highest_type or (RENEW in types and not is_renewal):
            return False
        last_offset = batch.last_offset
    return True


def add_leaders(ctx: Context, response: Any, rows: list[tuple[bytes, Any]], leader_class: Any) -> None:
    """Add the leaders, and their addresses, of partitions that this broker does not lead."""
    leaders: dict[int, Any] = {}
    for topic_id, row in rows:
        topic = ctx.metadata.topic_by_id(topic_id)
        if row.error_code not in (errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH) or topic is None:
            continue
        leader, epoch, broker = ctx.leader_hint(topic.name, row.partition_index)
        row.current_leader = leader_class(leader_id=leader, leader_epoch=epoch)
        if broker is not None:
            leaders[leader] = broker
    for node_id, broker in leaders.items():
        host, port = ctx.advertised(node_id)
        response.node_endpoints.append(
            type(response).NodeEndpoint(node_id=node_id, host=host, port=port, rack=broker.rack)
        )
