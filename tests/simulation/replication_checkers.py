"""What must hold of replicated partitions at any time (reliability: log matching, leader completeness, one leader in an
epoch, a high watermark that never falls), and of what clients were told at the end."""

from __future__ import annotations

import functools

from pykafkad.log.replica import LEADER
from pykafkad.wire.batch import crc32c, parse_header
from tests.simulation.replication_clients import batch_at, records_of


class Violation(AssertionError):
    """Something that must hold does not."""


class Checkers:
    """Looks at all brokers that run. `look` may be called at any time; it looks at what is new."""

    def __init__(self, world, losses=None, on_loss=lambda place, offset: None):
        """`losses` knows which committed records may be lost. `on_loss` is told of those behind an offset."""
        self.world = world
        self.losses = losses
        self._on_loss = on_loss
        self.lost = {}
        """(topic, partition) to (offset, epoch): behind the offset, records of earlier epochs are gone."""
        self.leaders = {}
        """(topic, partition, epoch) to the broker that leads in it."""
        self.committed = {}
        """(topic, partition) to a dict of base offset to (end offset, epoch, checksum) of each committed batch."""
        self.ends = {}
        """(topic, partition) to the highest high watermark of any leader."""
        self._seen = {}
        """(log) to (leader epoch, high watermark) as they were, and how far it was compared."""
        self.elections = 0

    def look(self):
        for node in self.world.nodes.values():
            if node.is_running and node.broker.serving:
                for log in node.broker.partitions:
                    if log.is_loaded and log.offline is None and not log.closed:
                        self._look_at(node, log)

    def _look_at(self, node, log):
        place = log.topic, log.partition
        replica = log.replica
        epoch, high_watermark = replica.leader_epoch, log.high_watermark
        if replica.role == LEADER:
            first = self.leaders.setdefault((*place, epoch), node.node_id)
            if first != node.node_id:
                raise Violation(f"{place}: {first} and {node.node_id} lead in epoch {epoch}")
        if not log.log_start_offset <= high_watermark <= log.written_end_offset:
            raise Violation(f"{place} at {node.node_id}: high watermark {high_watermark} of {log.written_end_offset}")
        incarnation, before_epoch, before, end, compared = self._seen.get(
            (node.node_id, place), (node.incarnation, epoch, 0, 0, 0)
        )
        if incarnation != node.incarnation:
            compared = 0
        elif epoch == before_epoch and high_watermark < before and replica.role == LEADER:
            raise Violation(f"{place} at {node.node_id}: its high watermark falls from {before} to {high_watermark}")
        if replica.role == LEADER and self.losses is not None:
            self._take_loss(log, place, epoch)
        if replica.role == LEADER and (place, epoch) not in self._known_leaders(place, epoch):
            self.elections += 1
            # A log that was out of service may lead late, for a broker that has not heard of its successor.
            is_newest = epoch == max(each for *led, each in self.leaders if tuple(led) == place)
            if is_newest and log.written_end_offset < self.ends.get(place, 0) and not log.writes_under_way:
                raise Violation(
                    f"{place}: {node.node_id} leads in epoch {epoch} and ends at {log.written_end_offset}, where "
                    f"{self.ends[place]} is committed"
                )
        if log.written_end_offset < end and incarnation == node.incarnation:
            compared = min(compared, log.written_end_offset)
        if high_watermark > compared:
            self._compare(node, log, place, compared, high_watermark)
            if replica.role == LEADER and epoch >= self.lost.get(place, (0, 0))[1]:
                self.ends[place] = max(self.ends.get(place, 0), high_watermark)
        self._seen[node.node_id, place] = (
            node.incarnation, epoch, high_watermark, log.written_end_offset, high_watermark,
        )  # fmt: skip

    def _take_loss(self, log, place, epoch):
        """Forget what an election without any replica that is known to have everything has lost."""
        since = self.losses.taken(place, epoch)
        if since is None:
            return
        later = [start for each, start in log.epochs.entries if each >= since]
        offset = min([*later, log.written_end_offset])
        committed = self.committed.get(place, {})
        # A follower may have told of more than was seen of its leader, which was killed before the next look.
        if offset < max((end for _, end, *_ in committed.values()), default=0) or offset < self.ends.get(place, 0):
            self.lost[place] = min(offset, self.lost.get(place, (offset, 0))[0]), since
            self.ends[place] = min(offset, self.ends.get(place, 0))
            self.committed[place] = {base: found for base, found in committed.items() if found[1] <= offset}
        # Also what was acknowledged since the last look, which `ends` does not know.
        self._on_loss(place, offset)

    def _known_leaders(self, place, epoch):
        known = self.__dict__.setdefault("_leaderships", set())
        if (place, epoch) in known:
            return {(place, epoch)}
        known.add((place, epoch))
        return ()

    def _compare(self, node, log, place, start, end):
        """The batches of a log from `start` up to its high watermark are those that all others have there."""
        committed = self.committed.setdefault(place, {})
        cut, epoch = self.lost.get(place, (0, 0))
        for found in batches(log, max(start, log.log_start_offset), end):
            if log.epochs.epoch_for(found[0]) != found[2]:
                raise Violation(f"{place} at {node.node_id}: epochs {log.epochs.entries}, where a batch is {found}")
            if found[1] > cut and found[2] < epoch:
                # This replica has not cut its log yet.
                continue
            known = committed.setdefault(found[0], found)
            if known != found:
                raise Violation(f"{place} at {node.node_id}: {found} is committed where {known} was")

    def check_epochs(self):
        """The leader epochs of every log are those of its batches."""
        for node in self.world.nodes.values():
            for log in node.broker.partitions:
                if log.is_loaded and log.offline is None:
                    problem = epochs_problem(log)
                    if problem is not None:
                        raise Violation(f"{log} at {node.node_id}: {problem}")

    def check_acknowledged(self, producers):
        """Every acknowledged record is at its offset on every replica."""
        for producer in producers:
            place = producer.topic, producer.index
            for node_id in self.world.state(*place).replicas:
                log = self.world.log(node_id, *place)
                values = dict(records(log))
                for offset, value in producer.acknowledged.items():
                    if values.get(offset) != value:
                        raise Violation(
                            f"{place} at {node_id}: {value} was acknowledged at {offset}: {values.get(offset)}"
                        )


def epochs_problem(log):
    """What is wrong with the leader epochs of a log: those of its batches, and of a leader that has written nothing in
    its epoch yet, and no others. None if nothing is."""
    bases = {}
    for base_offset, _, epoch, _ in batches(log, log.log_start_offset, log.written_end_offset):
        bases.setdefault(epoch, base_offset)
    entries = [(epoch, start) for epoch, start in log.epochs.entries if start < log.written_end_offset]
    found = list(bases.items())
    return None if entries == found else f"epochs {log.epochs.entries}, where the batches say {found}"


def batches(log, start, end):
    """(base offset, end offset, epoch, checksum of everything behind the epoch) of the batches."""
    offset = start
    while offset < end:
        found = log.read(offset, 1 << 20, end_offset=end)
        if found is None:
            return
        data, position = found.pread(), 0
        while position < len(data):
            batch = batch_at(data, position)
            found = _of_batch(batch)
            yield found
            position += len(batch)
            offset = found[1]


@functools.lru_cache(maxsize=10_000)
def _of_batch(batch):
    """What `batches` tells of one. It is read from each replica, and again at the end: it depends on its bytes only."""
    header = parse_header(batch)
    return header.base_offset, header.end_offset, header.leader_epoch, crc32c(batch[16:])


def records(log):
    """(offset, value) of all records."""
    offset = log.log_start_offset
    while offset < log.written_end_offset:
        found = log.read(offset, 1 << 20, end_offset=log.written_end_offset)
        if found is None:
            return
        rows = records_of(found.pread())
        yield from rows
        offset = rows[-1][0] + 1
