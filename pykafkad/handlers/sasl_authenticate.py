"""SaslAuthenticate, versions 0 to 2.

Carries one token of the mechanism that SaslHandshake 1 has named; the answer carries the broker's. With the last one
the caller is the principal `User:<name>`; from version 1 the answer says for how long (KIP-368; 0: without end). A
token that is refused is SASL_AUTHENTICATION_FAILED with Kafka's text. That answer leaves after
`connection.failed.authentication.delay.ms`, and the connection ends. For who counts as authenticated already, the
request is ILLEGAL_SASL_STATE.

A user of SCRAM that does not exist is refused with its second token, not with its first as in Kafka, so that nobody
learns who exists.

A token of OAUTHBEARER that does not count is answered without an error, by a JSON text of the exchange; the error
follows when the client has said that it has read it (RFC 7628).

Tokens of GSSAPI are looked at beside the loop. A choice of a security layer that is too short ends the connection
without an answer, and a client for which no rule makes a name is told that it has logged in before its connection ends.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.handlers.context import Context
    from pykafkad.handlers.login_protocol import Login, LoginStep


def handle(ctx: Context, request: messages.SaslAuthenticateRequest) -> object:
    """The broker's next token."""
    login = ctx.login
    if login is None or not login.takes_tokens(ctx.connection):
        text = "SaslAuthenticate request received after successful authentication"
        return messages.SaslAuthenticateResponse(error_code=errors.ILLEGAL_SASL_STATE, error_message=text)
    connection, token = ctx.connection, bytes(request.auth_bytes)
    if login.may_block:
        reply = ctx.token
        return login.step_later(connection, reply, token, lambda step: _answer(login, connection, reply, step))
    return _answer(login, connection, ctx.token, login.step(connection, token))


def _answer(login: Login, connection: Any, reply: object, step: LoginStep) -> object:
    if step.problem is None:
        lifetime_ms = 0 if login.takes_tokens(connection) else login.session_lifetime_ms
        return messages.SaslAuthenticateResponse(auth_bytes=step.token or b"", session_lifetime_ms=lifetime_ms)
    answer = messages.SaslAuthenticateResponse(error_code=errors.SASL_AUTHENTICATION_FAILED, error_message=step.problem)
    return login.refuse(connection, reply, None if step.is_silent else answer, step.problem)
