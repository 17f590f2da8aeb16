"""DescribeClientQuotas, versions 0 and 1.

The quotas of every entity that has all components of the request: by exact name (match type 0), the default of its kind
(1), or any name (2). `strict` leaves out entities with further components. A request without components matches all
entities. An impossible filter is INVALID_REQUEST, an unknown kind of entity UNSUPPORTED_VERSION.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata import client_quotas
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


(_DESCRIBE_CONFIGS,) = RULES["DescribeClientQuotas"]


def handle(ctx: Context, request: messages.DescribeClientQuotasRequest) -> object:
    """Every entity that the filter matches, in no particular order."""
    response = messages.DescribeClientQuotasResponse
    try:
        if not may(ctx, _DESCRIBE_CONFIGS):
            raise KafkaError(_DESCRIBE_CONFIGS.error, errors.message(_DESCRIBE_CONFIGS.error))
        return response(entries=client_quotas.describe(ctx.metadata, request.components, request.strict))
    except KafkaError as error:
        return response(error_code=error.code, error_message=error.text, entries=None)
