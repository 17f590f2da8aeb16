"""The files of a log directory as any bytes: a valid prefix, or StorageFailure; small files are read as values or as
missing."""

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
    """The files of a directory with one log of a few segments, epochs and producers, stopped cleanly."""
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
    """The number of a file, how the last broker stopped, the file's content."""
    number = draw.randrange(len(image()))
    return bytes((number, draw.randrange(3))) + image()[number][1]


# How the last broker stopped: as it should, killed after a checkpoint, killed before the first one.
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
            # Nothing before the recovery point was checked, so what a flipped byte gives is the reader's to find.
            offset += 1
    if recovered:
        raise Finding(f"reading comes no further than {offset} of {log.end_offset}")


def check_file(data: bytes) -> bool:
    """A directory with one file replaced: it opens, reads, is appended to and closes, or says that the disk is at
    fault."""
    if len(data) < 2:
        return False
    number = data[0] % len(image())
    disk = _disk(number, data[2:], data[1] % 3)
    try:
        directory = open_directory(disk=disk)
        log = open_log(directory, **SMALL)
        # Without a recovery point every batch was checked, whatever the other files say.
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
    """The number of a reader, and some file's content."""
    return bytes((draw.randrange(len(READERS)),)) + draw.choice(image())[1]


def check_small_file(data: bytes) -> bool:
    """A value or none; never an error."""
    if not data:
        return False
    return bool(READERS[data[0] % len(READERS)](data[1:]))


TARGETS = (
    Target("files", 3, file_example, check_file),
    Target("small files", 40, small_file_example, check_small_file),
)
