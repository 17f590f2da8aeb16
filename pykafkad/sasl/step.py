"""What comes of one token that a client sent in a login."""

from __future__ import annotations

from collections import namedtuple

GOES_ON, DONE, REFUSED = "goes on", "done", "refused"

Step = namedtuple("Step", ("outcome", "token", "problem"), defaults=(b"", None))
Step.__doc__ = """`outcome` is one of the three above, `token` are the bytes for the client, `problem` is why the client
is refused, in a sentence that may be told to it (None: its credentials are wrong, and nothing more is told)."""
