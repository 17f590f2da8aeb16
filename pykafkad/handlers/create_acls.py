"""CreateAcls, versions 1 to 3.

Each entry has its own result: INVALID_REQUEST for an impossible one, success for one that exists already. A type,
operation or permission of 1 (any), or a pattern of 1 or 2, fails the whole request with UNKNOWN_SERVER_ERROR, as in
Kafka; 0 closes the connection. More than 10 000 new entries, or more than fit into a batch of the metadata log, are
POLICY_VIOLATION. Without `authorizer.class.name` every row is SECURITY_DISABLED.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers import acl_requests
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.acls import ANY, MATCH
from pykafkad.metadata.events import CreateAcls
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.CreateAclsRequest) -> object:
    """Submits the entries to the controller."""
    fields = ("resource_type", "resource_pattern_type", "operation", "permission_type")
    acl_requests.refuse_unknown(request.creations, fields)
    try:
        acl_requests.check(ctx, RULES["CreateAcls"], "No Authorizer is configured.")
        if any(
            ANY in (row.resource_type, row.operation, row.permission_type) or row.resource_pattern_type in (ANY, MATCH)
            for row in request.creations
        ):
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
    except KafkaError as error:
        rows = [
            messages.CreateAclsResponse.AclCreationResult(error_code=error.code, error_message=error.text)
            for _ in request.creations
        ]
        return messages.CreateAclsResponse(results=rows)
    return ctx.controller.submit(CreateAcls(ctx.token, request.creations))
