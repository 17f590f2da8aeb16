"""`--acl 'alice read topic orders'` of `pykafkad serve`: access control entries that are there when the broker serves.

The words are those of `pykafkad acls add`. An entry that is stored already stays, and so does one that an earlier
command line has named.
"""

from __future__ import annotations

from pykafkad.cli import acl_words
from pykafkad.errors import ConfigError
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.server.start_acls import Creation

ORIGIN = "--acl"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def parse(texts: Iterable[str], origin: str = ORIGIN) -> list[tuple[str, Creation]]:
    """The entries, each with its words and who says them. Raises ConfigError."""
    found = []
    for text in texts:
        try:
            entries = acl_words.parse(text)
        except ValueError as error:
            raise ConfigError(f"{origin} {error}") from None
        for entry in entries:
            creation = messages.CreateAclsRequest.AclCreation(
                resource_type=entry.resource_type,
                resource_name=entry.name,
                resource_pattern_type=entry.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            found.append((f"{origin} {text}", creation))
    return found


def apply(properties: dict[str, tuple[str, str]]) -> None:
    """Have the broker ask its authorizer, which without ACLs nobody needs. Another one that the settings name stays."""
    if not properties.get("authorizer.class.name", ("", ""))[0].strip():
        properties["authorizer.class.name"] = (AUTHORIZER, ORIGIN)
