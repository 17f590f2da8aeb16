"""What comes back from another node in place of an answer, and how a connection to it is secured (`peer.py`)."""

from __future__ import annotations

from collections import namedtuple

Failure = namedtuple("Failure", ("reason", "is_final"), defaults=(False,))
Failure.__doc__ = """What a request comes back as when it has no answer. It `is_final` where another attempt at the same
node would come to the same: the node has no version of the API that this one knows."""

DISCONNECTED = Failure("disconnected")
"""The connection ended before the answer came: whether the request was served is not known."""
TIMED_OUT = Failure("timed out")
"""No answer came in time: whether the request was served is not known."""
REFUSED = Failure("refused")
"""The queue was full, or the peer is closed: the request was not sent."""

Security = namedtuple("Security", ("tls", "credentials"))
Security.__doc__ = (
    """How a connection is secured: by a `TlsClient`, and by `Credentials` of a login; each may be None."""
)

PLAIN_TEXT = Security(None, None)
