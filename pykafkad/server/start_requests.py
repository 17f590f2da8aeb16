"""What a cluster of several processes is asked before its start is told: topics and ACLs that a command line names, and
whether every broker knows all of that.

The requests are those of any client, on the listener by which the brokers reach each other."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.server.listeners import parse_address
from pykafkad.server.peer import Failure, Peer
from pykafkad.server.runtime import Runtime
from pykafkad.wire import messages

SECONDS = 60.0
"""So long all of this may take."""

_PAUSE_SECONDS = 0.02

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.server.start_acls import Creation


class StartRequests:
    """One connection to each of the brokers at `addresses`. `close` when all is asked."""

    def __init__(
        self, addresses: Sequence[str], is_stopped: Callable[[], object], runtime: Runtime | None = None
    ) -> None:
        """Once `is_stopped()` holds, nothing is waited for. `runtime` is that of the brokers if they are in this
        process: it has its turns here. Raises StartFailure for an address that nobody knows."""
        self._is_own = runtime is None
        runtime = self._runtime = runtime or Runtime()
        self._is_stopped = is_stopped
        self._deadline = runtime.now + SECONDS
        self._peers: list[Peer] = []
        for address in addresses:
            host, port = parse_address(address, "listeners")
            try:
                (found, *_) = runtime.reactor.network.addresses(host, port)
            except OSError as error:
                raise StartFailure(f"{address} is not found: {error}") from None
            self._peers.append(Peer(runtime, found, port, client_id="pykafkad-serve"))

    def close(self) -> None:
        """Ask no more."""
        for peer in self._peers:
            peer.close()
        if self._is_own:
            self._runtime.close()

    def _ask(self, peer: Peer, request: messages.Struct) -> Any:
        """The answer, or a Failure. Raises StartFailure when the time is over."""
        got: list[Any] = []
        peer.send(request, got.append)
        while not got:
            self._turn()
        return got[0]

    def _turn(self) -> None:
        runtime = self._runtime
        if self._is_stopped() or runtime.now >= self._deadline:
            raise StartFailure(f"the brokers have not settled in {SECONDS:.0f} s")
        runtime.reactor.turn(runtime.seconds_to_next_turn(min(self._deadline, runtime.now + _PAUSE_SECONDS)))

    def settle(self, topics: Sequence[tuple[str, int]], acls: Sequence[tuple[str, Creation]]) -> None:
        """Have all of this there and known to every broker. Raises ConfigError for what cannot be, and StartFailure."""
        try:
            self.create_acls(acls)
            self.create_topics(topics)
            self.wait_until_known([name for name, _ in topics])
        finally:
            self.close()

    def create_topics(self, topics: Sequence[tuple[str, int]]) -> None:
        """Create those of these (name, partitions) that are not there. Raises ConfigError for one that cannot be, and
        StartFailure."""
        asked = messages.CreateTopicsRequest
        for name, partitions in topics:
            topic = asked.CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)
            answer = self._ask(self._peers[0], asked(topics=[topic], timeout_ms=int(SECONDS * 1000)))
            if type(answer) is Failure:
                raise StartFailure(f"--topic {name}:{partitions}: {answer.reason}")
            (row,) = answer.topics
            if row.error_code not in (0, errors.TOPIC_ALREADY_EXISTS):
                raise ConfigError(f"--topic {name}:{partitions}: {row.error_message}")

    def create_acls(self, entries: Sequence[tuple[str, Creation]]) -> None:
        """Store these entries, each with the words that name it. Raises ConfigError for one that cannot be, and
        StartFailure."""
        if not entries:
            return
        answer = self._ask(self._peers[0], messages.CreateAclsRequest(creations=[creation for _, creation in entries]))
        if type(answer) is Failure:
            raise StartFailure(f"--acl: {answer.reason}")
        for (words, _), row in zip(entries, answer.results, strict=True):
            if row.error_code:
                raise ConfigError(f"{words}: {row.error_message}")

    def wait_until_known(self, topics: Sequence[str]) -> None:
        """Wait until every broker knows all of them, and leaders of these topics. Raises StartFailure."""
        asked = messages.MetadataRequest
        request = asked(
            topics=[asked.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
        )
        for peer in self._peers:
            while not self._knows_all(self._ask(peer, request)):
                self._turn()

    def _knows_all(self, answer: Any) -> bool:
        return (
            type(answer) is not Failure
            and len(answer.brokers) >= len(self._peers)
            and not any(topic.error_code for topic in answer.topics)
            and not any(partition.error_code for topic in answer.topics for partition in topic.partitions)
        )
