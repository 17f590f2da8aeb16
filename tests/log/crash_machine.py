"""One log under random operations, faults and crashes, from one seed, compared with a model (`crash_model.py`).

These invariants are checked after every operation and every restart (numbers in brackets are those of the reference
list of a log's invariants):

* Offsets are dense, and a refused batch uses none [1]. Batches ascend and do not straddle segments [2, 12].
* Reads return exactly the appended bytes [3, 5]. Leader epochs agree with the batches [4, 26, 75].
* start <= stable <= high watermark <= written <= end. The start never falls while running, and after a crash it falls
  at most to the last checkpoint [6, 7].
* Reads and look-ups by time agree with a scan, and make progress [8, 10, 11].
* After a restart the log is a prefix of the appended batches: with all written ones after a kill, and all synced ones
  after a power loss. A second restart gives the same log [9].
* Sequences are consecutive. A repeated batch is answered with its first offset or refused. The producer state agrees
  with the log [28-31, 34]."""

from __future__ import annotations

import errno
import random

from pykafkad.clock import ManualClock
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.log import partition_log
from pykafkad.wire.batch import build_batch
from tests.log.crash_model import Broken, CrashModel, Row, must
from tests.log.manual_writer import end_turn, manual_writer
from tests.log.settings import NOW_MS, TOPIC_ID, open_directory, topic_settings
from tests.simulation.crash_disk import CrashDisk

STEPS = 45
FAULTS = ("write", "write", "sync", "open", "create", "rename", "truncate", "read")


class CrashMachine(CrashModel):
    """See the module. `trace` lists the operations so far."""

    def __init__(self, seed: int) -> None:
        self.chance = draw = random.Random(f"crashes {seed}")
        self.disk = CrashDisk()
        self.disk.names_apart = random.Random(f"names {seed}").random() < 0.5
        self.clock = ManualClock()
        self.settings = topic_settings(
            segment_bytes=draw.choice((700, 1500, 5000)),
            index_interval_bytes=draw.choice((0, 150, 4096)),
            segment_index_bytes=draw.choice((24, 1 << 20)),
            retention_bytes=draw.choice((-1, 3000)),
            retention_ms=draw.choice((-1, 5000)),
            segment_ms=draw.choice((2000, 1 << 40)),
        )
        self.faulty = draw.random() < 0.6
        writing = random.Random(f"writing {seed}")
        # From which size on batches are written without being gathered, and beside the loop; None: never.
        self.direct_from_bytes = writing.choice((partition_log.DIRECT_WRITE_BYTES, 150, 400))
        self.beside_from_bytes = writing.choice((None, 150, 300))
        self.limit_bytes = writing.choice((125, 500, 1 << 18))
        super().__init__()
        self.now_ms = NOW_MS
        self.trace: list[str] = []
        self.restarts = 0
        self._open()

    # -- running -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run one seed. Raises `Broken`, or any exception that the log did not handle."""
        usual = partition_log.DIRECT_WRITE_BYTES
        partition_log.DIRECT_WRITE_BYTES = self.direct_from_bytes
        try:
            self._run()
        finally:
            partition_log.DIRECT_WRITE_BYTES = usual

    def _run(self) -> None:
        operations = [
            (self.append, 30), (self.append_idempotent, 25), (self.repeat, 8), (self.refused, 5), (self.write, 25),
            (self.read, 12), (self.look_up, 6), (self.flush, 5), (self.sync_sealed, 6), (self.roll, 3),
            (self.delete_records, 4), (self.retention, 5), (self.checkpoint, 6), (self.lead, 4),
            (self.remove_due_deletions, 4), (self.wait, 6), (self.fault, 6), (self.stop, 3), (self.kill, 3),
            (self.lose_power, 4),
        ]  # fmt: skip
        if self.beside_from_bytes is not None:
            operations.append((self.end_writes, 25))
        # Swarm testing: each seed leaves out some operations, so that the others meet more often.
        chosen = [row for row in operations if row[1] >= 12 or self.chance.random() < 0.7]
        for operation in self.chance.choices([row[0] for row in chosen], [row[1] for row in chosen], k=STEPS):
            self._step(operation)
        self._step(self.write_all)
        self._step(self.chance.choice((self.stop, self.kill, self.lose_power)))

    def _step(self, operation) -> None:
        self.trace.append(operation.__name__)
        try:
            operation()
        except StorageFailure as failure:
            self.trace[-1] += f" failed: {failure}"
        self._settle()
        self.check()
        if self.log.offline is not None and self.chance.random() < 0.5:
            self.trace.append("restart after the failure")
            self.kill()
            self.check()

    def _settle(self) -> None:
        # Move the batches that have reached the file from `pending` to `rows`.
        written = self.log.written_end_offset
        while self.pending and self.pending[0].last < written:
            self.rows.append(self.pending.pop(0))
        if self.log.offline is None:
            self.synced = max(self.synced, self.log.recovery_point)

    # -- operations ----------------------------------------------------------------------------------------------------

    def _send(self, producer: tuple[int, int, int] = (-1, -1, -1)) -> None:
        draw = self.chance
        count = draw.choice((1, 1, 2, 5))
        timestamps = tuple(self.now_ms + draw.randrange(-500, 500) for _ in range(count))
        records = [
            (None, draw.randbytes(draw.choice((0, 5, 60, 200)) if draw.random() > 0.03 else 4000), (), stamp)
            for stamp in timestamps
        ]
        batch = build_batch(
            records,
            codec=draw.choice((0, 0, 0, 1, 4)),
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
        )
        self._append(batch, timestamps, producer)

    def _append(self, batch: bytearray, timestamps: tuple[int, ...], producer: tuple[int, int, int]) -> None:
        end = self.log.end_offset
        if len(batch) > self.settings.segment_bytes:
            self._refuse(batch)
            return
        found = self.log.append(memoryview(batch), self.now_ms)
        must(
            found.base_offset == end and found.last_offset == end + len(timestamps) - 1,
            "appended at",
            found,
            "not at",
            end,
        )
        must(self.log.end_offset == found.last_offset + 1, "the end is", self.log.end_offset)
        self.pending.append(Row(end, found.last_offset, bytes(batch), timestamps, producer, self.epoch))

    def _refuse(self, batch: bytearray) -> None:
        end = self.log.end_offset
        try:
            self.log.append(memoryview(batch), self.now_ms)
        except KafkaError:
            must(self.log.end_offset == end, "a refused batch moved the end to", self.log.end_offset)
        else:
            raise Broken("a bad batch was let in")

    def append(self) -> None:
        """Append plain batches."""
        for _ in range(self.chance.choice((1, 1, 3))):
            self._send()

    def append_idempotent(self) -> None:
        """Append the next batch of a producer, sometimes in a new epoch."""
        producer_id = self.producer_ids[self.chance.randrange(3)]
        known = self._producers().get(producer_id)
        if not known or producer_id not in self.log.producers:
            self._send((producer_id, known[-1].producer[1] + 1 if known else 0, 0))
        elif self.chance.random() < 0.1:
            self._send((producer_id, known[-1].producer[1] + 1, 0))
        else:
            _, epoch, sequence = known[-1].producer
            self._send((producer_id, epoch, sequence + len(known[-1].timestamps)))

    def repeat(self) -> None:
        """Repeat a batch: it gets its first offset, or is refused after a restart; it is never appended."""
        producers = self._producers()
        if not producers:
            return
        producer_id = self.chance.choice(sorted(producers))
        known = producers[producer_id]
        row = self.chance.choice(known[-8:])
        if producer_id not in self.log.producers:
            return
        batch, end = bytearray(row.data), self.log.end_offset
        batch[0:8] = bytes(8)
        try:
            found = self.log.append(memoryview(batch), self.now_ms)
        except KafkaError:
            must(row not in known[-5:] or self.restarts, "a repetition of one of the last five is refused", row[:2])
            must(row is not known[-1], "a repetition of the last batch is refused", row[:2])
        else:
            must((found.base_offset, found.last_offset) == row[:2], "a repetition of", row[:2], "is answered", found)
        must(self.log.end_offset == end, "a repetition was appended")

    def refused(self) -> None:
        """Append a batch with a sequence gap, an old epoch or a wrong checksum: it is refused and changes nothing."""
        producers = {key: rows for key, rows in self._producers().items() if key in self.log.producers}
        bad = build_batch([(None, b"x")])
        if producers and self.chance.random() < 0.7:
            producer_id = self.chance.choice(sorted(producers))
            last = producers[producer_id][-1]
            epoch, sequence = last.producer[1], last.producer[2] + len(last.timestamps)
            epoch, sequence = self.chance.choice(((epoch, sequence + 1), (epoch - 1, 0), (epoch + 1, 1)))
            bad = build_batch(
                [(None, b"x")],
                timestamp_ms=self.now_ms,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
            )
            if epoch < 0:
                return
        else:
            bad[-1] ^= 1
        self._refuse(bad)

    def write(self) -> None:
        """End a turn: the gathered batches are written and may be acknowledged, but for those behind a write under
        way."""
        end_turn(self.log)
        self.log.advance_high_watermark(self.log.written_end_offset)

    def write_all(self) -> None:
        """Write everything."""
        self.log.write_pending()
        must(not self.log.writes_under_way, "something is under way")
        self.log.advance_high_watermark(self.log.written_end_offset)

    def end_writes(self) -> None:
        """Some of the writes under way end, and the loop hears of it."""
        self.writer.writes.work(self.chance.randrange(1, 4))
        self.writer.collect()

    def flush(self) -> None:
        """Write and sync."""
        self.log.flush()

    def sync_sealed(self) -> None:
        """Run the sync jobs of rolled segments, as the offload does."""
        for job in self.directory.sync_jobs():
            try:
                job.run()
            except StorageFailure as failure:
                job.failed(failure)
                raise
            job.finish()

    def roll(self) -> None:
        """Roll a new segment."""
        if self.log.offline is None:
            self.log.roll(self.now_ms)

    def delete_records(self) -> None:
        """Delete the records before a random offset up to the high watermark."""
        start, high_watermark = self.log.log_start_offset, self.log.high_watermark
        if self.log.end_offset > high_watermark:
            try:
                self.log.delete_records(self.chance.randint(high_watermark + 1, self.log.end_offset))
            except KafkaError:
                must(self.log.log_start_offset == start, "a refused deletion moved the start")
            else:
                raise Broken("records above the high watermark were deleted")
        self.log.delete_records(self.chance.randint(start, high_watermark))

    def retention(self) -> None:
        """Remove segments by age and size."""
        if self.log.offline is None:
            self.log.run_retention(self.now_ms)

    def checkpoint(self) -> None:
        """Write the offset checkpoints and leader epochs."""
        start = self.log.log_start_offset
        self.directory.checkpoint()
        self.checkpointed_start = start

    def lead(self) -> None:
        """Begin a new leader epoch."""
        if self.log.offline is None:
            self.epoch += self.chance.choice((1, 3))
            self.log.lead(self.epoch, sole_replica=True)

    def remove_due_deletions(self) -> None:
        """Remove the deleted files that are due."""
        self.now_ms += 70_000
        for path, is_directory in self.directory.take_due_deletions(self.now_ms):
            self.directory.remove(path, is_directory)

    def wait(self) -> None:
        """Let time pass."""
        self.now_ms += self.chance.choice((1, 100, 3000))

    def fault(self) -> None:
        """Let one of the next calls fail, or nearly fill the disk."""
        if not self.faulty:
            return
        if self.chance.random() < 0.3:
            self.disk.free_bytes = self.chance.randrange(600)
        else:
            operation = self.chance.choice(FAULTS)
            code = self.chance.choice((errno.EIO, errno.ENOSPC))
            self.disk.fail(
                operation,
                at=self.chance.randrange(1, 7),
                part=self.chance.randrange(300),
                sticky=self.chance.random() < 0.3,
                error=code,
            )

    # -- reading -------------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read some batches from a random offset."""
        start, end = self.log.log_start_offset, self.log.high_watermark
        if start < end:
            self._read(self.chance.randrange(start, end), self.chance.choice((1, 100, 700, 1 << 20)), end)

    def look_up(self) -> None:
        """Look an offset up by time; a scan of all records must give the same."""
        self.log.write_pending()
        self._settle()
        wanted = self.now_ms - self.chance.randrange(-600, 4000)
        start = self.log.log_start_offset
        records = (
            (row.base + at, stamp)
            for row in self.rows
            for at, stamp in enumerate(row.timestamps)
            if row.base + at >= start
        )
        expected = next(((offset, stamp) for offset, stamp in records if stamp >= wanted), None)
        found = self.log.offset_for_timestamp(wanted)
        must(
            (None if found is None else found[:2]) == expected,
            "the first record from",
            wanted,
            "on is",
            expected,
            "not",
            found,
        )

    # -- stops ---------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        self.disk.heal()
        self.disk.free_bytes = None
        self.directory = open_directory(disk=self.disk, clock=self.clock)
        self.log = self.directory.open_partition("t", 0, TOPIC_ID, self.settings)
        self.writer = manual_writer(self.beside_from_bytes, self.limit_bytes)
        self.log.writer = self.writer
        self.log.load() if not self.log.is_loaded else None
        self.log.lead(self.epoch, sole_replica=True)

    def stop(self) -> None:
        """Stop cleanly, as far as the disk allows, and start."""
        was_whole = self.log.offline is None and not self.disk._failures and self.disk.free_bytes is None
        try:
            self.directory.close()
        except StorageFailure:
            pass
        if was_whole:
            self.rows += self.pending
            self.pending = []
            self.synced = self.checkpointed_start = 0
        clean = was_whole and self.disk.exists("/data/.kafka_cleanshutdown")
        must(clean or not was_whole, "no marker after a clean stop")
        start = self.start
        self.disk.kill()
        self._open()
        if clean:
            must(
                self.directory.clean and self.log.log_start_offset == start,
                "the start moved from",
                start,
                "to",
                self.log.log_start_offset,
            )
        self._reopened([row for row in self.rows if row.last >= self.start])

    def kill(self) -> None:
        """Kill the process and start: all written batches must be there."""
        if self.writer is not None:
            # Of what is under way, some has reached the file, and nobody was told.
            self.writer.writes.work(self.chance.randrange(3))
        self.disk.kill()
        self._open()
        self._reopened([row for row in self.rows if row.last >= self.start])

    def lose_power(self) -> None:
        """Cut the power and start: all synced batches must be there."""
        if self.writer is not None:
            self.writer.writes.work(self.chance.randrange(3))
        self.disk.lose_power(self.chance)
        self.has_lost_power = True
        self._open()
        self._replace_lost_producers()
        self._reopened([row for row in self.rows if row.last < self.synced and row.last >= self.start])

    def _reopened(self, promised: list[Row]) -> None:
        """Check the log after a start: the promised batches are there, and the log is a prefix of the appended ones."""
        log, self.restarts = self.log, self.restarts + 1
        must(log.offline is None, "the start failed:", log.offline)
        everything = self.rows + self.pending
        start, end = log.log_start_offset, log.end_offset
        must(
            min(self.checkpointed_start, self.start) <= start <= max(self.start, self.checkpointed_start),
            "the start went from",
            self.start,
            "to",
            start,
        )
        kept = [row for row in everything if row.last < end]
        must(
            not promised or promised[-1].last < end,
            "the log ends at",
            end,
            "and",
            promised and promised[-1][:2],
            "was promised",
        )
        must(
            not kept or kept[-1].last + 1 == end or start == end,
            "the log ends at",
            end,
            "inside a batch or beyond the last",
        )
        self.rows, self.pending, self.start = kept, [], start
        if start == end:
            # All records are lost, and the log goes on at the start that was checkpointed.
            self.rows = [row for row in kept if row.last < start]
        self.synced = min(log.recovery_point, end)
        self.read_all()
        self._check_producers()
        if self.chance.random() < 0.3:
            self._recover_again()

    def _recover_again(self) -> None:
        def state():
            log = self.log
            files = [
                (segment.base_offset, segment.size, segment.offset_index.to_bytes(), segment.time_index.to_bytes())
                for segment in log.segments
            ]
            # A producer whose batches are all below the start may be in the snapshot or not.
            producers = {
                key: (entry.epoch, entry.next_sequence, entry.batches[-1:])
                for key, entry in log.producers.items()
                if entry.batches[-1][1] >= log.log_start_offset
            }
            return log.log_start_offset, log.end_offset, producers, files

        before = state()
        self.disk.kill()
        self._open()
        # Rebuilt indexes may have entries at other batches, so only the offsets and sizes of segments are compared.
        again = state()
        must(
            again[:3] == before[:3] and [row[:2] for row in again[3]] == [row[:2] for row in before[3]],
            "a second recovery gives",
            again,
            "after",
            before,
        )
        self.read_all()
