"""Bugs to plant in the writing of large batches beside the loop."""

from __future__ import annotations

from tests.planted.plant import Plant

LARGE = ("tests/log/test_large_writes.py", "tests/server/test_large_writes.py")

PLANTS = (
    Plant(
        "a write goes on behind one that failed",
        "log/large_writes.py",
        "if log.write_failure is None:",
        "if True:",
        LARGE,
    ),
    Plant(
        "a small batch is written before the large one in front of it",
        "log/log_files.py",
        "if self.writes_under_way:\n    large_writes.wait(self)",
        "",
        LARGE,
    ),
    Plant(
        "two threads write to one log",
        "server/log_writer.py",
        "if write.log not in self._at_work:\n    break",
        "break",
        LARGE,
    ),
    Plant(
        "once writes were slow, they are taken for slow for ever",
        "server/log_writer.py",
        "return self._until_probe != 0",
        "return True",
        LARGE,
    ),
    Plant(
        "a frame's buffer is used again while its batch is written",
        "server/frame_buffers.py",
        "self.served = None\nreturn buffer",
        "return buffer",
        LARGE,
    ),
    Plant(
        "a connection goes on above the bound of the writes under way",
        "server/connection.py",
        "elif pool.is_full:",
        "elif False:",
        LARGE,
    ),
    Plant(
        "frames that are read together go on above the bound of the writes under way",
        "server/connection.py",
        "size > OWN_BUFFER_FROM_BYTES and self.pool.is_full",
        "False",
        ("tests/server/test_receiving.py",),
    ),
    Plant(
        "an answer leaves before its large batch is written",
        "server/commits.py",
        "if log.writes_under_way:\n    behind[log] = True",
        "",
        LARGE,
    ),
)
