"""What comes of one token that a client sent in a login."""

from __future__ import annotations

from collections import namedtuple

GOES_ON, DONE, REFUSED = "goes on", "done", "refused"

Step = namedtuple("Step", ("outcome", "token", "problem", "is_silent", "reason"), defaults=(b"", None, False, None))
Step.__doc__ = """`outcome` is one of the three above, `token` are the bytes for the client (None: nothing, not even an
empty token), `problem` is why the client is refused, in a sentence that may be told to it (None: its credentials are
wrong, and nothing more is told). `is_silent`: the connection ends without an answer. `reason` is for the broker's log
alone."""
