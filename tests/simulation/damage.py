"""Damage to the files of a broker: the kinds of damage, a broker with files of all kinds, and the checks after a start.

Each kind of damage is a function of a file's content, the content of another file of the same kind, and chance. It
returns the new content, or None for a deleted file."""

from __future__ import annotations

import argparse
import functools
import itertools
import random
import re
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pykafkad.clock import ManualClock
from pykafkad.errors import ConfigError, StartFailure, StorageFailure
from pykafkad.log.partition_log import VERIFIED_CLIENT
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World

START_MS = 1_700_000_000_000
BATCHES = 60
RECORDS_PER_BATCH = 4
PARTITIONS = 2
TOPIC = "t"
FAR = 1_000_000_000

SETTINGS: dict[str, Any] = {
    "log_segment_bytes": 1_048_576,
    "log_index_interval_bytes": 2048,
    "offsets_topic_num_partitions": 2,
    "internal_metadata_log_segment_bytes": 4096,
    "log_retention_ms": 86_400_000,
    "metadata_log_max_record_bytes_between_snapshots": 2000,
}

# The kinds of files: a name, and the pattern of the paths on disk.
KINDS = {
    "index": r"/t-\d/\d{20}\.index",
    "timeindex": r"/t-\d/\d{20}\.timeindex",
    "txnindex": r"/t-\d/\d{20}\.txnindex",
    "snapshot": r"/t-\d/\d{20}\.snapshot",
    "leader-epoch-checkpoint": r"/t-\d/leader-epoch-checkpoint",
    "partition.metadata": r"/t-\d/partition\.metadata",
    "recovery-point": r"/recovery-point-offset-checkpoint",
    "log-start": r"/log-start-offset-checkpoint",
    "high-watermark": r"/replication-offset-checkpoint",
    "meta.properties": r"/meta\.properties",
    "quorum-state": r"/quorum-state",
    "metadata-index": r"/__cluster_metadata-0/\d{20}\.(time)?index",
    "metadata-snapshot": r"/\d{20}-\d{10}\.checkpoint",
    "clean-shutdown": r"/\.kafka_cleanshutdown",
    "bootstrap": r"/bootstrap\.checkpoint",
    "offsets-index": r"/__consumer_offsets-\d+/\d{20}\.(time)?index",
    "offsets-snapshot": r"/__consumer_offsets-\d+/\d{20}\.snapshot",
}


def _gone(content: bytes, other: bytes, chance: random.Random) -> bytes | None:
    return None


def _emptied(content: bytes, other: bytes, chance: random.Random) -> bytes | None:
    return b""


def _cut(content: bytes, other: bytes, chance: random.Random) -> bytes | None:
    return content[: chance.randrange(len(content))] if content else content


def _halved(content: bytes, other: bytes, chance: random.Random) -> bytes | None:
    """Cut between two entries, so that the rest can be parsed."""
    return content[: len(content) // 2 // 24 * 24]


def _zeroed(content: bytes, other: bytes, chance: random.Random) -> bytes | None:
    return bytes(len(content))


def _noise(content: bytes, other: bytes, chance: random.Random) -> bytes | None:
    return chance.randbytes(len(content))


def _flipped(content: bytes, other: bytes, chance: random.Random) -> bytes | None:
    changed = bytearray(content)
    if changed:
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _swapped(content: bytes, other: bytes, chance: random.Random) -> bytes | None:
    return other


def _doubled(content: bytes, other: bytes, chance: random.Random) -> bytes | None:
    return content + content


def _future(content: bytes, other: bytes, chance: random.Random) -> bytes | None:
    """Move offsets far beyond the end: all offsets of a text file; else an entry is added with such an offset."""
    if content[:1] in (b"0", b"{", b"v") and not content.startswith(b"\0"):
        return re.sub(rb"(?<= )(\d+)$", lambda found: b"%d" % (int(found[1]) + FAR), content, flags=re.MULTILINE)
    far = FAR.to_bytes(4, "big")
    return (
        content + (START_MS + FAR).to_bytes(8, "big") + far
        if len(content) % 12 == 0 and len(content) % 8
        else content + far + far
    )


DAMAGES: dict[str, Callable[[bytes, bytes, random.Random], bytes | None]] = {
    "gone": _gone,
    "emptied": _emptied,
    "cut": _cut,
    "halved": _halved,
    "zeroed": _zeroed,
    "noise": _noise,
    "flipped": _flipped,
    "swapped": _swapped,
    "doubled": _doubled,
    "future": _future,
}


def files_of(disk: MemoryDisk, kind: str) -> list[str]:
    """The sorted paths of the files of a kind."""
    # A thread may add synced files meanwhile.
    return sorted(path for path in list(disk.files) if re.fullmatch(".*" + KINDS[kind], path))


def copy_of(disk: MemoryDisk) -> MemoryDisk:
    """Another disk with the same files and no locks."""
    twin = MemoryDisk()
    twin.directories = set(disk.directories)
    for path, content in list(disk.files.items()):
        twin.files[path] = content.copy()
    return twin


@functools.cache
def build(left: str) -> tuple[MemoryDisk, dict[str, Any]]:
    """A disk with a broker's files, stopped as `left` says, and the result of `observe`. Callers must not change it."""
    disk = MemoryDisk()
    world = World("/data", disk=disk, clock=ManualClock(START_MS), **SETTINGS)
    world.create_topic(TOPIC, PARTITIONS)
    for index in range(PARTITIONS):
        fill(world, index)
        world.turn()
    commit(world, 7)
    for number in range(20):
        world.create_topic(f"more-{number}")
    for log in world.broker.partitions:
        if log.topic == TOPIC:
            log.delete_records(5 + log.partition)
    for job in world.broker.directory.sync_jobs():
        job.run()
        job.finish()
    world.broker.directory.checkpoint()
    while len(files_of(disk, "metadata-snapshot")) < 2:
        # A thread syncs it.
        world.runtime.offload.close()
        world.advance(0.01)
    expected = observe(world)
    if left == STOPPED:
        world.stop()
    else:
        disk.kill()
    if left == MARKED:
        disk.write("/data/.kafka_cleanshutdown", b'{"version":0,"brokerEpoch":3}')
    return copy_of(disk), expected


def fill(world: World, index: int) -> None:
    """Append plain, idempotent and transactional batches, some aborted, in three leader epochs, with unordered
    timestamps."""
    log = world.broker.partitions.get(TOPIC, index)
    chance = random.Random(index)
    sequences = [0, 0, 0]
    for number in range(BATCHES):
        producer = number % 3
        timestamp_ms = START_MS + number * 1000 - (5000 if number % 10 == 9 else 0)
        records = [(b"%d" % number, chance.randbytes(14_000 + 900 * index)) for _ in range(RECORDS_PER_BATCH)]
        fields: dict[str, Any] = {}
        if producer:
            fields = {"producer_id": 100 + producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
            fields["is_transactional"] = producer == 2
            sequences[producer] += RECORDS_PER_BATCH
        log.append(
            memoryview(build_batch(records, timestamp_ms=timestamp_ms, **fields)), START_MS, origin=VERIFIED_CLIENT
        )
        if number in (20, 40):
            log.write_pending()
            log.assign_epoch(log.leader_epoch + 1)
        if number % 12 == 11 and number < BATCHES - 6:
            log.append_end_marker(102, 0, 0, timestamp_ms, is_abort=number % 24 == 11)
    log.write_pending()
    log.advance_high_watermark(log.end_offset)


def commit(world: World, offset: int) -> None:
    """Commit offsets of two groups."""
    peer = world.connect()
    for group in ("g1", "g2"):
        request = messages.OffsetCommitRequest
        partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = request.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
        for _ in range(50):
            asked = messages.FindCoordinatorRequest(key=group, key_type=0)
            if peer.ask(asked, 1).error_code == 0:
                break
            world.advance(0.1)
        answer = peer.ask(request(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=[topic]), 7)
        assert answer.topics[0].partitions[0].error_code == 0, answer


def observe(world: World) -> dict[str, Any]:
    """The data that clients can see, as plain values to compare."""
    seen: dict[str, Any] = {"topics": sorted(world.broker.image.topics)}
    for index in range(PARTITIONS):
        log = world.broker.partitions.get(TOPIC, index)
        seen[f"offsets {index}"] = log.log_start_offset, log.high_watermark, log.end_offset, log.last_stable_offset
        seen[f"batches {index}"] = batches = read_all(log, 120_000)
        seen[f"whole {index}"] = read_all(log, 1 << 20) == batches
        middle = range(log.log_start_offset, log.end_offset, 7)
        seen[f"single {index}"] = [head_of(log.read(offset, 1, end_offset=log.end_offset).pread()) for offset in middle]
        times = range(START_MS - 1500, START_MS + BATCHES * 1000 + 2000, 1500)
        seen[f"times {index}"] = [log.offset_for_timestamp(time_ms) for time_ms in times], log.max_timestamp_offset()
        seen[f"aborted {index}"] = aborted(log)
        seen[f"epochs {index}"] = list(log.epochs.entries)[:3]
        seen[f"producers {index}"] = {
            each: (entry.epoch, entry.next_sequence, entry.transaction_offset) for each, entry in log.producers.items()
        }
    request = messages.OffsetFetchRequest
    asked = [request.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    seen["committed"] = [
        world.connect().ask(request(group_id=group, topics=asked), 5).topics[0].partitions[0].committed_offset
        for group in ("g1", "g2")
    ]
    return seen


def head_of(data: bytes) -> tuple[int, bytes]:
    """(base offset, checksum) of the first batch."""
    return int.from_bytes(data[:8], "big"), data[17:21]


def read_all(log: Any, max_bytes: int) -> list[tuple[int, bytes]]:
    """(base offset, checksum) of every batch, read as a consumer reads."""
    found, offset = [], log.log_start_offset
    while offset < log.end_offset:
        data = log.read(offset, max_bytes, end_offset=log.end_offset).pread()
        position = 0
        while position + 61 <= len(data):
            found.append(head_of(data[position : position + 61]))
            offset = found[-1][0] + int.from_bytes(data[position + 23 : position + 27], "big") + 1
            position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        assert position == len(data), f"a read at {offset} ends within a batch"
    return found


def aborted(log: Any) -> set[tuple[int, int]]:
    """(producer id, first offset) of every aborted transaction that a reader gets."""
    found, offset = set(), log.log_start_offset
    while offset < log.last_stable_offset:
        piece = log.read(offset, 150_000, end_offset=log.last_stable_offset)
        found |= {(each.producer_id, each.first_offset) for each in log.aborted_transactions(offset, piece)}
        data = piece.pread()
        position = 0
        while position < len(data):
            offset = head_of(data[position:])[0] + int.from_bytes(data[position + 23 : position + 27], "big") + 1
            position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return found


# "Marked" has the marker of a clean stop after a kill, as a copy of a running broker's directory may have.
STOPPED, KILLED, MARKED = LEFT = "stopped", "killed", "killed, with the marker of a clean stop"
SERVED, REFUSED = "served", "refused"


def start(disk: MemoryDisk, seed: int) -> World:
    """Start a broker on the files."""
    return World("/data", disk=disk, clock=ManualClock(START_MS + 1000), seed=seed, **SETTINGS)


def do_damage(disk: MemoryDisk, kind: str, name: str, chance: random.Random) -> tuple[MemoryDisk, str]:
    """A copy of the disk with one file of the kind damaged, and the path of that file."""
    paths = files_of(disk, kind)
    path = chance.choice(paths)
    others = [other for other in paths if other != path and other.rpartition(".")[2] == path.rpartition(".")[2]]
    other = chance.choice(others or [path])
    twin = copy_of(disk)
    content = DAMAGES[name](bytes(twin.files[path].seen), bytes(twin.files[other].seen), chance)
    if content is None:
        twin.unlink(path)
    else:
        twin.write(path, content, sync=True)
    return twin, path


def outcome(disk: MemoryDisk, path: str, kind: str, name: str, expected: dict[str, Any], *, clean: bool) -> str:
    """Start twice on the damaged files; returns SERVED or REFUSED. The second start must serve the same as the first.

    Raises AssertionError if wrong data is served, or if a refusal does not name the damaged file."""
    worlds = []
    try:
        world = start(disk, seed=2)
        worlds.append(world)
        if (kind, name) == ("metadata-snapshot", "swapped"):
            # Only the name of a metadata snapshot says its offset, as in Kafka. So a swapped one cannot be recognised,
            # and the broker only has to start or refuse.
            return SERVED
        found = observe(world)
        check(kind, name, expected, found, clean=clean)
        world.stop()
        worlds.append(start(disk, seed=3))
        again = observe(worlds[-1])
        check(
            kind,
            name,
            {**found, "aborted 0": expected["aborted 0"], "aborted 1": expected["aborted 1"]},
            again,
            clean=clean,
        )
    except (ConfigError, StartFailure, StorageFailure) as refusal:
        assert path in str(refusal), f"{refusal} does not name {path}"
        return REFUSED
    finally:
        # The offload threads keep the broker and the disk alive, so they are ended.
        for each in worlds:
            each.runtime.offload.close()
            each.runtime.cpu_offload.close()
    return SERVED


def check(kind: str, name: str, expected: dict[str, Any], found: dict[str, Any], *, clean: bool) -> None:
    """Check that the same data is served, except where Kafka cannot detect the damage either."""
    differing = {key for key in expected if expected[key] != found[key]}
    for index in range(PARTITIONS):
        if kind == "log-start" and not (name == "future" and not clean):
            # Without this file a log starts with its first segment, so deleted records come back. With a wrong offset
            # the log starts there.
            if name != "flipped":
                assert set(expected[f"batches {index}"]) <= set(found[f"batches {index}"]), "records are lost"
            differing -= {f"{what} {index}" for what in ("offsets", "batches", "single", "times", "epochs")}
        if kind == "log-start" and name == "future" and not clean:
            # A log that ends below its start looks as if a power loss took its records after they were deleted, so it
            # becomes empty.
            differing -= {key for key in differing if key.endswith(f" {index}")}
        if kind == "txnindex" and name == "gone":
            # A segment without aborted transactions has no such file.
            assert found[f"aborted {index}"] <= expected[f"aborted {index}"]
            differing -= {f"aborted {index}"}
    assert not differing, "; ".join(
        f"{key}: {str(expected[key])[:200]} became {str(found[key])[:200]}" for key in sorted(differing)
    )


def run(seeds: Iterable[int], kinds: Iterable[str] = tuple(KINDS)) -> Iterator[tuple[str, str]]:
    """Do every kind of damage to every kind of file after every kind of stop, once per seed.

    Yields (damage, outcome)."""
    built = {left: build(left) for left in LEFT}
    for seed, left, kind, name in itertools.product(seeds, built, kinds, DAMAGES):
        disk, expected = built[left]
        if not files_of(disk, kind):
            continue
        twin, path = do_damage(disk, kind, name, random.Random(f"{seed} {kind} {name}"))
        what = f"{name} {path} of a broker that was {left}"
        try:
            yield what, outcome(twin, path, kind, name, expected, clean=left != KILLED)
        except Exception as error:
            repeat = f"python -m tests.simulation.damage --first {seed} --rounds 1 --kind {kind}"
            yield what, f"{type(error).__name__}: {error}; repeat with: {repeat}"


def main() -> int:
    """Run rounds of damage and print the outcomes."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.damage", description="damage to the files of a broker"
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="how often each kind of damage is done to a file of each kind (default 5)"
    )
    parser.add_argument("--first", type=int, help="the first seed (default: anywhere)")
    parser.add_argument("--kind", choices=sorted(KINDS), action="append", help="only files of this kind")
    options = parser.parse_args()
    first = secrets.randbelow(1 << 40) if options.first is None else options.first
    print(f"seeds {first} to {first + options.rounds - 1}", flush=True)
    counts: Counter[str] = Counter()
    for what, came in run(range(first, first + options.rounds), options.kind or tuple(KINDS)):
        counts[came if came in (SERVED, REFUSED) else "failures"] += 1
        if came not in (SERVED, REFUSED):
            print(f"{what}: {came}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return 1 if counts["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
