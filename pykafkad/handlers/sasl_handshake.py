"""SaslHandshake, versions 0 and 1.

The client names the mechanism of its login. After version 0 its tokens follow in frames without a header, after version
1 in SaslAuthenticate. A mechanism that the listener does not offer is UNSUPPORTED_SASL_MECHANISM, with those that it
does; the answer leaves after `connection.failed.authentication.delay.ms`, and the connection ends. Who has logged in
may do so again where `connections.max.reauth.ms` is set (KIP-368). For everybody else who counts as authenticated, as
on every listener without SASL, the request is ILLEGAL_SASL_STATE.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.SaslHandshakeRequest) -> object:
    """The mechanisms that the listener offers."""
    login = ctx.login
    if login is None or not login.may_begin(ctx.connection):
        return messages.SaslHandshakeResponse(error_code=errors.ILLEGAL_SASL_STATE)
    if request.mechanism in login.mechanisms:
        login.choose(ctx.connection, request.mechanism, ctx.version >= 1)
        return messages.SaslHandshakeResponse(mechanisms=login.mechanisms)
    answer = messages.SaslHandshakeResponse(error_code=errors.UNSUPPORTED_SASL_MECHANISM, mechanisms=login.mechanisms)
    return login.refuse(ctx.connection, ctx.token, answer, "an unsupported SASL mechanism")
