"""Scripted clients of a world of brokers, on the wire: each remembers what it sent, and what it was told."""

from __future__ import annotations

import functools
import random
import struct

from pykafkad import errors
from pykafkad.server.logs import Logs
from pykafkad.server.peer import Limits, Peer
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch, parse_header
from pykafkad.wire.records import iterate_records
from tests.simulation.cluster import EventOffload
from tests.simulation.disk import MemoryDisk
from tests.simulation.network import Host
from tests.simulation.replication_world import PORT

CLIENT = "client"
_BATCH_START = struct.Struct(">qi")
"""The base offset and the length of what is behind it."""
_OLD_VERSIONS = {"Produce": 11, "AddPartitionsToTxn": 3, "AddOffsetsToTxn": 3, "EndTxn": 4, "TxnOffsetCommit": 4}
"""The newest versions of clients that add partitions to their transactions by themselves (KIP-890)."""
_LIMITS = Limits(request_timeout_ms=4000, connect_timeout_ms=1000, backoff_max_ms=200)


class OldPeer(Peer):
    """A client that does not know transaction version 2."""

    def _write(self, request, version):
        super()._write(request, min(version, _OLD_VERSIONS.get(request.row.name, version)))


class Clients:
    """A machine with clients: connections to every broker."""

    def __init__(self, world):
        self.world = world
        host = Host(world.cluster.network, CLIENT)
        runtime = self.runtime = Runtime(
            clock=world.cluster.clock,
            disk=MemoryDisk(),
            random=random.Random(world.chance.random()),
            reactor=lambda runtime: Reactor(runtime, host),
            logs=Logs("error", world.sink),
        )
        world.client_runtimes.append(runtime)
        runtime.offload, runtime.cpu_offload = (
            EventOffload(world.cluster, runtime),
            EventOffload(world.cluster, runtime),
        )
        world.cluster.adopt(CLIENT, runtime, host)
        self._peers = {}
        self.old = set()
        """Clients of transaction version 1."""

    def send(self, node_id, request, then, client="c"):
        """Send over the connection that this client has to the broker. `then` gets the answer or a `Failure`."""
        peer = self._peers.get((node_id, client))
        if peer is None:
            address = self.world.nodes[node_id].name
            made = OldPeer if client in self.old else Peer
            peer = self._peers[node_id, client] = made(self.runtime, address, PORT, client_id=client, limits=_LIMITS)
        # Outside of its turns a runtime has the time of the last one.
        self.runtime.now, self.runtime.now_ms = self.world.now, self.world.cluster.clock.now_ms()
        peer.send(request, then)

    def ask(self, node_id, request, seconds=5.0):
        """Send, and let time pass until the answer is there."""
        answers = []
        self.send(node_id, request, answers.append)
        self.world.run(seconds, holds=lambda: bool(answers))
        assert answers, f"{request} was not answered"
        return answers[0]

    def produce_request(self, topic, index, value, *, acks=-1):
        topic_id = self.world.image.topics[topic].id
        row = messages.ProduceRequest
        batch = build_batch([(None, value)], timestamp_ms=self.runtime.now_ms)
        data = row.PartitionProduceData(index=index, records=bytes(batch))
        return row(
            acks=acks, timeout_ms=3000, topic_data=[row.TopicProduceData(topic_id=topic_id, partition_data=[data])]
        )

    def produce(self, topic, value=b"v", index=0, *, acks=-1, to=None, seconds=5.0):
        """Append one record at the leader; (error code, base offset)."""
        node_id = to or self.world.state(topic, index).leader
        answer = self.ask(node_id, self.produce_request(topic, index, value, acks=acks), seconds)
        row = answer.responses[0].partition_responses[0]
        return row.error_code, row.base_offset

    def fetch_request(self, topic, index, offset, **fields):
        row = messages.FetchRequest
        asked = row.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        topic_id = self.world.image.topics[topic].id
        return row(
            max_wait_ms=fields.pop("max_wait_ms", 0),
            min_bytes=1,
            session_id=0,
            session_epoch=-1,
            topics=[row.FetchTopic(topic_id=topic_id, partitions=[asked])],
            **fields,
        )

    def fetch(self, topic, offset=0, index=0, *, to=None):
        """What the leader gives from an offset on: (error code, high watermark, values)."""
        node_id = to or self.world.state(topic, index).leader
        answer = self.ask(node_id, self.fetch_request(topic, index, offset))
        row = answer.responses[0].partitions[0]
        return row.error_code, row.high_watermark, [value for _, value in records_of(row.records, offset)]


def records_of(data, offset=0):
    """(offset, value) of the records in an answer; the value of a marker is None."""
    found, position, data = [], 0, bytes(data or b"")
    while position < len(data):
        batch = batch_at(data, position)
        found += _of_batch(batch)
        position += len(batch)
    return [each for each in found if each[0] >= offset] if found and found[0][0] < offset else found


def batch_at(data, position):
    """The bytes of the batch that begins there."""
    return data[position : position + _BATCH_START.size + _BATCH_START.unpack_from(data, position)[1]]


@functools.lru_cache(maxsize=10_000)
def _of_batch(batch):
    """The same of one batch. Readers and checkers see the same ones again and again."""
    header = parse_header(batch)
    if header.is_control:
        return [(header.base_offset, None)]
    return [(each.offset, bytes(each.value)) for each in iterate_records(memoryview(batch), header)]


class Producer:
    """Appends one record after another to a partition with acks=all, to whoever leads it, for ever. `acknowledged` maps
    offsets to values; what was not acknowledged may be there or not."""

    def __init__(self, clients, topic, index, pause=0.05):
        self.clients = clients
        self.world = clients.world
        self.topic, self.index = topic, index
        self.pause = pause
        self.acknowledged = {}
        self.sent = 0
        self.failures = 0
        self.is_stopped = False
        self._lost = (1 << 62, 0)
        self._next()

    def forget(self, offset):
        """What was sent so far and got an offset from this one on need not be there any more."""
        self._lost = min(offset, self._lost[0]), self.sent
        for each in [each for each in self.acknowledged if each >= offset]:
            del self.acknowledged[each]

    def is_forgotten(self, offset, value):
        """Whether what `value` says of this offset means nothing."""
        return offset >= self._lost[0] and int(value.split()[-1]) <= self._lost[1]

    def _next(self):
        if self.is_stopped:
            return
        leader = self.world.state(self.topic, self.index).leader
        if leader < 0:
            self._later()
            return
        self.sent += 1
        value = b"%s-%d: %d" % (self.topic.encode(), self.index, self.sent)
        request = self.clients.produce_request(self.topic, self.index, value)
        self.clients.send(leader, request, lambda answer: self._answered(value, answer))

    def _answered(self, value, answer):
        if isinstance(answer, messages.ProduceResponse):
            row = answer.responses[0].partition_responses[0]
            if row.error_code == errors.NONE:
                if self.is_forgotten(row.base_offset, value):
                    # An answer that was on its way for long.
                    self._later()
                    return
                assert row.base_offset not in self.acknowledged, f"offset {row.base_offset} is given out twice"
                self.acknowledged[row.base_offset] = value
                self._later()
                return
        self.failures += 1
        self._later()

    def _later(self):
        chance = self.world.chance
        self.world.cluster.network.at(self.world.now + self.pause * chance.uniform(0.2, 2.0), self._next, CLIENT)
