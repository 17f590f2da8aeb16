"""What a new connection to another node begins with: which versions of each API the other side has (KIP-35).

A `Greeting` has no sockets and no time: `next` is the request to send, `answered` takes its answer, until `next` is
None. A node that does not know the version of ApiVersions in which it is asked answers in version 0 which ones it knows
(KIP-511), and is asked again."""

from __future__ import annotations

from pykafkad import __version__, errors
from pykafkad.errors import ProtocolError
from pykafkad.handlers import table
from pykafkad.wire import frames, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.table import Api

_UNSUPPORTED = errors.UNSUPPORTED_VERSION.to_bytes(2, "big")


def answer_version(key: int, version: int, body: bytes | memoryview) -> int:
    """The version in which an answer to a request of that key and version is written: who does not know a version of
    ApiVersions says so in version 0."""
    return 0 if key == frames.API_VERSIONS and bytes(body[:2]) == _UNSUPPORTED else version


class Greeting:
    """The greeting of one connection. `version` tells what is known when it is over."""

    __slots__ = ("_asks_in", "_ranges")

    def __init__(self) -> None:
        row = _own(frames.API_VERSIONS)
        self._asks_in: int | None = row.max_version
        """The version in which the other side is to be asked; None when it has told."""
        self._ranges: dict[int, tuple[int, int]] = {}

    def next(self) -> tuple[messages.Struct, int] | None:
        """The request to send and its version; None if the greeting is over."""
        if self._asks_in is None:
            return None
        request = messages.ApiVersionsRequest(client_software_name="pykafkad", client_software_version=__version__)
        return request, self._asks_in

    def answered(self, answer: messages.Struct) -> None:
        """The answer to the request came. Raises ProtocolError for one that ends the connection."""
        assert isinstance(answer, messages.ApiVersionsResponse)
        self._ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        if answer.error_code == errors.NONE:
            self._asks_in = None
            return
        row = _own(frames.API_VERSIONS)
        version = self.version(row) if answer.error_code == errors.UNSUPPORTED_VERSION else None
        if version is None or version == self._asks_in:
            raise ProtocolError(f"ApiVersions {self._asks_in} is answered with {errors.name(answer.error_code)}")
        self._asks_in = version

    def version(self, row: Api) -> int | None:
        """The newest version of an API that both sides have; None if there is none."""
        theirs = self._ranges.get(row.key)
        if theirs is None or row.min_version is None or row.max_version is None:
            return None
        version: int = min(theirs[1], row.max_version)
        return version if version >= max(theirs[0], row.min_version) else None

    def lack(self, row: Api) -> str:
        """What stands in the way of a request of an API without a common version, as the end of a sentence."""
        theirs = self._ranges.get(row.key)
        if theirs is None:
            return f"does not answer {row.name}"
        return (
            f"answers {row.name} in the versions {theirs[0]}-{theirs[1]}, and this node asks in "
            f"{row.min_version}-{row.max_version}"
        )


def _own(key: int) -> Api:
    row = table.by_key(key)
    assert row is not None
    return row
