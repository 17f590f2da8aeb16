"""DescribeDelegationToken, versions 1 to 3.

The tokens of the owners that are named (null: of all, an empty list: of none), with their HMACs. A token counts as
somebody's who owns it, has asked for it or may renew it. A caller sees its own, and others if it may describe the
token or the tokens of the owner. Without `delegation.token.secret.key` it is DELEGATION_TOKEN_AUTH_DISABLED. A caller
without a login of its own, by SASL or by a TLS certificate, gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import token_requests
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata import delegation_tokens
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context

(_DESCRIBE,) = RULES["DescribeDelegationToken"]
_FIRST_WITH_REQUESTER = 3


def handle(ctx: Context, request: messages.DescribeDelegationTokenRequest) -> Generator[None, None, object]:
    """The tokens, in no particular order. Yields between them: there may be many."""
    response = messages.DescribeDelegationTokenResponse
    if not token_requests.may_ask(ctx):
        return response(error_code=errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    secret = ctx.settings.delegation_token_secret_key
    if not secret:
        return response(error_code=errors.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {f"{each.principal_type}:{each.principal_name}" for each in request.owners}
    tokens = yield from delegation_tokens.describe(
        ctx.metadata,
        secret,
        ctx.principal,
        owners,
        lambda token: may(ctx, _DESCRIBE, token.token_id, token.owner),
        ctx.version >= _FIRST_WITH_REQUESTER,
    )
    return response(tokens=tokens)
