"""The APIs of features that are not offered. Each is answered with the refusal of its row in `table.py`.

Kafka answers so on every row of the request while the feature is switched off.

UNSUPPORTED_VERSION is Kafka's code for a feature whose level is 0. Kafka cannot switch off its share coordinator, which
only brokers call; here its APIs are refused with the same code.
"""

from __future__ import annotations

from pykafkad.handlers import unexpected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context
    from pykafkad.wire.messages import Struct


def handle(ctx: Context, request: Struct) -> Struct | None:
    """The refusal of the API."""
    row = ctx.row
    code, with_text = row.refusal
    return unexpected.answer(row, ctx.version, request, code, with_text=with_text)
