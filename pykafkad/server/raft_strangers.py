"""What a member of the metadata quorum says of nodes that do not belong to it: of those with another cluster's id, of
two that fetch as one and the same replica, as nodes on copies of one directory do, of voters that have lost what they
had, and of nodes that say what cannot be, such as an epoch with another leader.

The replica refuses the first by itself. The second cannot be told from a node that connects anew: it is survived like
any voter that lies about its log, as in Kafka, and the log names both. A host is named once a minute."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.raft.replica import RaftReplica
    from pykafkad.server.connection import Connection
    from pykafkad.server.runtime import Runtime

MAX_REPLICAS = 1000
"""Of how many replicas it is known which connections they fetch by; the others are not looked at."""

TURNS = 10
"""So often two connections must take turns: a voter that looks for the leader may ask by more than one."""

TURNS_SECONDS = 5.0
"""They must do so for that long, without a pause of that length: such a voter is done sooner."""


class _Fetching:
    """The connection by which a replica fetches, the one before it, how often they have taken turns, and since when."""

    __slots__ = ("before", "connection_id", "since", "turned_at", "turns")

    def __init__(self, connection_id: int) -> None:
        self.connection_id = connection_id
        self.before = -1
        self.turns = 0
        self.since = self.turned_at = 0.0


class Strangers:
    """`asked` for each request of another node, `answered` for each answer."""

    __slots__ = ("_cluster_id", "_epoch", "_fetched_to", "_fetching", "_machine", "_runtime")

    def __init__(self, runtime: Runtime, machine: RaftReplica) -> None:
        self._runtime = runtime
        self._machine = machine
        self._cluster_id = machine.cluster_id
        self._epoch = -1
        # By replica, what is known in this epoch, which this node leads.
        self._fetching: dict[tuple[int, bytes], _Fetching] = {}
        self._fetched_to: dict[int, int] = {}
        """By voter, up to where it has this epoch's log, as it has said."""

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

    def doubted_request(self, token: object, reasons: Sequence[str]) -> None:
        """The machine has refused a request of another node that says what cannot be."""
        connection = self._runtime.replies.connection_of(token)
        if connection is not None:
            self._tell("quorum-request-refused", connection.peer, "; ".join(reasons))

    def doubted_answer(self, place: tuple[str, int] | None, reasons: Sequence[str]) -> None:
        """The machine has ignored the answer of the node at `place`."""
        host, port = place or ("unknown", 0)
        self._tell("quorum-answer-ignored", f"{host}:{port}", "; ".join(reasons))

    def _fetched(self, connection: Connection | None, request: messages.FetchRequest) -> None:
        node_id = request.replica_state.replica_id
        if connection is None or node_id < 0 or not request.topics or not request.topics[0].partitions:
            return
        if not self._machine.is_leader:
            return
        if self._machine.epoch != self._epoch:
            self._epoch = self._machine.epoch
            self._fetching.clear()
            self._fetched_to.clear()
        replica, now = (node_id, bytes(request.topics[0].partitions[0].replica_directory_id)), self._runtime.now
        self._look_at_offset(connection.peer, node_id, request.topics[0].partitions[0])
        found = self._fetching.get(replica)
        if found is None:
            if len(self._fetching) < MAX_REPLICAS:
                self._fetching[replica] = _Fetching(connection.id)
            return
        if connection.id == found.connection_id:
            return
        # Whoever connects anew never comes back to the connection before.
        other = self._runtime.reactor.connection(found.connection_id) if connection.id == found.before else None
        found.before, found.connection_id = found.connection_id, connection.id
        if other is None or now - found.turned_at >= TURNS_SECONDS:
            found.turns, found.since = 0, now
        found.turns += other is not None
        found.turned_at = now
        if other is not None and found.turns >= TURNS and now - found.since >= TURNS_SECONDS:
            reason = f"another node, at {other.peer}, has the same id {node_id} and directory"
            self._tell("replica-fetches-twice", connection.peer, reason)

    def _look_at_offset(self, peer: str, node_id: int, partition: messages.FetchRequest.FetchPartition) -> None:
        """A voter that ends with records of this epoch has everything before them as its leader has, on its disk. One
        that ends with those of an earlier epoch may have to cut them: that is no loss."""
        offset, known = partition.fetch_offset, self._fetched_to.get(node_id, -1)
        if offset < known:
            self._fetched_to[node_id] = offset
            self._tell("voter-lost-records", peer, f"voter {node_id} had all before {known}, and asks for {offset}")
        elif offset > known and partition.last_fetched_epoch == self._epoch:
            if any(voter.id == node_id for voter in self._machine.voters):
                self._fetched_to[node_id] = offset

    def _tell(self, event: str, peer: str, reason: str) -> None:
        self._runtime.peer_lines.refused(self._runtime.now, event, peer, reason, cluster=self._cluster_id)
