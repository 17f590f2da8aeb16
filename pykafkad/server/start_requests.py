"""What a cluster of several controllers is asked before its start is told: topics, ACLs and users of SCRAM that a
command line names, and whether every broker knows all of that.

The requests are those of any client, on the listener by which the brokers reach each other."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.server.listeners import parse_address
from pykafkad.server.peer import Peer
from pykafkad.server.peer_types import PLAIN_TEXT, Failure
from pykafkad.server.runtime import Runtime
from pykafkad.wire import messages

SECONDS = 60.0
"""So long all of this may take."""

_PAUSE_SECONDS = 0.02

_ANY = 1
"""Of each enumeration of ACLs: all that there are."""

_RETRIABLE = (
    errors.REQUEST_TIMED_OUT,
    errors.NOT_CONTROLLER,
    errors.BROKER_NOT_AVAILABLE,
    errors.NETWORK_EXCEPTION,
)
"""What may be otherwise a moment later, while controllers elect or a broker comes back."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from pykafkad.server.peer_types import Security
    from pykafkad.server.start_acls import Creation


class StartRequests:
    """One connection to each of the brokers at `addresses`. `close` when all is asked."""

    def __init__(
        self,
        addresses: Sequence[str],
        is_stopped: Callable[[], object],
        runtime: Runtime | None = None,
        security: Security = PLAIN_TEXT,
    ) -> None:
        """Once `is_stopped()` holds or raises, nothing is waited for. `runtime` is that of the brokers if they are in
        this process: it has its turns here. `security` is how brokers reach each other there. Raises StartFailure for
        an address that nobody knows."""
        self._is_own = runtime is None
        runtime = self._runtime = runtime or Runtime()
        self._is_stopped = is_stopped
        self._deadline = runtime.now + SECONDS
        self._peers: list[Peer] = []
        self._lacking = ""
        """What is waited for, and of whom."""
        for address in addresses:
            host, port = parse_address(address, "listeners")
            try:
                (found, *_) = runtime.reactor.network.addresses(host, port)
            except OSError as error:
                self.close()
                raise StartFailure(f"{address} is not found: {error}") from None
            self._peers.append(
                Peer(runtime, found, port, client_id="pykafkad-serve", security=security, host_name=host)
            )

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
        if self._is_stopped():
            raise StartFailure(f"stopped before the brokers have settled: {self._lacking}")
        if runtime.now >= self._deadline:
            raise StartFailure(f"the brokers have not settled in {SECONDS:.0f} s: {self._lacking}")
        runtime.reactor.turn(runtime.seconds_to_next_turn(min(self._deadline, runtime.now + _PAUSE_SECONDS)))

    def settle(
        self,
        topics: Sequence[tuple[str, int]],
        acls: Sequence[tuple[str, Creation]],
        users: Sequence[tuple[str, str, str]] = (),
    ) -> None:
        """Have all of this there and known to every broker; of the `users` (name, password, mechanism) those of SCRAM
        are stored. Raises ConfigError for what cannot be, and StartFailure."""
        try:
            self.create_users(users)
            self.create_acls(acls)
            created = self.create_topics(topics)
            self.wait_until_known([name for name, _ in topics], created)
            for peer in self._peers:
                self._wait_for_users(peer, users)
                self._wait_for_acls(peer, acls)
        finally:
            self.close()

    def create_users(self, users: Sequence[tuple[str, str, str]]) -> None:
        """Store those that log in by SCRAM. Raises ConfigError for one that cannot be, and StartFailure."""
        if not users:
            return
        from pykafkad.server import scram_users

        for left in scram_users.in_requests(users):
            while left:
                answer = self._ask_first(messages.AlterUserScramCredentialsRequest(upsertions=left), "--user")
                if type(answer) is not Failure:
                    refused = {row.user: row for row in answer.results if row.error_code}
                    for name, row in refused.items():
                        self._lacking = f"--user {name}: {_reason(row)}"
                        if row.error_code not in _RETRIABLE:
                            raise ConfigError(self._lacking)
                    left = [each for each in left if each.name in refused]
                if left:
                    self._turn()

    def _wait_for_users(self, peer: Peer, users: Sequence[tuple[str, str, str]]) -> None:
        names = {name for name, _, mechanism in users if mechanism.startswith("SCRAM-")}
        if not names:
            return
        where = f"{peer.host}:{peer.port}"
        while True:
            answer = self._ask(peer, messages.DescribeUserScramCredentialsRequest(users=None))
            known = set() if type(answer) is Failure else {row.user for row in answer.results if not row.error_code}
            if names <= known:
                return
            self._lacking = f"{where}: it does not know the user {min(names - known)} yet"
            self._turn()

    def _wait_for_acls(self, peer: Peer, acls: Sequence[tuple[str, Creation]]) -> None:
        wanted = {_as_row(each): words for words, each in acls}
        if not wanted:
            return
        where = f"{peer.host}:{peer.port}"
        everything = messages.DescribeAclsRequest(
            resource_type_filter=_ANY,
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )
        while True:
            answer = self._ask(peer, everything)
            resources = [] if type(answer) is Failure else answer.resources
            known = {
                (*resource, row.principal, row.host, row.operation, row.permission_type)
                for each in resources
                for resource in ((each.resource_type, each.resource_name, each.pattern_type),)
                for row in each.acls
            }
            lacking = wanted.keys() - known
            if not lacking:
                return
            self._lacking = f"{where}: it does not know {wanted[min(lacking)]} yet"
            self._turn()

    def create_topics(self, topics: Sequence[tuple[str, int]]) -> set[str]:
        """Create those of these (name, partitions) that are not there; the names of those that were created. Raises
        ConfigError for one that cannot be, and StartFailure."""
        return {name for name, partitions in topics if self._create_topic(name, partitions)}

    def _create_topic(self, name: str, partitions: int) -> bool:
        """Whether it was created: it may be there already."""
        asked, words = messages.CreateTopicsRequest, f"--topic {name}:{partitions}"
        topic = asked.CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)
        request = asked(topics=[topic], timeout_ms=int(SECONDS * 1000))
        while True:
            answer = self._ask_first(request, words)
            if type(answer) is not Failure:
                (row,) = answer.topics
                if row.error_code in (0, errors.TOPIC_ALREADY_EXISTS):
                    return bool(row.error_code == 0)
                self._lacking = f"{words}: {_reason(row)}"
                if not self._may_change(row.error_code):
                    raise ConfigError(self._lacking)
            self._turn()

    def create_acls(self, entries: Sequence[tuple[str, Creation]]) -> None:
        """Store these entries, each with the words that name it. Raises ConfigError for one that cannot be, and
        StartFailure."""
        left = list(entries)
        while left:
            # Who repeats an entry that is stored has it stored once.
            request = messages.CreateAclsRequest(creations=[creation for _, creation in left])
            answer = self._ask_first(request, left[0][0])
            if type(answer) is not Failure:
                refused = [each for each in zip(left, answer.results, strict=True) if each[1].error_code]
                for (words, _), row in refused:
                    self._lacking = f"{words}: {_reason(row)}"
                    if row.error_code not in _RETRIABLE:
                        raise ConfigError(self._lacking)
                left = [entry for entry, _ in refused]
            if left:
                self._turn()

    def _ask_first(self, request: messages.Struct, words: str) -> Any:
        """The first broker's answer to what these words ask for, or a Failure, which may pass."""
        first = self._peers[0]
        self._lacking = self._lacking or f"{words}: no answer of {first.host}:{first.port}"
        answer = self._ask(first, request)
        self._lacking = f"{words}: {first.host}:{first.port}: {answer.reason}" if type(answer) is Failure else ""
        return answer

    def _may_change(self, code: int) -> bool:
        """Whether a topic refused with this code may be created a moment later. There are too few replicas as long as
        a broker has lost its session."""
        if code != errors.INVALID_REPLICATION_FACTOR:
            return code in _RETRIABLE
        answer = self._ask(self._peers[0], messages.MetadataRequest(topics=[]))
        return type(answer) is Failure or len(answer.brokers) < len(self._peers)

    def wait_until_known(self, topics: Sequence[str], created: Collection[str]) -> None:
        """Wait until every broker knows all of them, these topics, and leaders of those that were `created` now: the
        others may have partitions whose replicas are all gone. Raises StartFailure."""
        asked = messages.MetadataRequest
        request = asked(
            topics=[asked.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
        )
        for peer in self._peers:
            where = f"{peer.host}:{peer.port}"
            self._lacking = f"no answer of {where}"
            while lacking := self._lacks(self._ask(peer, request), created):
                self._lacking = f"{where}: {lacking}"
                self._turn()

    def _lacks(self, answer: Any, created: Collection[str]) -> str:
        """What this answer lacks, if anything."""
        if type(answer) is Failure:
            return str(answer.reason)
        if len(answer.brokers) < len(self._peers):
            return f"it knows {len(answer.brokers)} of {len(self._peers)} brokers"
        for topic in answer.topics:
            if topic.error_code:
                return f"topic {topic.name}: {errors.name(topic.error_code)}"
            for partition in topic.partitions if topic.name in created else ():
                if partition.error_code:
                    return f"{topic.name}-{partition.partition_index}: {errors.name(partition.error_code)}"
        return ""


def _as_row(entry: Creation) -> tuple[Any, ...]:
    """An entry as its creation names it, and as a description has it."""
    resource = entry.resource_type, entry.resource_name, entry.resource_pattern_type
    return (*resource, entry.principal, entry.host, entry.operation, entry.permission_type)


def _reason(row: Any) -> str:
    return str(row.error_message or errors.name(row.error_code))
