"""Bugs to plant where a command starts brokers and controllers as processes of their own."""

from __future__ import annotations

from tests.planted.plant import Plant

SETTINGS = ("tests/server/test_cluster_settings.py",)
QUORUM = ("tests/server/test_quorum_cluster.py",)
QUORUM_SNAPSHOTS = ("tests/testing/test_several_controllers_snapshots.py",)
CHILD_SNAPSHOTS = ("tests/server/test_child_snapshots.py",)
ASKED_SNAPSHOTS = ("tests/server/test_asked_snapshots.py",)
START = ("tests/server/test_start_requests.py",)
PROCESSES = ("tests/cli/test_serve_processes.py",)
CONTROLLERS = ("tests/testing/test_several_controllers.py",)
LIFECYCLE = ("tests/server/test_broker_lifecycle.py",)
PRESENCE = ("tests/server/test_broker_presence.py",)

PLANTS = (
    Plant(
        "a cluster of processes gets another id with each start",
        "server/cluster_settings.py",
        "if found: return found",
        "pass",
        SETTINGS,
    ),
    Plant(
        "controllers are served with the folders of another number of them",
        "server/cluster_settings.py",
        "if found and found != sorted(controllers):",
        "if False:",
        SETTINGS,
    ),
    Plant(
        "the controllers' listener keeps the protocol that the brokers cannot speak",
        "server/cluster_settings.py",
        'f"{settings.listener_security_protocol_map},{name}:PLAINTEXT"',
        "settings.listener_security_protocol_map",
        SETTINGS,
    ),
    Plant(
        "a broker goes on although another process has its place",
        "server/broker_lifecycle.py",
        "if code == errors.STALE_BROKER_EPOCH and self._is_replaced():",
        "if False:",
        LIFECYCLE,
    ),
    Plant(
        "controllers without a parent do not wait for the brokers",
        "server/node_process.py",
        "while self.clock.now() < until and _has_brokers(process):",
        "while False:",
        PROCESSES,
    ),
    Plant(
        "a child that ends while it starts is told without its name",
        "server/child_nodes.py",
        'failure(f"{child.role} {child.node_id}: {child.report}")',
        "failure(child.report)",
        PROCESSES,
    ),
    Plant(
        "a child that ends while the brokers settle is not noticed",
        "server/child_nodes.py",
        "except Empty:\n    return False\nif kind == _END:",
        "except Empty:\n    return False\nif False:",
        START,
    ),
    Plant(
        "a start waits for leaders of topics that were there before",
        "server/start_requests.py",
        "topic.partitions if topic.name in created else ()",
        "topic.partitions",
        START,
    ),
    Plant(
        "the parent outlives all brokers",
        "server/child_nodes.py",
        "if not self._alive(BROKER): return False",
        "if not self._alive(BROKER):\n    pass",
        PROCESSES,
    ),
    Plant(
        "each of several brokers tells of every topic",
        "server/quorum_cluster.py",
        "place.broker.tells_topics = place.broker is self.broker",
        "pass",
        QUORUM,
    ),
    Plant(
        "a snapshot of several brokers takes the ends for high watermarks",
        "log/snapshot_writer.py",
        "{**self._ends, **self._high_watermarks}",
        "self._ends",
        ("tests/log/test_snapshot_writer.py",),
    ),
    Plant(
        "a snapshot of several brokers is of those that serve",
        "server/cluster_snapshots.py",
        "if down:",
        "if False:",
        ("tests/testing/test_several_brokers_snapshots.py",),
    ),
    Plant(
        "brokers under several controllers are snapshot one by one",
        "server/quorum_cluster.py",
        "place.broker.services.open_data_snapshots = self.open_data_snapshots",
        "pass",
        QUORUM,
    ),
    Plant(
        "the votes of a snapshot are later than its records",
        "server/quorum_snapshots.py",
        "if log is not None:",
        "if False:",
        QUORUM_SNAPSHOTS,
    ),
    Plant(
        "requests of followers outlive a way back",
        "server/data_snapshots.py",
        "if connection.peer in own or not",
        "if not",
        QUORUM_SNAPSHOTS,
    ),
    Plant(
        "a way back waits for the sessions of brokers that have ended",
        "server/raft_controller.py",
        "if node.has_ended is not None and node.has_ended(broker):",
        "if False:",
        QUORUM_SNAPSHOTS,
    ),
    Plant(
        "a snapshot of processes has the directory of one that was killed",
        "server/child_snapshots.py",
        "if killed:",
        "if False:",
        CHILD_SNAPSHOTS,
    ),
    Plant(
        "processes start on a way back that is half done",
        "server/child_snapshots.py",
        "if snapshot_store.restoring(self._disk, self._paths[0]):",
        "if False:",
        CHILD_SNAPSHOTS,
    ),
    Plant(
        "a client that asks for more is cut off from the answer about processes",
        "server/asked_snapshots.py",
        "if not transport.socket.recv(_READ_BYTES): break",
        "transport.socket.recv(1)\nbreak",
        ASKED_SNAPSHOTS,
    ),
    Plant(
        "a controller that is started again takes its turns behind the brokers",
        "server/quorum_cluster.py",
        "self.runtime.nodes = [*(part for each in self.places for part in each.parts), self._leaving]",
        "self.runtime.nodes = list(dict.fromkeys([*self.runtime.nodes, self._leaving]))",
        CONTROLLERS,
    ),
    Plant(
        "a request waits for a controller that is gone",
        "server/controller_channel.py",
        "self._limits = Limits(request_timeout_ms=request_timeout_ms, waits_for_connection=False)",
        "self._limits = Limits(request_timeout_ms=request_timeout_ms)",
        CONTROLLERS,
    ),
    Plant(
        "a refusal counts where the broker was never reached",
        "server/broker_presence.py",
        "known.address = None if code else address",
        "known.address = address",
        PRESENCE,
    ),
    Plant(
        "a broker that loses one of its connections counts as gone",
        "server/broker_presence.py",
        "elif code != errno.ECONNREFUSED:",
        "elif False:",
        PRESENCE,
    ),
    Plant(
        "a broker is gone at the first refusal",
        "server/broker_presence.py",
        "elif not known.was_refused:",
        "elif False:",
        PRESENCE,
    ),
    Plant(
        "a heartbeat that the controller refused counts",
        "server/broker_presence.py",
        "if code or not is_there or self._is_closed:",
        "if not is_there or self._is_closed:",
        PRESENCE,
    ),
    Plant(
        "a broker that is gone keeps its session",
        "metadata/broker_lifecycle.py",
        "if controller.heartbeats is not None: controller.heartbeats.end_session(broker.id, broker.epoch)",
        "pass",
        PRESENCE,
    ),
)
