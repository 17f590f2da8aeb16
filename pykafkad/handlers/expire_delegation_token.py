"""ExpireDelegationToken, versions 1 and 2.

Sets the expiry of the token with this HMAC: `expiry_time_period_ms` from now, though never after the token's longest
life; a negative period ends the token at once. Its owner and its renewers may do it; anybody else gets
DELEGATION_TOKEN_OWNER_MISMATCH. A token that has expired is DELEGATION_TOKEN_EXPIRED unless it is ended, no token's
HMAC is DELEGATION_TOKEN_NOT_FOUND. Without `delegation.token.secret.key` it is DELEGATION_TOKEN_AUTH_DISABLED. A
caller without a login of its own, by SASL or by a TLS certificate, gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
Connections that a token has opened stay until their login expires.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import token_requests
from pykafkad.metadata import events
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: Context | ControllerContext, request: messages.ExpireDelegationTokenRequest) -> object:
    """Submits the new expiry to the controller."""
    if not token_requests.may_ask(ctx):
        return messages.ExpireDelegationTokenResponse(
            error_code=errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=token_requests.NO_TIME_MS
        )
    return ctx.controller.submit(
        events.ExpireDelegationToken(
            ctx.token, ctx.now_ms, ctx.principal, bytes(request.hmac), request.expiry_time_period_ms
        )
    )
