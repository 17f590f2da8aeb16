"""Targets for the files of a log directory.

Any bytes give a valid prefix or StorageFailure. Small files are read as values or count as missing.
"""

from __future__ import annotations

import random
from functools import cache

from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.log import checkpoints
from pykafkad.log.leader_epochs import LeaderEpochs
from pykafkad.log.offset_index import OffsetIndex
from pykafkad.log.producers import ProducerStates
from pykafkad.log.time_index import TimeIndex
from pykafkad.wire.batch import validate
from tests.fuzz.target import Finding, Target
from tests.log.settings import NOW_MS, append, batch, open_directory, open_log
from tests.simulation.disk import MemoryDisk

SMALL = {"segment_bytes": 700, "index_interval_bytes": 150}
MAX_READS = 200


@cache
def image() -> tuple[tuple[str, bytes], ...]:
    """The files of a cleanly stopped directory: one log with a few segments, epochs and producers."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    directory.write_meta(cluster_id="c", node_id=1, directory_id="AAAAAAAAAAAAAAAAAAAAAQ")
    log = open_log(directory, **SMALL)
    for number in range(12):
        append(
            log,
            batch(
                3,
                20,
                timestamp_ms=NOW_MS + number,
                producer_id=number % 2,
                producer_epoch=0,
                base_sequence=number // 2 * 3,
            ),
        )
        if number % 5 == 4:
            log.lead(number, sole_replica=True)
    log.delete_records(4)
    directory.checkpoint()
    directory.close(broker_epoch=3)
    return tuple(sorted((path, bytes(content.data)) for path, content in disk.files.items()))


def file_example(draw: random.Random) -> bytes:
    """The number of a file, the way in which the last broker stopped, the file's content."""
    number = draw.randrange(len(image()))
    return bytes((number, draw.randrange(3))) + image()[number][1]


# The ways in which the last broker stopped: cleanly, killed after a checkpoint, killed before the first checkpoint.
CLEANLY, CHECKPOINTED = 0, 1


def _disk(number: int, content: bytes, stopped: int) -> MemoryDisk:
    missing = {CLEANLY: (), CHECKPOINTED: (checkpoints.CLEAN_SHUTDOWN_FILE,)}.get(
        stopped, (checkpoints.CLEAN_SHUTDOWN_FILE, checkpoints.RECOVERY_POINT_FILE, checkpoints.LOG_START_FILE)
    )
    disk = MemoryDisk()
    disk.make_directories("/data/t-0")
    for at, (path, data) in enumerate(image()):
        if not path.endswith(missing):
            disk.write(path, content if at == number else data, sync=True)
    return disk


def _read_all(log, recovered: bool) -> None:
    offset = log.log_start_offset
    for _ in range(MAX_READS):
        if offset >= log.end_offset:
            return
        found = log.read(offset, 300, end_offset=log.end_offset)
        if found is None:
            if recovered:
                raise Finding(f"nothing to read at {offset} of {log.end_offset}")
            return
        data = found.pread()
        while data and recovered:
            size = 12 + int.from_bytes(data[8:12], "big")
            offset = validate(data[:size]).end_offset
            data = data[size:]
        if not recovered:
            # Batches before the recovery point are not checked at start, so a reader finds their flipped bytes.
            offset += 1
    if recovered:
        raise Finding(f"reading comes no further than {offset} of {log.end_offset}")


def check_file(data: bytes) -> bool:
    """A directory with one replaced file opens, is read, appended to and closed, or reports a storage failure."""
    if len(data) < 2:
        return False
    number = data[0] % len(image())
    disk = _disk(number, data[2:], data[1] % 3)
    try:
        directory = open_directory(disk=disk)
        log = open_log(directory, **SMALL)
        # Without a recovery point every batch was checked at start, whatever the other files have.
        _read_all(log, recovered=data[1] % 3 > CHECKPOINTED)
        log.offset_for_timestamp(NOW_MS + 3)
        log.max_timestamp_offset()
        end_offset = log.end_offset
        append(log, batch(2, 30), batch(2, 250))
        if log.end_offset != end_offset + 4:
            raise Finding(f"two batches of two at {end_offset}, now {log.end_offset}")
        log.run_retention(NOW_MS)
        directory.checkpoint()
        directory.close()
    except (StorageFailure, KafkaError):
        return False
    return True


READERS = (
    lambda data: OffsetIndex.from_bytes(data, 1 << 20),
    TimeIndex.from_bytes,
    ProducerStates.from_snapshot,
    lambda data: LeaderEpochs.from_text(data.decode("utf-8", "replace")),
    checkpoints.decode_offsets,
    checkpoints.decode_partition_metadata,
    checkpoints.decode_properties,
    checkpoints.decode_clean_shutdown,
)


def small_file_example(draw: random.Random) -> bytes:
    """The number of a reader, and the content of a file."""
    return bytes((draw.randrange(len(READERS)),)) + draw.choice(image())[1]


def check_small_file(data: bytes) -> bool:
    """The result is a value or None, never an error."""
    if not data:
        return False
    return bool(READERS[data[0] % len(READERS)](data[1:]))


TARGETS = (
    Target("files", 3, file_example, check_file),
    Target("small files", 40, small_file_example, check_small_file),
)
