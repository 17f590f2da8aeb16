"""What the four requests about delegation tokens have in common: who may send them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context
    from pykafkad.handlers.controller_context import ControllerContext

NO_TIME_MS = -1
"""The times in the answer to a caller that may not ask."""


def may_ask(ctx: Context | ControllerContext) -> bool:
    """Whether the caller has a login of its own, by SASL or by a TLS certificate: a token is not enough to get another
    one. Where there are no tokens for anybody, the log says so once."""
    if not ctx.settings.delegation_token_secret_key:
        ctx.not_offered("delegation tokens: delegation.token.secret.key is not set")
    return ctx.may_ask_for_tokens
