"""AlterUserScramCredentials, version 0.

Deletes, adds and replaces SCRAM credentials. The answer has one row per user. A user named twice is DUPLICATE_RESOURCE
and not changed. Deleting a credential that does not exist is RESOURCE_NOT_FOUND. An empty name or an iteration count
outside 4096 to 16384 is UNACCEPTABLE_CREDENTIAL. A mechanism other than SCRAM-SHA-256 (1) and SCRAM-SHA-512 (2) is
UNSUPPORTED_SASL_MECHANISM.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.events import AlterUserScramCredentials
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


(_ALTER_CLUSTER,) = RULES["AlterUserScramCredentials"]


def handle(ctx: ControllerContext, request: messages.AlterUserScramCredentialsRequest) -> object:
    """Submits the changes to the controller."""
    if not may(ctx, _ALTER_CLUSTER):
        response = messages.AlterUserScramCredentialsResponse
        code = _ALTER_CLUSTER.error
        users = sorted({each.name for each in request.deletions} | {each.name for each in request.upsertions})
        rows = [
            response.AlterUserScramCredentialsResult(user=name, error_code=code, error_message=errors.message(code))
            for name in users
        ]
        return response(results=rows)
    return ctx.controller.submit(AlterUserScramCredentials(ctx.token, request.deletions, request.upsertions))
