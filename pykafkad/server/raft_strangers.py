"""What a member of the metadata quorum says of nodes that do not belong to it: of those with another cluster's id, and
of two that fetch as one and the same replica, as nodes on copies of one directory do.

The replica refuses the first by itself. The second cannot be told from a node that connects anew: it is survived like
any voter that lies about its log, as in Kafka, and the log names both. A host is named once a minute."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.server.connection import Connection
    from pykafkad.server.runtime import Runtime

MAX_REPLICAS = 1000
"""Of how many replicas it is known which connections they fetch by; the others are not looked at."""

TURNS = 3
"""So often two connections must take turns: a node that looks for the leader may ask by more than one."""


class Strangers:
    """`asked` for each request of another node, `answered` for each answer."""

    __slots__ = ("_cluster_id", "_fetching", "_runtime")

    def __init__(self, runtime: Runtime, cluster_id: str) -> None:
        self._runtime = runtime
        self._cluster_id = cluster_id
        # Replica to the connection by which it fetches, the one before it, and how often they have taken turns.
        self._fetching: dict[tuple[int, bytes], tuple[int, int, int]] = {}

    def asked(self, token: object, request: Any) -> None:
        """Another node sent a request."""
        theirs = getattr(request, "cluster_id", None)
        if theirs not in (None, self._cluster_id):
            connection = self._runtime.replies.connection_of(token)
            if connection is not None:
                self._tell("peer-of-another-cluster", connection.peer, f"its cluster is {theirs}")
        elif type(request) is messages.FetchRequest:
            self._fetched(self._runtime.replies.connection_of(token), request)

    def answered(self, place: tuple[str, int] | None, answer: Any) -> None:
        """A node at `place` has answered."""
        if place is not None and getattr(answer, "error_code", 0) == errors.INCONSISTENT_CLUSTER_ID:
            host, port = place
            self._tell("peer-of-another-cluster", f"{host}:{port}", "it refuses this node's cluster id")

    def _fetched(self, connection: Connection | None, request: messages.FetchRequest) -> None:
        node_id = request.replica_state.replica_id
        if connection is None or node_id < 0 or not request.topics or not request.topics[0].partitions:
            return
        replica = node_id, bytes(request.topics[0].partitions[0].replica_directory_id)
        now, before, turns = self._fetching.get(replica, (-1, -1, 0))
        if connection.id == now or (now < 0 and len(self._fetching) >= MAX_REPLICAS):
            return
        # Whoever connects anew never comes back to the connection before.
        other = self._runtime.reactor.connection(now) if connection.id == before else None
        turns = 0 if other is None else turns + 1
        self._fetching[replica] = connection.id, now, turns
        if other is not None and turns >= TURNS:
            reason = f"another node, at {other.peer}, has the same id {node_id} and directory"
            self._tell("replica-fetches-twice", connection.peer, reason)

    def _tell(self, event: str, peer: str, reason: str) -> None:
        self._runtime.peer_lines.refused(self._runtime.now, event, peer, reason, cluster=self._cluster_id)
