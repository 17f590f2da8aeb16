"""Java programs of the tests, compiled once: a virtual machine that is given a source compiles it at every start."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from compat_tests.setup.cache import exclusively


def compiled(source: Path, jars: Path) -> Path:
    """The folder beside `jars` with the classes of `source`; it is made anew when the source has changed."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    classes = jars.parent / f"{source.stem}-{digest}"
    with exclusively("compiled"):
        if not classes.exists():
            with tempfile.TemporaryDirectory(dir=jars.parent) as scratch:
                written = Path(scratch) / "classes"
                command = ["javac", "-cp", f"{jars}/*", "-d", str(written), str(source)]
                done = subprocess.run(command, capture_output=True, text=True)
                assert done.returncode == 0, f"javac does not compile {source}:\n{done.stderr[-3000:]}"
                # The folder gets its final name only once it is complete.
                os.rename(written, classes)
    return classes
