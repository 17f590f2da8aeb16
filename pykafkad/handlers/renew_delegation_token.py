"""RenewDelegationToken, versions 1 and 2.

Only for callers that are authenticated by SASL or by a TLS certificate. Any other caller gets
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

Gaps: there are no tokens yet, so every caller is refused.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.RenewDelegationTokenRequest) -> object:
    """Always a refusal."""
    ctx.not_offered("delegation tokens")
    return messages.RenewDelegationTokenResponse(
        error_code=errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )
