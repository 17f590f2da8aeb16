"""DescribeUserScramCredentials, version 0.

The users with SCRAM credentials: mechanisms and iterations, never salts or keys. An empty or null list of users means
all. A user named twice is DUPLICATE_RESOURCE, one without credentials RESOURCE_NOT_FOUND.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata import credentials
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


(_DESCRIBE_CLUSTER,) = RULES["DescribeUserScramCredentials"]


def handle(ctx: Context, request: messages.DescribeUserScramCredentialsRequest) -> object:
    """One result per user, in no particular order."""
    response = messages.DescribeUserScramCredentialsResponse
    users = [each.name for each in request.users or ()]
    if not may(ctx, _DESCRIBE_CLUSTER):
        code = _DESCRIBE_CLUSTER.error
        text = errors.message(code)
        rows = [response.DescribeUserScramCredentialsResult(error_code=code, error_message=text) for _ in users]
        return response(error_code=code, error_message=text, results=rows)
    return response(results=credentials.describe(ctx.metadata, users))
