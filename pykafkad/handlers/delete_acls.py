"""DeleteAcls, versions 1 to 3.

Each filter (see DescribeAcls) has its own result with every entry that it matches. An entry that two filters match
stands in both results. A type, pattern, operation or permission that Kafka does not know is INVALID_REQUEST for that
filter; 0 closes the connection. More than 10 000 entries at once are INVALID_REQUEST in every row, and nothing is
deleted. Unlike in Kafka, so are more than 100 000 entries in one answer and more than a million comparisons. Without
`authorizer.class.name` every row is SECURITY_DISABLED.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.errors import KafkaError
from pykafkad.handlers import acl_requests
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.events import DeleteAcls
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.DeleteAclsRequest) -> object:
    """Submits the filters to the controller."""
    fields = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    acl_requests.refuse_unknown(request.filters, fields)
    try:
        acl_requests.check(ctx, RULES["DeleteAcls"], "No Authorizer is configured.")
    except KafkaError as error:
        row = messages.DeleteAclsResponse.DeleteAclsFilterResult(error_code=error.code, error_message=error.text)
        return messages.DeleteAclsResponse(filter_results=[row] * len(request.filters))
    return ctx.controller.submit(DeleteAcls(ctx.token, request.filters))
