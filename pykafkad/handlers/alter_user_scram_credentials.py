"""AlterUserScramCredentials, version 0.

Deletes, adds and replaces SCRAM credentials, one row for each user. A user named twice is DUPLICATE_RESOURCE and left
alone, a deletion of what is not there RESOURCE_NOT_FOUND, an empty name or an iteration count outside 4096 to 16384
UNACCEPTABLE_CREDENTIAL, a mechanism other than SCRAM-SHA-256 (1) and SCRAM-SHA-512 (2) UNSUPPORTED_SASL_MECHANISM.

Gaps: credentials are kept and shown; nobody can log in with them yet.
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
    """Hands the changes to the controller."""
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
