"""Nodes of one quorum that are a broker and a controller each, the product's own processes, from one seed."""

from pykafkad.server.combined_process import CombinedProcess
from pykafkad.server.listeners import Listener
from pykafkad.server.peer import Limits, Peer
from pykafkad.server.peer_types import Failure
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch, parse_header
from tests.simulation.controllers import DIRECTORY, Controllers, controller_of, host_of

BROKER_PORT = 9092
CLIENT = "10.0.1.1"
LIMITS = Limits(request_timeout_ms=4000, connect_timeout_ms=1000, backoff_max_ms=200)
SETTINGS = {
    "broker_session_timeout_ms": 3000,
    "broker_heartbeat_interval_ms": 500,
    "replica_lag_time_max_ms": 2000,
    "replica_fetch_wait_max_ms": 200,
    "replica_fetch_backoff_ms": 200,
    "replica_socket_timeout_ms": 3000,
    "log_cleaner_enable": "false",
    "min_insync_replicas": 2,
}


class CombinedNodes(Controllers):
    """See the module. One client has a connection to each broker."""

    def __init__(self, seed, node_ids, *, dynamic=False, **settings):
        self._peers = {}
        super().__init__(seed, node_ids, dynamic=dynamic, **{**SETTINGS, **settings})
        self.client = self.add(CLIENT)

    def _make(self, node_id, chance, reactor):
        settings = self._properties(node_id, "broker,controller")
        return CombinedProcess(
            settings,
            [Listener("PLAINTEXT", host_of(node_id), BROKER_PORT)],
            [DIRECTORY],
            clock=self.clock,
            disk=self.disks[node_id],
            random=chance,
            reactor=reactor,
            controller_listening=[self._listener(node_id, settings)],
        )

    def _begin(self, process):
        process.broker.log_writer.beside_until = 0.0
        process.begin()

    def stop(self, node_id):
        """A controlled shutdown; whether it came to its end before the node was given up."""
        process = self.processes[node_id]
        process.lifecycle.leave()
        self.run(self.clock.now() + 30.0, holds=lambda: process.lifecycle.state == "gone")
        is_clean = process.lifecycle.state == "gone"
        if is_clean:
            process.runtime.close()
        self.kill(node_id)
        return is_clean

    # --- what clients do ----------------------------------------------------------------------------------------------

    def ask(self, node_id, request, then):
        """Send a request to a broker; `then` gets the answer, or a `Failure`."""
        peer = self._peers.get(node_id)
        if peer is None:
            peer = self._peers[node_id] = Peer(
                self.client, host_of(node_id), BROKER_PORT, client_id="test", limits=LIMITS
            )
        # Outside of its turns a runtime has the time of the last one.
        self.client.now, self.client.now_ms = self.clock.now(), self.clock.now_ms()
        peer.send(request, then)
        self.times.clear()

    def answer(self, node_id, request, seconds=20.0):
        """The same, and its answer."""
        found = []
        self.ask(node_id, request, found.append)
        self.until(lambda: bool(found), seconds)
        return found[0]

    def serving(self):
        """The nodes whose broker serves."""
        return [each for each, process in self.processes.items() if process.lifecycle.state == "running"]

    def until_serving(self):
        """All brokers are unfenced."""
        self.until(lambda: len(self.serving()) == len(self.processes), 120.0)

    def image(self):
        """The newest that a node has."""
        return max((controller_of(each).image for each in self.processes.values()), key=lambda image: image.offset)

    def create_topic(self, name, partitions=1):
        """With a replica on every node; asked of the last of them."""
        request = messages.CreateTopicsRequest
        topic = request.CreatableTopic(name=name, num_partitions=partitions, replication_factor=len(self.node_ids))
        (row,) = self.answer(max(self.serving()), request(topics=[topic], timeout_ms=5000)).topics
        assert row.error_code == 0, row
        self.until(lambda: all(name in each.broker.image.topics for each in self.processes.values()))

    def produce(self, name, value, told, index=0):
        """Send a record to whom the newest image names as the leader; `told(base offset)` if it was acknowledged."""
        topic = self.image().topics[name]
        leader = topic.partitions[index].leader
        if leader not in self.processes:
            return
        form = messages.ProduceRequest
        batch = build_batch([(None, value)], timestamp_ms=self.clock.now_ms())
        rows = [form.PartitionProduceData(index=index, records=bytes(batch))]
        request = form(
            acks=-1, timeout_ms=3000, topic_data=[form.TopicProduceData(topic_id=topic.id, partition_data=rows)]
        )

        def then(answer):
            if type(answer) is not Failure:
                row = answer.responses[0].partition_responses[0]
                if row.error_code == 0:
                    told(row.base_offset)

        self.ask(leader, request, then)

    def in_sync(self, name):
        """Whether every partition has all its replicas in sync."""
        partitions = self.image().topics[name].partitions
        return all(each.leader >= 0 and len(each.isr) == len(each.replicas) for each in partitions)

    def records_of(self, node_id, name, index=0):
        """The bytes of a replica's batches by their base offsets."""
        log = self.processes[node_id].broker.partitions.get(name, index)
        found, offset = {}, log.log_start_offset
        while offset < log.end_offset:
            data = log.read(offset, 1 << 20, end_offset=log.end_offset).pread()
            position = 0
            while position < len(data):
                header = parse_header(data, position)
                found[header.base_offset] = data[position : position + header.size_bytes]
                position += header.size_bytes
                offset = header.end_offset
        return found
