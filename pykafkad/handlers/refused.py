"""The APIs of features that are not offered. Each is answered with the refusal of its row in `table.py`.

Kafka answers so on every row of the request while the feature is switched off.

UNSUPPORTED_VERSION is Kafka's code for a feature whose level is 0. Kafka cannot switch off its share coordinator, which
only brokers call; here its APIs are refused with the same code. A transactional id is INVALID_PRODUCER_ID_MAPPING,
because none is given out, or INVALID_REQUEST if it is empty.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import unexpected
from pykafkad.handlers.authorization import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context
    from pykafkad.wire.messages import Struct


def handle(ctx: Context, request: Struct) -> Struct | None:
    """The refusal of the API, or that of its authorization rules if they are checked first."""
    row = ctx.row
    code, with_text, is_watched = row.refusal
    if is_watched:
        code = _watched(ctx, request) or code
    return unexpected.answer(row, ctx.version, request, code, with_text=with_text)


def _watched(ctx: Context, request: Struct) -> int:
    for rule in ctx.row.authorization:
        if error := refusal(ctx, rule, getattr(request, rule.names[0])):
            return error
    return errors.NONE if getattr(request, "transactional_id", None) else errors.INVALID_REQUEST
