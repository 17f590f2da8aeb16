"""The shell of one replica of the metadata log in a quorum of several voters: it performs what `RaftReplica` asks for.

The effects of all steps are performed in the order in which they were returned. What must be on disk before the effects
behind it (`quorum-state`, a whole snapshot) is written beside the loop, and those effects wait; syncs of the log do not
hold them up. A disk that fails ends the member's part in the quorum: it says and promises nothing more."""

from __future__ import annotations

from collections import deque

from pykafkad import effects, errors
from pykafkad.errors import StorageFailure
from pykafkad.raft import events
from pykafkad.server import raft_addresses
from pykafkad.server.offload import outcome
from pykafkad.server.peer_types import Failure
from pykafkad.server.raft_strangers import Strangers
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from pykafkad.disk import File
    from pykafkad.log.follower_log import Cut
    from pykafkad.raft.replica import RaftReplica
    from pykafkad.server.offload import Offload
    from pykafkad.server.raft_log import RaftLog
    from pykafkad.server.raft_peers import RaftPeers
    from pykafkad.server.runtime import Runtime

    class Owner(Protocol):
        """Whose replica it is."""

        runtime: Runtime
        sync_offload: Offload
        syncs_beside_loop: bool

    class Told(Protocol):
        """Who hears of what became of the log."""

        def committed(self, end_offset: int) -> None:
            """The records before `end_offset` can be applied."""

        def snapshot_fetched(self, end_offset: int, epoch: int) -> None:
            """A snapshot of the leader has taken the place of the log."""

        def stepped(self) -> None:
            """Everything that can be performed now is performed; who leads may have changed."""

        def storage_failed(self, failure: StorageFailure) -> None:
            """The log or a file beside it cannot be written or read."""


MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""What one answer has of the log, a larger batch apart, or of a snapshot."""


class _OwnAppend:
    """Writes records of this node, which leads, at the end of the log as the machine counts it."""

    __slots__ = ("base_offset", "epoch", "records")

    def __init__(self, records: Sequence[tuple[bytes | None, bytes]], base_offset: int, epoch: int) -> None:
        self.records = records
        self.base_offset = base_offset
        self.epoch = epoch


class RaftShell:
    """See the module. `failure` is the disk's, after which nothing is done any more."""

    __slots__ = (
        "_directory",
        "_incoming",
        "_is_blocked",
        "_is_performing",
        "_listener",
        "_log",
        "_owner",
        "_peers",
        "_queue",
        "_strangers",
        "_told",
        "_voters",
        "failure",
        "machine",
    )

    def __init__(
        self, owner: Owner, machine: RaftReplica, log: RaftLog, peers: RaftPeers, told: Told, *, directory: str,
        listener: str,
    ) -> None:  # fmt: skip
        """`directory` has the small files; `listener` is the name of the one by which voters are reached."""
        self.machine = machine
        self.failure: StorageFailure | None = None
        self._owner = owner
        self._log = log
        self._peers = peers
        self._told = told
        self._directory = directory
        self._listener = listener
        self._queue: deque[object] = deque()
        self._is_blocked = False
        self._is_performing = False
        self._incoming: File | None = None
        self._voters: object = None
        self._strangers = Strangers(owner.runtime, machine)

    def step(self, event: object) -> None:
        """Hand an event to the machine, and perform what can be performed."""
        if self.failure is not None:
            return
        self._queue += self.machine.step(event, self._owner.runtime.now)
        if self.machine.voters is not self._voters:
            self._voters = self.machine.voters
            raft_addresses.locate_voters(self._peers, self.machine, self._listener)
        self._perform()

    def receive(self, token: object, request: Any) -> None:
        """Another node, or an administrator, sent a request. The answer goes to `token`."""
        if self.failure is not None:
            self._owner.runtime.replies.refuse(token, errors.KAFKA_STORAGE_ERROR)
            return
        self._strangers.asked(token, request)
        raft_addresses.learn_from_request(self._peers, self.machine, request, self._listener)
        self.step(events.Received(token, request))
        if self.machine.doubts:
            self._strangers.doubted_request(token, self.machine.doubts)

    def append(self, records: Sequence[tuple[bytes | None, bytes]]) -> int:
        """Append records of this node, which leads, as one batch; the offset behind the last."""
        base_offset = self.machine.log.end_offset
        end_offset = base_offset + len(records)
        self._queue.append(_OwnAppend(records, base_offset, self.machine.epoch))
        self.step(events.Appended(end_offset))
        return end_offset

    def tick(self, now: float) -> None:
        """Let the machine look at its timeouts, if one is due."""
        deadline = self.machine.next_deadline()
        if deadline is not None and deadline <= now:
            self.step(events.Tick())

    # ---- in their order

    def _perform(self) -> None:
        if self._is_performing:
            return
        self._is_performing = True
        try:
            while self._queue and not self._is_blocked and self.failure is None:
                effect = self._queue.popleft()
                _PERFORM[type(effect)](self, effect)
        except StorageFailure as failure:
            self._fail(failure)
        finally:
            self._is_performing = False
        self._told.stepped()

    def _fail(self, failure: StorageFailure) -> None:
        self.failure = failure.copy()
        self._queue.clear()
        self._told.storage_failed(self.failure)

    def _beside_loop(self, job: Callable[[], object], then: Callable[[object], None]) -> None:
        if self._owner.syncs_beside_loop:
            self._owner.sync_offload.submit(job, then)
        else:
            then(outcome(job))

    def _block(self, job: Callable[[], object], path: str) -> None:
        """What is behind it waits for `job`."""

        def ended(result: object) -> None:
            self._is_blocked = False
            if isinstance(result, Exception):
                self._fail(result if isinstance(result, StorageFailure) else StorageFailure("sync", path, result))
            else:
                self._perform()

        self._is_blocked = True
        self._beside_loop(job, ended)

    def _persist(self, effect: effects.Persist) -> None:
        path = f"{self._directory}/{effect.name}"
        disk = self._owner.runtime.disk
        self._block(lambda: disk.replace(path, effect.value), path)

    # ---- the log

    def _own_append(self, effect: _OwnAppend) -> None:
        self._log.append(effect.records, effect.base_offset, effect.epoch, is_control=False)

    def _append_control(self, effect: events.AppendControl) -> None:
        self._log.append_control(effect.records, effect.epoch)

    def _append_fetched(self, effect: events.AppendFetched) -> None:
        self._log.append_fetched(effect.records)

    def _truncate(self, effect: events.Truncate) -> None:
        self._sync_cut(self._log.truncate(effect.end_offset))

    def _sync_cut(self, cut: Cut) -> None:
        """Nothing is written behind a cut before it is on the device."""
        if cut.sync is not None:
            self._block(cut.sync, self._log.log.directory)

    def _sync(self, effect: events.Sync) -> None:
        job = self._log.sync_job()

        def ended(result: object) -> None:
            if isinstance(result, Exception):
                # Whatever a sync raised, it did not happen.
                path = self._log.log.directory
                self._fail(result if isinstance(result, StorageFailure) else StorageFailure("sync", path, result))
            else:
                job.finish()
                self.step(events.Synced(effect.number))

        self._beside_loop(job.run, ended)

    def _committed(self, effect: events.Committed) -> None:
        self._told.committed(effect.end_offset)

    def _store_snapshot(self, effect: events.StoreSnapshot) -> None:
        """The parts come in their order; one at 0 begins another snapshot."""
        disk = self._owner.runtime.disk
        path = self._log.snapshot_path(effect.end_offset, effect.epoch)
        part = f"{path}.part"
        if not effect.position:
            self._close_incoming()
            disk.unlink(part)
            self._incoming = disk.open(part, create=True)
        file = self._incoming
        assert file is not None, "a snapshot begins with its first part"
        file.pwrite(effect.content, effect.position)
        if not effect.is_last:
            return
        directory = self._log.log.directory

        def keep() -> None:
            file.sync()
            disk.rename(part, path)
            disk.sync_directory(directory)

        # What takes its place stands before everything that the machine has asked for since.
        self._queue.appendleft(_Replace(effect.end_offset, effect.epoch))
        self._block(keep, path)

    def _replace(self, effect: _Replace) -> None:
        self._close_incoming()
        self._sync_cut(self._log.begin_at(effect.end_offset))
        self._told.snapshot_fetched(effect.end_offset, effect.epoch)

    def _close_incoming(self) -> None:
        if self._incoming is not None:
            self._incoming.close()
            self._incoming = None

    # ---- others

    def _send(self, effect: effects.Send) -> None:
        raft_addresses.add_own(self.machine, effect.request)

        def then(answer: object) -> None:
            if type(answer) is Failure and answer.is_final and type(effect.request) is messages.VoteRequest:
                # A voter before Kafka 4.0 has no version with pre-votes.
                answer = messages.VoteResponse(error_code=errors.UNSUPPORTED_VERSION)
            place = self._peers.located(effect.peer)
            self._strangers.answered(place, answer)
            raft_addresses.learn_from_answer(self._peers, self.machine, answer)
            self.step(effect.then(answer))
            if self.machine.doubts:
                self._strangers.doubted_answer(place, self.machine.doubts)

        self._peers.send(effect.peer, effect.request, then)

    def _upgraded(self, effect: events.Upgraded) -> None:
        """Who has asked looks at the end of the log."""

    def _locate(self, effect: events.Locate) -> None:
        for each in effect.endpoints:
            if each.name.upper() == self._listener.upper():
                self._peers.locate(effect.peer, each.host, each.port)

    def _reply(self, effect: effects.Reply) -> None:
        self._answer(effect.token, effect.message)

    def _reply_with_records(self, effect: events.ReplyWithRecords) -> None:
        message: Any = effect.message
        message.responses[0].partitions[0].records = self._log.read(
            effect.offset, min(effect.max_bytes, MAX_ANSWER_BYTES)
        )
        self._answer(effect.token, message)

    def _reply_with_snapshot(self, effect: events.ReplyWithSnapshot) -> None:
        message: Any = effect.message
        row = message.topics[0].partitions[0]
        try:
            max_bytes = min(max(effect.max_bytes, 0), MAX_ANSWER_BYTES)
            content = self._log.read_snapshot(effect.end_offset, effect.epoch, effect.position, max_bytes)
        except StorageFailure:
            # It was let go since; the follower asks for the next one.
            row.error_code, row.size = errors.SNAPSHOT_NOT_FOUND, 0
        else:
            row.unaligned_records = content
        self._answer(effect.token, message)

    def _answer(self, token: object, message: Any) -> None:
        raft_addresses.add_leader(self._peers, self.machine, message, self._listener)
        self._owner.runtime.replies.reply(token, message)

    def close(self) -> None:
        """Send nothing more, and write nothing more."""
        if self.failure is None:
            # Answers may still come, of jobs and of others.
            self.failure = StorageFailure("write", self._log.log.directory, "this node has ended")
        self._peers.close()
        self._close_incoming()


class _Replace:
    """A fetched snapshot is whole and on disk: it takes the place of the log."""

    __slots__ = ("end_offset", "epoch")

    def __init__(self, end_offset: int, epoch: int) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


_PERFORM: dict[type, Callable[[RaftShell, Any], None]] = {
    effects.Persist: RaftShell._persist,
    effects.Send: RaftShell._send,
    effects.Reply: RaftShell._reply,
    events.AppendControl: RaftShell._append_control,
    events.AppendFetched: RaftShell._append_fetched,
    events.Truncate: RaftShell._truncate,
    events.Sync: RaftShell._sync,
    events.Committed: RaftShell._committed,
    events.ReplyWithRecords: RaftShell._reply_with_records,
    events.ReplyWithSnapshot: RaftShell._reply_with_snapshot,
    events.StoreSnapshot: RaftShell._store_snapshot,
    events.Locate: RaftShell._locate,
    events.Upgraded: RaftShell._upgraded,
    _OwnAppend: RaftShell._own_append,
    _Replace: RaftShell._replace,
}
