"""What the three ACL APIs share: checks of the request, of the caller and of the broker's authorizer."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError, ProtocolError
from pykafkad.handlers.authorization import may
from pykafkad.metadata.acls import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.handlers.authorization import Rule
    from pykafkad.handlers.context import Context


def refuse_unknown(rows: Iterable[object], fields: tuple[str, ...]) -> None:
    """Check that no type, pattern, operation or permission is 0. Raises `ProtocolError`, which closes the
    connection."""
    for row in rows:
        for field in fields:
            if getattr(row, field) == UNKNOWN:
                raise ProtocolError(f"{type(row).__name__}.{field} is 0, which means nothing")


def check(ctx: Context, rules: tuple[Rule, ...], without_authorizer: str) -> None:
    """Check that the caller may use the API, and that the broker has an authorizer. Raises `KafkaError`."""
    (on_cluster,) = rules
    if not may(ctx, on_cluster):
        raise KafkaError(on_cluster.error, errors.message(on_cluster.error))
    if not ctx.settings.authorizer_class_name:
        raise KafkaError(errors.SECURITY_DISABLED, without_authorizer)
