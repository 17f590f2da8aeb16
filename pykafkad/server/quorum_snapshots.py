"""Snapshots of several brokers of one process under several controllers: all directories as they are at one moment.

All nodes share a loop. What they have on disk between two turns is what they would have if all of them were killed at
that moment, which a quorum survives: no voter has told another of a vote or a record that it would forget. So the way
back is safe as long as nobody else takes part. A node of another process would remember votes, records and epochs that
the others have forgotten, so with one there are no snapshots."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import record_codec
from pykafkad.raft.leader import Leader
from pykafkad.server.cluster import SERVING
from pykafkad.server.cluster_snapshots import ClusterSnapshots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.snapshot_writer import SnapshotWriter
    from pykafkad.metadata.image import Image
    from pykafkad.raft.replica import RaftReplica
    from pykafkad.server.quorum_cluster import QuorumCluster


class QuorumSnapshots(ClusterSnapshots):
    """Those of all brokers and controllers, whichever broker is asked."""

    __slots__ = ()

    _cluster: QuorumCluster

    def __init__(self, cluster: QuorumCluster) -> None:
        super().__init__(cluster)  # type: ignore[arg-type]

    def _members(self) -> list[Any]:
        return list(self._cluster.broker_places.values())

    @property
    def _metadata(self) -> LogDirectory:
        first: LogDirectory = next(iter(self._cluster.controller_places.values())).process.directories.metadata
        return first

    def _every(self) -> list[LogDirectory]:
        return [one for place in self._cluster.places for one in place.process.directories.every()]

    def _epochs(self) -> list[tuple[str, int]]:
        cluster = self._cluster
        controllers, brokers = cluster.controller_places.values(), cluster.broker_places.values()
        found = [(one.path, -1) for place in controllers for one in place.process.directories.every()]
        return found + [
            (one.path, place.process.lifecycle.epoch) for place in brokers for one in place.process.directories.every()
        ]

    def _writer(self, directory: LogDirectory, name: str) -> SnapshotWriter:
        writer = super()._writer(directory, name)
        # At once: votes and snapshots of the metadata are files beside the log, which change without it.
        log = directory.logs.get(record_codec.LOG)
        if log is not None:
            writer.save(log)
        return writer

    def _paths(self) -> tuple[list[str], set[str]]:
        every = [place.process.directories for place in self._cluster.places]
        return self._cluster.snapshot_paths, {path for directories in every for path in directories.failed}

    def _check_members(self, what: str) -> None:
        down = [f"{each.role} {each.node_id}" for each in self._cluster.places if each.state != SERVING]
        if down:
            raise KafkaError(
                errors.INVALID_REQUEST,
                f"{what} needs every broker and controller, and {', '.join(down)} does not serve",
            )
        strange = strangers(self._cluster)
        if strange:
            raise KafkaError(
                errors.INVALID_REQUEST,
                f"{what} needs all nodes of the cluster in this process, and {', '.join(strange)} is elsewhere: it "
                "would remember votes and records that the others have forgotten; stop it, and unregister or remove it",
            )


def strangers(cluster: QuorumCluster) -> list[str]:
    """The nodes outside of this process that take part in its cluster, sorted."""
    known = {*cluster.broker_places, *cluster.controller_places}
    found: dict[int, str] = {}
    for place in cluster.controller_places.values():
        found |= others(known, place.controller.image, place.controller.quorum, cluster.runtime.now)
    return [found[node_id] for node_id in sorted(found)]


def others(known: set[int], image: Image, replica: RaftReplica, now: float) -> dict[int, str]:
    """The nodes of a cluster that a controller knows of beside the `known` ones: what each of them is, by its id."""
    found = {}
    if replica.is_leader:
        role: Leader = replica.role
        role.forget_observers(now)
        found = {key[0]: f"observer {key[0]}" for key in role.observers}
    found |= {each: f"controller {each}" for each in [*image.controllers, *(voter.id for voter in replica.voters)]}
    found |= {each: f"broker {each}" for each in image.brokers}
    return {node_id: words for node_id, words in found.items() if node_id not in known}
