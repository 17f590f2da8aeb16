"""CreateDelegationToken, versions 1 to 3.

Only a caller that is authenticated by SASL or by a TLS certificate can get a token. Any other caller gets
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, and the answer names the owner that the token would have. An owner with a name and
no type (version 3) is UNKNOWN_SERVER_ERROR, as in Kafka, and the answer names the caller as the owner.

Gaps: nobody gets a token yet.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.CreateDelegationTokenRequest) -> object:
    """Always a refusal."""
    ctx.not_offered("delegation tokens")
    code = errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    requester_type, _, requester_name = ctx.principal.partition(":")
    owner_type, owner_name = requester_type, requester_name
    if request.owner_principal_name:
        if request.owner_principal_type is None:
            code = errors.UNKNOWN_SERVER_ERROR
        else:
            owner_type, owner_name = request.owner_principal_type, request.owner_principal_name
    answer = messages.CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    if ctx.version >= 3:
        answer.token_requester_principal_type, answer.token_requester_principal_name = requester_type, requester_name
    return answer
