"""Controllers of one quorum, each the product's own process over simulated sockets and a disk in memory, from one seed.

What is judged here is the shell: the product's log, connections, offload and snapshots under kills, losses of power,
cuts and lost disks. The machine alone is judged by `raft_world.py`."""

import random

from pykafkad import config, uuids
from pykafkad.handlers.controller_context import ControllerRequest
from pykafkad.log import checkpoints
from pykafkad.metadata import snapshots
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter
from pykafkad.server import listeners
from pykafkad.server.combined_process import CombinedProcess
from pykafkad.server.listeners import Listener
from pykafkad.server.metadata_observer import MetadataObserver
from pykafkad.server.reactor import Reactor
from pykafkad.server.wiring import Process
from pykafkad.wire import messages
from pykafkad.wire.batch import parse_header
from tests.simulation.cluster import Cluster, EventOffload
from tests.simulation.disk import MemoryDisk
from tests.simulation.network import Host

PORT = 9093
CLUSTER_ID = uuids.to_text(b"simulated-quorum")
DIRECTORY = "/data"
TIMEOUTS = {
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.request.timeout.ms": "600",
    "controller.quorum.election.backoff.max.ms": "400",
    "controller.quorum.retry.backoff.ms": "50",
}


def host_of(node_id):
    """Where a node is."""
    return f"10.0.0.{node_id}"


def directory_id(node_id, wipes=0):
    """That of a node's disk."""
    return bytes([node_id]) * 15 + bytes([wipes + 1])


def controller_of(process):
    """The controller in a process."""
    return process.source if isinstance(process, CombinedProcess) else process.controller


class MortalOffload(EventOffload):
    """Jobs of a process that may be killed: those that have not run by then never do."""

    is_dead = False

    def _run(self, job, then):
        if not self.is_dead:
            super()._run(job, then)


class Token:
    """Takes what becomes of a change."""

    def __init__(self, value):
        self.value = value
        self.outcome = None

    def deliver(self, message):
        """The answer: its only error code."""
        rows = getattr(message, "responses", None) or getattr(message, "results", None)
        self.outcome = rows[0].error_code

    def abandon(self, reason):
        self.outcome = reason


class Controllers(Cluster):
    """`processes` and `disks` are by node id; `observers` too. A node that was killed is not in `processes`."""

    def __init__(self, seed, node_ids, *, dynamic=False, **settings):
        super().__init__(seed, [])
        self.node_ids = list(node_ids)
        self.dynamic = dynamic
        self.settings = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.disks = {}
        self.processes = {}
        self.offloads = {}
        self.observers = {}
        self.wipes = dict.fromkeys(node_ids, 0)
        self.leaders = {}
        self.answered = []
        self.tokens = []
        self.changes = 0
        for node_id in node_ids:
            self.format(node_id)
            self.start(node_id)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def format(self, node_id):
        """An empty disk with what formatting leaves."""
        disk = self.disks[node_id] = MemoryDisk()
        disk.make_directories(DIRECTORY)
        meta = {
            "version": "1",
            "cluster.id": CLUSTER_ID,
            "node.id": str(node_id),
            "directory.id": uuids.to_text(directory_id(node_id, self.wipes.get(node_id, 0))),
        }
        text = "".join(f"{name}={value}\n" for name, value in meta.items())
        disk.write(f"{DIRECTORY}/{checkpoints.META_PROPERTIES_FILE}", text.encode(), sync=True)
        if self.dynamic and not self.wipes.get(node_id, 0) and node_id in self.node_ids:
            folder = f"{DIRECTORY}/__cluster_metadata-0"
            disk.make_directories(folder)
            first = [
                Voter(each, directory_id(each), [Endpoint("CONTROLLER", host_of(each), PORT)]) for each in self.node_ids
            ]
            disk.write(f"{folder}/{snapshots.file_name(0, 0)}", snapshots.voters_only(first, 0), sync=True)

    def _properties(self, node_id, role):
        addresses = [f"{host_of(each)}:{PORT}" for each in self.node_ids]
        if self.dynamic:
            named = {"controller.quorum.bootstrap.servers": ",".join(addresses)}
        else:
            voters = (f"{each}@{address}" for each, address in zip(self.node_ids, addresses, strict=True))
            named = {"controller.quorum.voters": ",".join(voters)}
        properties = {**TIMEOUTS, **named, **self.settings, "node.id": str(node_id), "process.roles": role}
        properties["controller.listener.names"] = "CONTROLLER"
        return config.Settings.from_properties({name: (value, "test") for name, value in properties.items()})

    def start(self, node_id):
        """Begin with what is on the disk."""
        name = host_of(node_id)
        host = self._hosts[name] = Host(self.network, name)
        process = self._make(node_id, random.Random(self.random.random()), lambda runtime: Reactor(runtime, host))
        runtime = self.runtimes[name] = process.runtime
        controller_of(process).sync_offload = self._offloads(node_id, runtime)
        self.processes[node_id] = process
        self._begin(process)
        self.disks[node_id].refuses_syncs = process.broker is None

    def _make(self, node_id, chance, reactor):
        """The process of a node, which is a controller alone here."""
        settings = self._properties(node_id, "controller")
        options = {"clock": self.clock, "disk": self.disks[node_id], "random": chance, "reactor": reactor}
        return Process(settings, [self._listener(node_id, settings)], [DIRECTORY], **options)

    def _listener(self, node_id, settings):
        return Listener("CONTROLLER", host_of(node_id), PORT, None, listeners.protocol_of(settings, "CONTROLLER"))

    def _begin(self, process):
        process.start()

    def _offloads(self, node_id, runtime):
        """What a node has beside its loop."""
        offloads = self.offloads[node_id] = [MortalOffload(self, runtime) for _ in range(3)]
        runtime.offload, runtime.cpu_offload, of_syncs = offloads
        return of_syncs

    def observe(self, node_id):
        """A process that only follows the metadata."""
        from pykafkad.server.directories import Directories
        from pykafkad.server.housekeeping import Housekeeping

        if node_id not in self.disks:
            self.format(node_id)
        runtime = self.add(host_of(node_id))
        runtime.disk = self.disks[node_id]
        settings = self._properties(node_id, "controller")
        directories = Directories(runtime, settings, [DIRECTORY])
        housekeeping = Housekeeping(runtime, settings, directories)
        observer = MetadataObserver(runtime, settings, directories, housekeeping)
        observer.sync_offload = self._offloads(node_id, runtime)
        runtime.nodes += [directories, housekeeping, observer]
        directories.open(DIRECTORY)
        observer.start()
        observer.begin_serving()
        self.disks[node_id].refuses_syncs = True
        self.observers[node_id] = observer
        return observer

    def kill(self, node_id, *, loses_power=False):
        """The process is gone; with the power goes what is not synced."""
        name = host_of(node_id)
        self.disks[node_id].refuses_syncs = False
        for each in self.offloads[node_id]:
            each.is_dead = True
        self.processes.pop(node_id, None)
        self.observers.pop(node_id, None)
        del self.runtimes[name]
        del self._hosts[name]
        for each in list(self.network.descriptors.values()):
            if getattr(each, "host", None) == name:
                each.close()
        if loses_power:
            self.disks[node_id].lose_power(self.random)
        else:
            self.disks[node_id].kill()

    def stop(self, node_id):
        """A clean stop."""
        process = self.processes[node_id]
        self.disks[node_id].refuses_syncs = False
        process.runtime.close()
        self.kill(node_id)

    def wipe(self, node_id):
        """The disk of a node that was killed is lost; it comes back with another one."""
        self.wipes[node_id] += 1
        self.format(node_id)

    # --- what the tests ask -------------------------------------------------------------------------------------------

    def machine(self, node_id):
        return controller_of(self.processes[node_id]).quorum

    def leader(self):
        """The node that decides in the newest epoch; None without any."""
        found = [
            (self.machine(each).epoch, each)
            for each, process in self.processes.items()
            if controller_of(process).metadata_log.is_active
        ]
        return max(found)[1] if found else None

    def change(self, node_id, value, *, resource=(4, "")):
        """Set a setting of the cluster, or of a group, through a node; what becomes of it is in the token."""
        kind, name = resource
        token = Token(value)
        request = messages.IncrementalAlterConfigsRequest
        setting = "consumer.session.timeout.ms" if name else "log.retention.ms"
        altered = request.AlterableConfig(name=setting, config_operation=0, value=str(value))
        message = request(
            resources=[request.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[altered])]
        )
        controller = controller_of(self.processes[node_id])
        result = controller.submit(ControllerRequest(44, 1, message, "User:a", "10.0.0.9", "CONTROLLER", token))
        if hasattr(result, "responses"):
            token.deliver(result)
        self.tokens.append(token)
        return token

    def value_of(self, image):
        """The setting that `change` changes."""
        return image.configs(4, "").get("log.retention.ms")

    def _turn(self, name):
        super()._turn(name)
        for node_id, process in self.processes.items():
            controller = controller_of(process)
            if controller.metadata_log.is_active:
                epoch = controller.metadata_log._led_epoch
                known = self.leaders.setdefault(epoch, node_id)
                assert known == node_id, f"{known} and {node_id} decide in epoch {epoch}"
            assert process.runtime.metrics.unexpected_errors == 0, f"node {node_id} met a bug"

    def until(self, holds, seconds=60.0):
        """Let time pass until `holds()`."""
        until = self.clock.now() + seconds
        self.run(until, holds=holds)
        assert holds(), f"not within {seconds} s"

    def elect(self):
        """The leader, when there is one."""
        self.until(lambda: self.leader() is not None)
        return self.leader()

    def in_step(self, node_ids=None):
        """Whether all have applied all that the leader has, committed."""
        leader = self.leader()
        if leader is None:
            return False
        machine = self.machine(leader)
        end = machine.log.end_offset
        return all(
            controller_of(process).metadata_log.member.applied == end and machine.high_watermark == end
            for each, process in self.processes.items()
            if node_ids is None or each in node_ids
        ) and all(observer.member.applied == end for observer in self.observers.values())

    def log_of(self, node_id):
        """The batches of a node's metadata log, by their base offsets."""
        process = self.processes.get(node_id)
        member = self.observers[node_id].member if process is None else controller_of(process).metadata_log.member
        log = member.raft_log.log
        offset, found = log.log_start_offset, {}
        while offset < log.end_offset:
            data = member.raft_log.read(offset, 1 << 20)
            position = 0
            while position < len(data):
                header = parse_header(data, position)
                found[header.base_offset] = data[position : position + header.size_bytes]
                position += header.size_bytes
                offset = header.end_offset
        return found
