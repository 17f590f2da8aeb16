"""StreamsGroupTopologyDescriptionUpdate, version 0 (KIP-1331), since Kafka 4.4.

A member of a streams group brings the description of its topology, which a plug-in of the broker keeps. Like a Kafka
without such a plug-in this broker answers UNSUPPORTED_VERSION, and never asks a member for the description.

Gaps: descriptions of topologies are not kept: there is no plug-in.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.group_types import STREAMS
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.group_protocols import switched_off
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

(_READ_GROUP,) = RULES["StreamsGroupTopologyDescriptionUpdate"]
_Response = messages.StreamsGroupTopologyDescriptionUpdateResponse
_NO_PLUG_IN = "The broker has no streams group topology description plugin configured."


def handle(ctx: Context, request: messages.StreamsGroupTopologyDescriptionUpdateRequest) -> object:
    refused = switched_off(ctx, request, STREAMS)
    if refused is not None:
        return refused
    if not may(ctx, _READ_GROUP, request.group_id):
        return _Response(error_code=_READ_GROUP.error, error_message=errors.message(_READ_GROUP.error))
    return _Response(error_code=errors.UNSUPPORTED_VERSION, error_message=_NO_PLUG_IN)
