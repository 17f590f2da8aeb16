"""Checking a partition's files: each kind of damage is found, and intact files have no findings."""

import os
import random

import pytest

from pykafkad.disk import Disk
from pykafkad.log.checking import DAMAGE, STALE, check_partition
from tests.handlers.requests import batch, produce
from tests.simulation.world import World


@pytest.fixture
def partition(tmp_path):
    """The folder of a partition with three segments after a clean stop."""
    world = World(tmp_path / "data")
    world.create_topic("t", 1, segment_bytes=1_100_000)
    peer = world.connect()
    chance = random.Random(1)
    for sequence in range(40):
        peer.send(
            produce("t", {0: batch(chance.randbytes(60_000), producer_id=9, producer_epoch=0, base_sequence=sequence)}),
            8,
        )
    world.stop()
    folder = tmp_path / "data" / "t-0"
    assert len(list(folder.glob("*.log"))) == 3
    return folder


def found(partition):
    return [
        (finding.kind, os.path.basename(finding.path), finding.what)
        for finding in check_partition(Disk(), str(partition))
    ]


def files(partition, suffix):
    return sorted(partition.glob(f"*{suffix}"))


def change(path, position, data):
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def test_an_intact_partition_has_no_findings(partition):
    assert found(partition) == []


def test_a_flipped_byte_in_an_old_segment_is_found(partition):
    """The finding names the lost batch. The index is intact and has no finding."""
    log = files(partition, ".log")[1]
    change(log, 500_000, bytes([log.read_bytes()[500_000] ^ 1]))
    ((kind, name, what),) = found(partition)
    assert (kind, name) == (DAMAGE, log.name)
    base = int(log.stem)
    size = int.from_bytes(log.read_bytes()[8:12], "big") + 12
    number = 500_000 // size
    assert (
        what == f"{size} bytes from position {number * size} on are no whole batch: "
        f"the offsets from {base + number} to {base + number}"
    )


def test_a_batch_with_a_broken_length_is_found(partition):
    """The next batch is found by the offset index."""
    log = files(partition, ".log")[1]
    size = int.from_bytes(log.read_bytes()[8:12], "big") + 12
    change(log, 5 * size + 8, b"\xff\xff\xff\xff")
    base = int(log.stem)
    ((kind, name, what),) = found(partition)
    assert (kind, name) == (DAMAGE, log.name)
    assert (
        what
        == f"{size} bytes from position {5 * size} on are no whole batch: the offsets from {base + 5} to {base + 5}"
    )


def test_missing_offsets_are_found_in_a_log_that_was_never_compacted(partition):
    """A whole segment is missing, or batches within one."""
    _first, second, third = files(partition, ".log")
    data = third.read_bytes()
    size = int.from_bytes(data[8:12], "big") + 12
    third.write_bytes(data[:size] + data[3 * size :])
    for path in (second, *files(partition, ".index"), *files(partition, ".timeindex")):
        path.unlink()
    assert found(partition) == []
    found_now = [
        (finding.kind, os.path.basename(finding.path), finding.what)
        for finding in check_partition(Disk(), str(partition), may_have_gaps=False)
    ]
    base, end = int(second.stem), int(third.stem)
    assert found_now == [
        (DAMAGE, third.name, f"begins with offset {end}: the offsets from {base} to {end - 1} are missing before it"),
        (
            DAMAGE,
            third.name,
            f"the offsets from {end + 1} to {end + 2} are missing before the batch at position {size}",
        ),
    ]


def test_a_torn_tail_is_found(partition):
    log = files(partition, ".log")[-1]
    log.write_bytes(log.read_bytes()[:-100])
    assert [(kind, name) for kind, name, _ in found(partition) if kind == DAMAGE] == [(DAMAGE, log.name)]


def test_segments_with_overlapping_offsets_are_found(partition):
    first, second, _ = files(partition, ".log")
    second.write_bytes(first.read_bytes())
    assert found(partition)[0][:2] == (DAMAGE, second.name)


def test_an_offset_that_goes_back_is_found(partition):
    log = files(partition, ".log")[0]
    size = int.from_bytes(log.read_bytes()[8:12], "big") + 12
    change(log, size, (0).to_bytes(8, "big"))
    assert (DAMAGE, log.name, f"the batch at position {size} begins with offset 0, below 1") in found(partition)


@pytest.mark.parametrize(
    ("suffix", "spoil"),
    [
        (".index", lambda path: path.write_bytes(path.read_bytes()[:-3])),
        (".index", lambda path: change(path, 12, (77).to_bytes(4, "big"))),
        (".timeindex", lambda path: path.write_bytes(b"\xff" * 12)),
        (".timeindex", lambda path: change(path, 8, (1_000_000).to_bytes(4, "big"))),
        (".snapshot", lambda path: change(path, 8, b"\xff")),
        ("leader-epoch-checkpoint", lambda path: path.write_bytes(b"what\n")),
        ("partition.metadata", lambda path: path.write_bytes(b"version: 0\n")),
    ],
)
def test_files_that_a_start_rebuilds_are_stale(partition, suffix, spoil):
    path = files(partition, suffix)[0]
    spoil(path)
    rows = found(partition)
    assert [(kind, name) for kind, name, _ in rows] == [(STALE, path.name)], rows
