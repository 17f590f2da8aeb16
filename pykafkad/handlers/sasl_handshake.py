"""SaslHandshake, versions 0 and 1.

On a PLAINTEXT listener every connection counts as authenticated, so the request is ILLEGAL_SASL_STATE.

Gaps: there are no SASL listeners yet.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.SaslHandshakeRequest) -> object:
    """Always ILLEGAL_SASL_STATE."""
    return messages.SaslHandshakeResponse(error_code=errors.ILLEGAL_SASL_STATE)
