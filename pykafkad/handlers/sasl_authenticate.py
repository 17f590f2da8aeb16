"""SaslAuthenticate, versions 0 to 2.

On a PLAINTEXT listener every connection counts as authenticated, so the request is ILLEGAL_SASL_STATE.

Gaps: there are no SASL listeners yet.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.SaslAuthenticateRequest) -> object:
    """Always ILLEGAL_SASL_STATE."""
    text = "SaslAuthenticate request received after successful authentication"
    return messages.SaslAuthenticateResponse(error_code=errors.ILLEGAL_SASL_STATE, error_message=text)
