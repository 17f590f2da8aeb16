"""What the three ACL APIs share: whether there is anything to keep ACLs, and which requests no client can have
meant."""

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
    """A 0 where a type, pattern, operation or permission belongs is no request at all. Raises `ProtocolError`."""
    for row in rows:
        for field in fields:
            if getattr(row, field) == UNKNOWN:
                raise ProtocolError(f"{type(row).__name__}.{field} is 0, which means nothing")


def check(ctx: Context, rules: tuple[Rule, ...], without_authorizer: str) -> None:
    """Whether the caller may do this at all, and whether ACLs are kept here. Raises `KafkaError`."""
    (on_cluster,) = rules
    if not may(ctx, on_cluster):
        raise KafkaError(on_cluster.error, errors.message(on_cluster.error))
    if not ctx.settings.authorizer_class_name:
        raise KafkaError(errors.SECURITY_DISABLED, without_authorizer)
