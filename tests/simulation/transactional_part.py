"""The part of a faulty world that has transactions: clients that write in them, readers with read_committed, and what
must hold of both in the end."""

from __future__ import annotations

import random

from pykafkad.coordinator.partitioning import partition_for
from pykafkad.log.replica import LEADER
from pykafkad.wire import messages
from pykafkad.wire.batch import CONTROL_ABORT, parse_header
from pykafkad.wire.records import iterate_records
from tests.simulation.replication_checkers import Violation
from tests.simulation.replication_clients import CLIENT
from tests.simulation.transaction_history import (
    ABORT,
    COMMIT,
    PLAIN,
    TRANSACTIONAL,
    Batch,
    History,
    Poll,
    anomalies,
    outcomes_anomalies,
)
from tests.simulation.transactional_clients import NEW, OLD, IdempotentClient, TransactionalClient

SHARE = 0.5
"""So many seeds have transactions."""
OLD_SHARE = 0.3
"""So many of the second clients are of transaction version 1."""
STATE, OFFSETS = "__transaction_state", "__consumer_offsets"
STATE_PARTITIONS = 2
READ_COMMITTED = 1
LOOKS_EACH = 4
"""One of so many looks sees the last stable offsets."""
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # What goes over a connection that is half open is given up.
    "request.timeout.ms": "3000",
    # A clock that jumps a day forward must not make brokers forget their producers.
    "producer.id.expiration.ms": str(20 * 86_400_000),
}


def drawn(seed):
    """The chance of a seed's transactions, or None for a seed that has none."""
    chance = random.Random(f"transactions {seed}")
    return chance if chance.random() < SHARE else None


class TransactionalPart:
    """Made when the world has its topics, plain producers and readers."""

    def __init__(self, world, chance):
        self.world, self.clients, self.chance = world, world.clients, chance
        self.history = History()
        self.places = [(each.topic, each.index) for each in world.producers]
        self._numbers = dict(zip(self.places, world.producers, strict=True))
        self.are_stopped = False
        self._looks = 0
        self._stable = {}
        last = len(world.nodes)
        world.create_topic(STATE, [[1, 2, last], [2, last, 1]][:STATE_PARTITIONS], min_insync_replicas=2)
        world.create_topic(OFFSETS, [[last, 1, 2]], min_insync_replicas=2)
        second = OLD if chance.random() < OLD_SHARE else NEW
        if second is OLD:
            self.clients.old.add("t2")
        self.writers = [
            TransactionalClient(self, name, chance.sample(self.places, 4), kind)
            for name, kind in (("t1", NEW), ("t2", second))
        ]
        for each in world.producers:
            # So a seed with transactions takes little more time than one without.
            each.pause *= 2
        place = chance.choice(self.places)
        self.idempotent = IdempotentClient(self, "i1", [place], self._numbers[place])
        world.producers.append(self.idempotent)
        self.readers = [CommittedReader(self, place) for place in self.places]

    def value(self, client, place):
        """A value that nobody else sends. It ends with its number among those of the partition, as those of the plain
        producer do."""
        numbers = self._numbers[place]
        numbers.sent += 1
        return b"%s %s-%d: %d" % (client.name.encode(), place[0].encode(), place[1], numbers.sent)

    def lost(self, place):
        """Committed records of a partition are gone, as is allowed."""
        topic, index = place
        history = self.history
        if topic == STATE:
            history.forgotten.update(
                each.name for each in self.writers if partition_for(each.name, STATE_PARTITIONS) == index
            )
        elif topic == OFFSETS:
            history.without_offsets.update(each.name for each in self.writers)
        else:
            history.spoiled.add(place)

    def look(self):
        """The last stable offset of a leader never falls, and is never above what is committed."""
        self._looks += 1
        if self._looks % LOOKS_EACH:
            return
        for node in self.world.nodes.values():
            if not node.is_running or not node.broker.serving:
                continue
            for log in node.broker.partitions:
                if not log.is_loaded or log.offline is not None or log.closed or log.replica.role != LEADER:
                    continue
                key = node.node_id, node.incarnation, log.replica.leader_epoch, log.topic, log.partition
                stable, before = log.last_stable_offset, self._stable.get(key, 0)
                if not before <= stable <= log.high_watermark:
                    raise Violation(
                        f"{key[3:]} at {node.node_id}: last stable offset {stable} after {before}, high watermark "
                        f"{log.high_watermark}"
                    )
                self._stable[key] = stable

    # --- the end of a run -------------------------------------------------------------------------------------------

    def check_clients_go_on(self):
        """Each transactional id commits something new."""
        left = [each for each in self.writers if each.name not in self.history.forgotten]
        before = {each: each.committed for each in left}

        def is_done():
            return all(each.committed > count for each, count in before.items())

        self.world.run(30.0, holds=is_done)
        if not is_done():
            raise Violation(f"no transaction is committed: {[(each.name, each.lives) for each in left]}")

    def stop(self):
        self.are_stopped = True
        for each in (*self.writers, *self.readers):
            each.is_stopped = True

    def open_places(self):
        """The partitions whose last stable offset is not their high watermark, without those that may be so."""
        return [] if self.history.forgotten else self._open_places()

    def _open_places(self):
        found = []
        for topic in self.world.image.topics.values():
            for state in topic.partitions:
                log = self.world.log(state.leader, topic.name, state.index)
                if (topic.name, state.index) not in self.history.spoiled and (
                    log is None or log.last_stable_offset != log.high_watermark
                ):
                    found.append((topic.name, state.index))
        return found

    def check(self):
        """Compare everything with what the clients were told."""
        if self.open_places():
            raise Violation(f"a transaction hangs in {self.open_places()}")
        if self.history.forgotten:
            # A transaction that its coordinator does not know any more hides what comes after it.
            self.history.spoiled.update(self._open_places())
        logs, views = {}, {}
        polls = {(each.topic, each.index): each.polls for each in self.readers}
        for place in self.places:
            state = self.world.state(*place)
            logs[place] = list(batches_of(self.world.log(state.leader, *place)))
            views[place] = self._read(place, state.leader).records
            polls[place] += [self._read(place, each) for each in state.replicas if each != state.leader]
        found = anomalies(self.history, logs, views, polls, self._group_offsets())
        if not self.history.forgotten and not self.history.spoiled:
            bumping = {
                batch.producer_id
                for batches in logs.values()
                for batch in batches
                if batch.kind == TRANSACTIONAL and batch.values[0].split()[0].decode() in self._bumping()
            }
            found += outcomes_anomalies(logs, bumping)
        if found:
            raise Violation(f"{len(found)} anomalies: {'; '.join(found[:3])}")

    def _bumping(self):
        return {each.name for each in self.writers if each.kind == NEW}

    def _read(self, place, node_id):
        """A partition from its begin to its end, from one replica, with read_committed."""
        topic, index = place
        end = self.world.log(node_id, *place).high_watermark
        offset, records = 0, []
        while offset < end:
            request = self.clients.fetch_request(topic, index, offset, isolation_level=READ_COMMITTED)
            answer = self.clients.ask(node_id, request)
            row = answer.responses[0].partitions[0]
            if row.error_code or not row.records:
                if place in self.history.spoiled:
                    break
                raise Violation(f"{place} cannot be read at {offset} of {end} from {node_id}: {row}")
            offset, found = committed_of(row, offset)
            records += found
        return Poll(0, offset, records)

    def _group_offsets(self):
        """What each group has committed."""
        row, found = messages.OffsetFetchRequest, {}
        asked = row.OffsetFetchRequestTopics(topic_id=self.world.image.topics["a"].id, partition_indexes=[0])
        for each in self.writers:
            group = row.OffsetFetchRequestGroup(group_id=each.name, topics=[asked])
            request = row(groups=[group], require_stable=True)
            answer = self.clients.ask(self.world.state(OFFSETS, 0).leader, request)
            partition = answer.groups[0].topics[0].partitions[0]
            if answer.groups[0].error_code or partition.error_code:
                if each.name in self.history.forgotten | self.history.without_offsets:
                    continue
                raise Violation(f"the offset of {each.name} cannot be read: {answer}")
            found[each.name] = partition.committed_offset
        return found


class CommittedReader:
    """Reads a partition again and again with read_committed, at any replica."""

    def __init__(self, part, place):
        self.part, self.clients, self.world = part, part.clients, part.world
        self.topic, self.index = place
        self.offset = 0
        self.polls = []
        self.is_stopped = False
        self._next()

    def _next(self):
        if self.is_stopped:
            return
        chance = self.part.chance
        if chance.random() < 0.1:
            self.offset = 0
        replicas = self.world.state(self.topic, self.index).replicas
        request = self.clients.fetch_request(self.topic, self.index, self.offset, isolation_level=READ_COMMITTED)
        start = self.offset
        self.clients.send(chance.choice(replicas), request, lambda answer: self._answered(start, answer))

    def _answered(self, start, answer):
        if isinstance(answer, messages.FetchResponse) and not answer.error_code:
            row = answer.responses[0].partitions[0]
            if not row.error_code and row.records:
                end, records = committed_of(row, start)
                self.polls.append(Poll(start, end, records))
                self.offset = end
        self.world.cluster.network.at(self.world.now + self.part.chance.uniform(0.2, 1.0), self._next, CLIENT)


def committed_of(row, offset):
    """What a consumer with read_committed makes of the row of an answer: how far it is then, and the records.

    The aborted transactions of the answer are looked at in the order of their first offsets. Batches of a producer
    whose transaction was aborted are left out, until its abort marker."""
    aborted = sorted((each.first_offset, each.producer_id) for each in row.aborted_transactions or ())
    skipped, records, end, at = set(), [], offset, 0
    for batch in split(row.records):
        header = parse_header(batch)
        while at < len(aborted) and aborted[at][0] <= header.last_offset:
            skipped.add(aborted[at][1])
            at += 1
        end = header.end_offset
        if header.is_control:
            if _is_abort(batch):
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            records += [(each.offset, bytes(each.value)) for each in iterate_records(memoryview(batch))]
    return end, [each for each in records if each[0] >= offset]


def split(data):
    """The batches of `data`, as bytes."""
    data, position = bytes(data), 0
    while position < len(data):
        size = parse_header(data, position).size_bytes
        yield data[position : position + size]
        position += size


def _is_abort(batch):
    (record,) = iterate_records(memoryview(batch))
    return int.from_bytes(bytes(record.key)[2:4], "big") == CONTROL_ABORT


def batches_of(log):
    """The batches of a log."""
    offset = log.log_start_offset
    while offset < log.written_end_offset:
        found = log.read(offset, 1 << 20, end_offset=log.written_end_offset)
        if found is None:
            return
        for batch in split(found.pread()):
            header = parse_header(batch)
            kind, values = TRANSACTIONAL if header.is_transactional else PLAIN, ()
            if header.is_control:
                kind = ABORT if _is_abort(batch) else COMMIT
            else:
                values = [bytes(each.value) for each in iterate_records(memoryview(batch))]
            yield Batch(
                header.base_offset, kind, header.producer_id, header.producer_epoch, header.base_sequence, values
            )
            offset = header.end_offset
