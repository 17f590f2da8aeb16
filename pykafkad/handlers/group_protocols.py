"""Whether the protocol of a group type is switched on, and the refusal of its requests while it is not."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.group_types import CONSUMER, STREAMS
from pykafkad.handlers import unexpected
from pykafkad.metadata.features import GROUP_VERSION, STREAMS_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.config import Settings
    from pykafkad.handlers.context import Context
    from pykafkad.wire.messages import Struct

_FEATURES = {CONSUMER: GROUP_VERSION, STREAMS: STREAMS_VERSION}


def is_on(group_type: str, settings: Settings, features: Mapping[str, int]) -> bool:
    """Whether `group.coordinator.rebalance.protocols` names the protocol and its feature is finalized above 0."""
    return group_type in settings.group_coordinator_rebalance_protocols and features.get(_FEATURES[group_type], 0) >= 1


def switched_off(ctx: Context, request: Struct, group_type: str) -> Struct | None:
    """The refusal of a request while the protocol is switched off, or None. A broker that has just started, and knows
    no features yet, coordinates nothing: members take UNSUPPORTED_VERSION for the end."""
    features = ctx.metadata.features
    if is_on(group_type, ctx.settings, features):
        return None
    code = errors.UNSUPPORTED_VERSION if features else errors.COORDINATOR_NOT_AVAILABLE
    return unexpected.answer(ctx.row, ctx.version, request, code, with_text=False)
