"""ElectLeaders, versions 0 to 2 (KIP-183, KIP-460).

A preferred election makes the first replica of each partition its leader again. An unclean election (from version 1)
makes any live replica the leader if no replica in sync is left. A partition that already has this leader is
ELECTION_NOT_NEEDED; with null topics, which mean all, such partitions are left out. PREFERRED_LEADER_NOT_AVAILABLE and
ELIGIBLE_LEADERS_NOT_AVAILABLE say that no replica can be elected. Another election type is INVALID_REQUEST for every
partition. With a `timeout_ms` of zero or less every partition is REQUEST_TIMED_OUT.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata import elections
from pykafkad.metadata.events import ElectLeaders
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


(_ALTER_CLUSTER,) = RULES["ElectLeaders"]


def handle(ctx: Context, request: messages.ElectLeadersRequest) -> object:
    """Submits the request to the controller."""
    topics = request.topic_partitions
    if not may(ctx, _ALTER_CLUSTER):
        code = _ALTER_CLUSTER.error
        return elections.refused(topics, code, errors.message(code), ctx.version)
    if topics is not None and not topics:
        return messages.ElectLeadersResponse()
    if request.timeout_ms <= 0:
        return elections.refused(topics, errors.REQUEST_TIMED_OUT, None, ctx.version)
    election = elections.TYPES.get(request.election_type)
    if election is None:
        text = f"Unknown election type {request.election_type}"
        return elections.refused(topics, errors.INVALID_REQUEST, text, ctx.version)
    return ctx.controller.submit(ElectLeaders(ctx.token, election, topics, ctx.version))
