"""Snapshots of several brokers of one process with their controller: all directories as they are at one moment.

The nodes share a loop, so that between two turns nothing is under way but requests on connections, which a stop loses
as well. Logs of one moment, with their high watermarks, leader epochs and the metadata log, are what a stop of all
brokers at that moment would leave. The way back is that stop, and a start of all brokers on the same ports."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers import snapshot_actions
from pykafkad.log.snapshot_writer import SnapshotWriter
from pykafkad.server.cluster_settings import SERVING
from pykafkad.server.data_snapshots import Carried, DataSnapshots, HandedOver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.log.directory import LogDirectory
    from pykafkad.server.broker import Broker
    from pykafkad.server.cluster import Cluster, Member


class ClusterSnapshots(DataSnapshots):
    """Those of a cluster, whichever of its brokers is asked."""

    __slots__ = ("_cluster",)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(next(iter(cluster.members.values())).broker)
        self._cluster = cluster

    def _members(self) -> list[Member]:
        return list(self._cluster.members.values())

    @property
    def _metadata(self) -> LogDirectory:
        return self._cluster.directories.metadata

    def _every(self) -> list[LogDirectory]:
        cluster = self._cluster
        return [*cluster.directories.every(), *(one for each in self._members() for one in each.directories.every())]

    def _write_all(self) -> None:
        for member in self._members():
            member.broker.commits.write_all()

    def _epochs(self) -> list[tuple[str, int]]:
        brokers = self._cluster.controller.image.brokers
        found = [(directory.path, -1) for directory in self._cluster.directories.every()]
        for member in self._members():
            epoch = brokers[member.broker.node_id].epoch
            found += [(directory.path, epoch) for directory in member.directories.every()]
        return found

    def _writer(self, directory: LogDirectory, name: str) -> SnapshotWriter:
        return SnapshotWriter(directory, name, are_replicated=True)

    def _asked_node(self, token: Any) -> int:
        for member in self._members():
            if member.broker.socket_server.connection(token.connection_id) is not None:
                return member.broker.node_id
        return super()._asked_node(token)

    def _partition_count(self) -> int:
        return sum(len(each.broker.partitions) for each in self._members())

    def _paths(self) -> tuple[list[str], set[str]]:
        every = [self._cluster.directories, *(each.directories for each in self._members())]
        return (
            [path for directories in every for path in directories.paths],
            {path for directories in every for path in directories.failed},
        )

    def create(self, name: str, token: object = None) -> bool:
        """As of one broker. Raises KafkaError while a broker is down, whose part nobody could save."""
        self._check_members(f"the snapshot {name}")
        return super().create(name, token)

    def delete(self, name: str) -> None:
        """As of one broker. Raises KafkaError while a broker is down, whose part would stay."""
        self._check_members(f"the deletion of the snapshot {name}")
        super().delete(name)

    def _check_members(self, what: str) -> None:
        down = [str(node_id) for node_id, each in self._cluster.members.items() if each.state != SERVING]
        if down:
            raise KafkaError(
                errors.INVALID_REQUEST, f"{what} needs every broker, and broker {', '.join(down)} does not serve"
            )

    def restore(self, name: str, asking: object) -> None:
        """As of one broker: all of them stop and serve again. Raises KafkaError while a broker is down."""
        self._check_members(f"the way back to the snapshot {name}")
        super().restore(name, asking)  # type: ignore[arg-type]

    def rewind(self, name: str, topic_name: str, token: object) -> None:
        """Refused. Raises KafkaError."""
        snapshot_actions.none_of_one_topic(name, topic_name)

    def hand_over(self) -> HandedOver | None:
        """Taken from all brokers."""
        self._abandon()
        return self._hand_over([each.broker for each in self._members() if each.state == SERVING])

    def _asked_of(self, carried: Carried) -> Broker:
        return self._cluster.members[carried.node_id].broker
