"""CreateDelegationToken, versions 1 to 3.

Makes a token for the caller, or (version 3) for another owner whom the caller may make tokens for. Its holder logs in
by SCRAM as the owner. Only a caller that is authenticated by SASL or by a TLS certificate can get one, and not by a
token: any other gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, and the answer names the owner that the token would have.
Renewers are of the type User, or the request is INVALID_PRINCIPAL_TYPE. Without `delegation.token.secret.key` it is
DELEGATION_TOKEN_AUTH_DISABLED. An owner with a name and no type is UNKNOWN_SERVER_ERROR, as in Kafka, and the answer
names nobody. Beyond the limits of pykafkad's own, `pykafkad.delegation.tokens.max` and that of one owner, it is
POLICY_VIOLATION.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import token_requests
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata import delegation_tokens
from pykafkad.metadata.events import CreateDelegationToken
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context
    from pykafkad.handlers.controller_context import ControllerContext

(_CREATE_FOR_OTHERS,) = RULES["CreateDelegationToken"]
_FIRST_WITH_OWNER = 3
_NOBODY = ("User", "ANONYMOUS")


def handle(ctx: Context | ControllerContext, request: messages.CreateDelegationTokenRequest) -> object:
    """Submits the token to the controller."""
    requester = delegation_tokens.parts(ctx.principal)
    owner = requester
    if request.owner_principal_name:
        if request.owner_principal_type is None:
            return _refused(ctx, errors.UNKNOWN_SERVER_ERROR, _NOBODY, _NOBODY)
        owner = request.owner_principal_type, request.owner_principal_name
    renewers = [(each.principal_type, each.principal_name) for each in request.renewers]
    if not token_requests.may_ask(ctx):
        return _refused(ctx, errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, owner, requester)
    if owner != requester and not may(ctx, _CREATE_FOR_OTHERS, ":".join(owner)):
        return _refused(ctx, _CREATE_FOR_OTHERS.error, owner, requester)
    if not ctx.on_controller and any(kind != delegation_tokens.USER for kind, _ in renewers):
        return _refused(ctx, errors.INVALID_PRINCIPAL_TYPE, owner, requester)
    names_requester = ctx.version >= _FIRST_WITH_OWNER
    return ctx.controller.submit(
        CreateDelegationToken(
            ctx.token, ctx.now_ms, owner, ctx.principal, renewers, request.max_lifetime_ms, names_requester
        )
    )


def _refused(
    ctx: Context | ControllerContext, code: int, owner: tuple[str, str], requester: tuple[str, str]
) -> messages.CreateDelegationTokenResponse:
    answer = messages.CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner[0],
        principal_name=owner[1],
        issue_timestamp_ms=token_requests.NO_TIME_MS,
        expiry_timestamp_ms=token_requests.NO_TIME_MS,
        max_timestamp_ms=token_requests.NO_TIME_MS,
    )
    if ctx.version >= _FIRST_WITH_OWNER:
        answer.token_requester_principal_type, answer.token_requester_principal_name = requester
    return answer
