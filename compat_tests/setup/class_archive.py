"""An archive of Kafka's classes as the virtual machine loads them: with it a Kafka starts with half the work.

The tests start a hundred Kafkas and tools, and most of them live for seconds. `make` runs one Kafka that writes the
archive when it stops; a virtual machine that cannot use the archive starts as without it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from compat_tests.setup.cache import exclusively


def archive_of(jars: Path) -> Path:
    """Where the archive is, or will be."""
    return jars.parent / "classes.jsa"


def options(jars: Path) -> list[str]:
    """Options of the virtual machine for the archive; none if there is no archive."""
    archive = archive_of(jars)
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"] if archive.exists() else []


def make(jars: Path) -> Path | None:
    """Write the archive unless it is there; None if the virtual machine did not write one."""
    # Imported late: brokers import their options from here.
    from compat_tests.brokers.kafka_process import KafkaProcess

    archive = archive_of(jars)
    with exclusively("class-archive"), tempfile.TemporaryDirectory(dir=jars.parent) as scratch:
        if archive.exists():
            return archive
        written = Path(scratch) / "written.jsa"
        kafka = KafkaProcess(jars, Path(scratch))
        # An archive is written only for classes that are all in jars, and what formats at the start is not.
        kafka.format()
        kafka.start([f"-XX:ArchiveClassesAtExit={written}"])
        kafka.stop()
        if not written.exists():
            return None
        # The archive gets its final name only once it is complete.
        os.rename(written, archive)
    return archive
