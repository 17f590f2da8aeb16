"""DescribeAcls, versions 1 to 3.

The access control entries that a filter matches, grouped by resource, in no particular order. A filter's field is an
exact value, or null or 1 for any. The pattern type 2 matches every entry that applies to a resource of that name. A
type, pattern, operation or permission that Kafka does not know matches nothing; 0 closes the connection. Without
`authorizer.class.name` the answer is SECURITY_DISABLED.

Gaps: none.
"""

from __future__ import annotations

from pykafkad.errors import KafkaError
from pykafkad.handlers import acl_requests
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.acls import Filter
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.DescribeAclsRequest) -> object:
    """Every entry that the filter matches."""
    fields = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    acl_requests.refuse_unknown((request,), fields)
    try:
        acl_requests.check(ctx, RULES["DescribeAcls"], "No Authorizer is configured on the broker")
    except KafkaError as error:
        return messages.DescribeAclsResponse(error_code=error.code, error_message=error.text)
    by_pattern: dict[tuple[int, str, int], list[messages.DescribeAclsResponse.AclDescription]] = {}
    for entry in Filter(request).matching(ctx.metadata.acls.values()):
        pattern = (entry.resource_type, entry.resource_name, entry.pattern_type)
        row = messages.DescribeAclsResponse.AclDescription(
            principal=entry.principal, host=entry.host, operation=entry.operation, permission_type=entry.permission_type
        )
        by_pattern.setdefault(pattern, []).append(row)
    resources = [
        messages.DescribeAclsResponse.DescribeAclsResource(
            resource_type=kind, resource_name=name, pattern_type=pattern, acls=rows
        )
        for (kind, name, pattern), rows in by_pattern.items()
    ]
    return messages.DescribeAclsResponse(resources=resources)
