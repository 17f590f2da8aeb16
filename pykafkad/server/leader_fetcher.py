"""Fetching from one leader the partitions that this broker follows: one connection.

One Fetch is on its way to a leader at a time, in an incremental session (KIP-227), and the next one leaves when its
answer is worked off. What follows from an answer is decided by each partition's `Follower`; here it is done to the log.
A partition with an error pauses for `replica.fetch.backoff.ms`, and so do all of a leader whose connection fails."""

from __future__ import annotations

from functools import partial

from pykafkad import errors
from pykafkad.log import follower, follower_log
from pykafkad.log.follower import Follower
from pykafkad.server.followed_partition import Followed, key_of
from pykafkad.server.node_names import of_fetcher
from pykafkad.server.peer import Limits, Peer
from pykafkad.server.peer_security import endpoint_of
from pykafkad.server.peer_types import Failure
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pykafkad.log.follower import Question
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.brokers import Endpoint
    from pykafkad.server.broker import Broker

    Key = tuple[bytes, int]
    Asked = dict[Key, tuple[Followed, Question]]
    Row = messages.FetchResponse.PartitionData

_EARLIEST, _LATEST = -2, -1
_NEVER = float("inf")
_SOON_MS = 20
"""How long a request waits for records while other partitions wait: for a role, for the end of a cut, to be opened."""

_DIGITS = frozenset("0123456789.")


class LeaderFetcher:
    """The partitions of one leader, with the session and the connection that they share."""

    __slots__ = (
        "_broker",
        "_by_key",
        "_endpoint",
        "_followed",
        "_in_flight",
        "_leader",
        "_paused_until",
        "_peer",
        "_round",
        "_session_epoch",
        "_session_id",
        "_session_number",
    )

    def __init__(self, broker: Broker, leader: int) -> None:
        self._broker = broker
        self._leader = leader
        self._followed: dict[PartitionLog, Followed] = {}
        self._by_key: dict[Key, Followed] = {}
        """The partitions that the leader's session has."""
        self._peer: Peer | None = None
        self._endpoint: Endpoint | None = None
        self._session_id = self._session_epoch = self._session_number = self._round = 0
        self._in_flight = False
        self._paused_until = 0.0

    def add(self, log: PartitionLog, leader_epoch: int) -> None:
        """Follow a partition from now on in this epoch."""
        known = self._followed.get(log)
        if known is not None and known.leader_epoch == leader_epoch:
            return
        followed = self._followed[log] = Followed(log, leader_epoch)
        if known is not None:
            followed.sent = known.sent
            if self._by_key.get(key_of(log)) is known:
                self._by_key[key_of(log)] = followed
        self._plan(self._broker.runtime.now)

    def remove(self, log: PartitionLog) -> None:
        """Follow a partition no longer. The session forgets it with the next request."""
        self._followed.pop(log, None)
        if not self._followed and self._peer is not None:
            self._disconnect()

    def log_recovered(self) -> None:
        """A log is back in service. If it is the only one, nothing was asked for meanwhile, and no timer is set."""
        self._plan(self._broker.runtime.now)

    def close(self) -> None:
        """Follow nothing more."""
        self._followed.clear()
        self._broker.runtime.timers.cancel((self, "fetch"))
        self._disconnect()

    def _disconnect(self) -> None:
        if self._peer is not None:
            self._peer.close()
        self._peer = self._endpoint = None
        self._begin_session()

    def _begin_session(self) -> None:
        self._session_epoch = 0
        self._session_number += 1
        self._by_key.clear()

    # --- asking -----------------------------------------------------------------------------------------------------

    def _plan(self, at: float) -> None:
        if not self._in_flight:
            self._broker.runtime.timers.set((self, "fetch"), max(at, self._paused_until))

    def fired(self, _: str) -> None:
        """It is time to fetch."""
        self._ask()

    def _ask(self) -> None:
        """Ask the leader for all that may be asked for now, unless a request is on its way."""
        if self._in_flight or not self._followed:
            return
        peer = self._connected()
        if peer is None:
            return
        now = self._broker.runtime.now
        asked: Asked = {}
        later: float | None = None
        quiet_count, is_partial, is_held_up = 0, False, False
        self._round += 1
        throttles = self._broker.replication.throttles
        session = self._session_number if self._session_epoch else None
        for followed in self._followed.values():
            if followed.session == session and followed.is_as_sent(now):
                quiet_count += 1
                followed.round = self._round
                continue
            due = followed.paused_until
            if due <= now and throttles is not None and throttles.delays(followed.log, followed.lag):
                # With others to fetch it is looked at again after their answer, as in Kafka.
                due = self._pause_until()
            if due > now:
                if due < _NEVER:
                    later = due if later is None else min(later, due)
                else:
                    is_held_up = True
                continue
            if followed.is_to_load and (is_partial or not self._broker.runtime.take_load()):
                is_partial, later = True, now
                continue
            question = self._question(followed)
            if question is not None:
                asked[key_of(followed.log)] = followed, question
            elif followed.asks_offsets:
                is_held_up = True
        if not asked and not quiet_count:
            if later is not None:
                self._plan(later)
            return
        request = self._request(asked, quiet_count, is_partial or is_held_up)
        self._in_flight = True
        peer.send(request, partial(self._answered, peer, asked))

    def _question(self, followed: Followed) -> Question | None:
        """What to ask for a partition; opens its log. None if there is nothing to ask now."""
        log = followed.log
        try:
            if log.closed:
                return None
            if log.offline is not None:
                # No client may ask for it that would notice.
                self._broker.log_failed(log, log.offline)
                return None
            # The first look at a log opens it, which may fail.
            if followed.follower is None or not followed.follower.fits(log.end_offset, log.epochs):
                log.write_pending()
                log.replica.opened(log.written_end_offset, log.high_watermark)
                followed.follower = Follower(followed.leader_epoch, log.written_end_offset, log.epochs)
            return followed.follower.question()
        except errors.StorageFailure as failure:
            self._broker.log_failed(log, failure)
            followed.paused_until = self._pause_until()
            return None

    def _request(self, asked: Asked, quiet_count: int, is_short: bool) -> messages.FetchRequest:
        """A Fetch with what the leader's session does not know; it has `quiet_count` partitions besides. A
        short one waits for a moment only: other partitions are to be asked for soon."""
        settings, broker = self._broker.settings, self._broker
        row = messages.FetchRequest
        is_new = not self._session_epoch
        topics: dict[bytes, messages.FetchRequest.FetchTopic] = {}
        for key, (followed, question) in asked.items():
            sent = question, followed.log.log_start_offset
            followed.round = self._round
            if not is_new and self._by_key.get(key) is followed and followed.sent == sent:
                continue
            self._by_key[key], followed.sent, followed.session = followed, sent, self._session_number
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = row.FetchTopic(topic_id=key[0], partitions=[])
            topic.partitions.append(
                row.FetchPartition(
                    partition=key[1],
                    current_leader_epoch=question.leader_epoch,
                    fetch_offset=question.fetch_offset,
                    last_fetched_epoch=question.last_fetched_epoch,
                    log_start_offset=followed.log.log_start_offset,
                    partition_max_bytes=settings.replica_fetch_max_bytes,
                )
            )
        forgotten: dict[bytes, messages.FetchRequest.ForgottenTopic] = {}
        are_all = len(self._by_key) == quiet_count + len(asked)
        for key in () if are_all else [key for key, each in self._by_key.items() if each.round != self._round]:
            self._by_key.pop(key).session = -1
            gone = forgotten.get(key[0])
            if gone is None:
                gone = forgotten[key[0]] = row.ForgottenTopic(topic_id=key[0], partitions=[])
            gone.partitions.append(key[1])
        registered = broker.image.brokers.get(broker.node_id)
        return row(
            replica_state=row.ReplicaState(
                replica_id=broker.node_id, replica_epoch=-1 if registered is None else registered.epoch
            ),
            max_wait_ms=_SOON_MS if is_short or broker.partitions.roles else settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            isolation_level=0,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    # --- answers ----------------------------------------------------------------------------------------------------

    def _answered(self, peer: Peer, asked: Asked, answer: object) -> None:
        self._in_flight = False
        if peer is not self._peer:
            # The leader's address is another one by now, or nothing of it is followed any more.
            self._plan(self._broker.runtime.now)
            return
        if not isinstance(answer, messages.FetchResponse):
            self._failed(answer)
            return
        if answer.error_code:
            if answer.error_code == errors.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = 0
            self._begin_session()
            self._failed(Failure(errors.name(answer.error_code)))
            return
        self._session_id = answer.session_id
        self._session_epoch = self._session_epoch % 0x7FFFFFFF + 1 if answer.session_id else 0
        try:
            for topic in answer.responses:
                for row in topic.partitions:
                    key = topic.topic_id, row.partition_index
                    self._take(asked.get(key) or self._asked_before(key), row)
        finally:
            # A timer would fire in the next turn: that is a turn more for each record that is replicated.
            self._ask()

    def _asked_before(self, key: Key) -> tuple[Followed, Question] | None:
        """What the session has been asked of a partition before, and goes on answering."""
        followed = self._by_key.get(key)
        return None if followed is None or followed.sent is None else (followed, followed.sent[0])

    def _failed(self, failure: object) -> None:
        """No partition of the leader has got an answer."""
        self._begin_session()
        self._paused_until = self._pause_until()
        self._broker.logs.debug("server", "replica-fetch-failed", leader=self._leader, reason=failure)
        self._plan(self._paused_until)

    def _take(self, asked: tuple[Followed, Question] | None, row: Row) -> None:
        if asked is None:
            return
        followed, question = asked
        log, machine = followed.log, followed.follower
        if self._followed.get(log) is not followed or machine is None or log.closed or log.offline is not None:
            # The partition has another leader or epoch by now, or is gone.
            return self._forget_told(log)
        diverging = row.diverging_epoch.epoch, row.diverging_epoch.end_offset
        if question != machine.question() or diverging[0] >= 0:
            # Watermarks count only where the logs are one.
            self._forget_told(log)
        # Records that were decoded are a view; slices of files go out only.
        records: Any = row.records
        self._perform(followed, machine.answered(question, row, records, diverging), records)

    def _forget_told(self, log: PartitionLog) -> None:
        """An answer about a partition was not used: a new session makes the leader say again what it said there, such
        as a high watermark that does not change any more."""
        if log in self._followed:
            self._session_epoch = 0

    def _perform(self, followed: Followed, effects: Iterable[object], records: memoryview | None = None) -> None:
        log = followed.log
        try:
            for effect in effects:
                _PERFORM[type(effect)](self, followed, effect, records)
        except Exception as error:
            followed.paused_until = self._pause_until()
            if not isinstance(error, errors.StorageFailure):
                raise
            self._broker.log_failed(log, error)

    def _append(self, followed: Followed, effect: follower.AppendBatches, records: memoryview) -> None:
        log, broker = followed.log, self._broker
        follower_log.append(log, records[: effect.size_bytes], effect.headers, broker.runtime.now_ms)
        self._ended(followed)
        broker.purgatory.touch(log)
        followed.lag = None
        throttles = broker.replication.throttles
        if throttles is not None:
            throttles.received(log, effect.size_bytes)

    def _ended(self, followed: Followed) -> None:
        log = followed.log
        assert followed.follower is not None
        followed.follower.log_changed(log.end_offset)
        log.replica.appended(log.end_offset, self._broker.runtime.now)

    def _watermarks(self, followed: Followed, effect: follower.TakeWatermarks, _: object) -> None:
        log, broker = followed.log, self._broker
        if followed.lag is None:
            followed.lag = max(0, effect.high_watermark - log.end_offset)
        broker.commits.perform(log, log.replica.leader_committed(effect.high_watermark))
        start_offset = min(effect.log_start_offset, log.high_watermark)
        if start_offset > log.log_start_offset:
            log.delete_records(start_offset)

    def _truncate(self, followed: Followed, effect: follower.TruncateTo, _: object) -> None:
        if effect.end_offset < followed.log.high_watermark and followed.log in self._broker.compaction.busy:
            followed.paused_until = self._pause_until()
            return
        self._cut(followed, effect.end_offset, follower_log.truncate)

    def _begin_at(self, followed: Followed, effect: follower.BeginAt, _: object) -> None:
        if followed.log in self._broker.compaction.busy:
            followed.paused_until = self._pause_until()
            return
        self._cut(followed, effect.offset, follower_log.begin_at)

    def _cut(
        self, followed: Followed, end_offset: int, cut: Callable[[PartitionLog, int, int], follower_log.Cut]
    ) -> None:
        log, broker = followed.log, self._broker
        followed.paused_until = _NEVER
        broker.replication.cuts.begin(
            log,
            end_offset,
            lambda: cut(log, end_offset, broker.runtime.now_ms),
            partial(self._was_cut, followed, log.end_offset),
            partial(self._go_on, followed),
        )

    def _was_cut(self, followed: Followed, before: int, end_offset: int) -> None:
        log, broker = followed.log, self._broker
        if followed.follower is not None:
            followed.follower.log_changed(end_offset)
        if end_offset < before:
            log.replica.truncated(end_offset)
            broker.compaction.forget([log])
        elif end_offset > before:
            log.replica.opened(end_offset, end_offset)
        broker.logs.info(
            "server", "log-cut", topic=log.topic, partition=log.partition, leader=self._leader,
            leader_epoch=followed.leader_epoch, end_offset=before, new_end_offset=end_offset,
        )  # fmt: skip

    def _go_on(self, followed: Followed) -> None:
        """The log may be written again."""
        followed.paused_until = 0.0
        if self._followed.get(followed.log) is followed:
            self._plan(self._broker.runtime.now)

    def _pause(self, followed: Followed, effect: follower.Pause, _: object) -> None:
        followed.paused_until = self._pause_until()
        self._broker.replication.strange.leader_refused(self._leader, self._endpoint, followed.log, effect)

    def _pause_until(self) -> float:
        return self._broker.runtime.now + self._broker.settings.replica_fetch_backoff_ms / 1000

    # --- where the leader's log begins and ends ---------------------------------------------------------------------

    def _ask_offsets(self, followed: Followed, effect: follower.AskOffsets, _: object) -> None:
        """Both ends, one after the other: a request has one time for each partition."""
        followed.offsets = {}
        self._ask_offset(followed, effect.leader_epoch, _LATEST)

    def _ask_offset(self, followed: Followed, leader_epoch: int, timestamp: int) -> None:
        peer = self._peer
        assert peer is not None
        row = messages.ListOffsetsRequest
        asked = row.ListOffsetsPartition(
            partition_index=followed.log.partition, current_leader_epoch=leader_epoch, timestamp=timestamp
        )
        topic = row.ListOffsetsTopic(name=followed.log.topic, partitions=[asked])
        request = row(replica_id=self._broker.node_id, topics=[topic])
        peer.send(request, partial(self._offset_answered, followed, leader_epoch, timestamp))

    def _offset_answered(self, followed: Followed, leader_epoch: int, timestamp: int, answer: object) -> None:
        machine = followed.follower
        if self._followed.get(followed.log) is not followed or machine is None:
            return
        code = errors.NETWORK_EXCEPTION
        if isinstance(answer, messages.ListOffsetsResponse):
            rows = [row for topic in answer.topics for row in topic.partitions]
            code = rows[0].error_code if rows else errors.UNKNOWN_SERVER_ERROR
            if code == errors.NONE:
                followed.offsets[timestamp] = rows[0].offset
        if code == errors.NONE and timestamp == _LATEST and self._peer is not None:
            self._ask_offset(followed, leader_epoch, _EARLIEST)
            return
        ends = followed.offsets.get(_EARLIEST, -1), followed.offsets.get(_LATEST, -1)
        self._perform(followed, machine.offsets_answered(leader_epoch, code, *ends))
        self._plan(self._broker.runtime.now)

    # --- the connection ---------------------------------------------------------------------------------------------

    def _connected(self) -> Peer | None:
        """The leader at its present address; None if that is not known, or being looked up."""
        broker = self._broker
        registered = broker.image.brokers.get(self._leader)
        endpoint = None if registered is None else endpoint_of(broker, registered)
        if endpoint is None:
            self._plan(self._pause_until())
            return None
        known = self._endpoint
        if known is not None and (known.host, known.port) == (endpoint.host, endpoint.port):
            return self._peer
        self._disconnect()
        self._endpoint = endpoint
        if endpoint.host == "localhost" or set(endpoint.host) <= _DIGITS or ":" in endpoint.host:
            self._connect("127.0.0.1" if endpoint.host == "localhost" else endpoint.host, endpoint.port)
            return self._peer
        addresses = broker.runtime.reactor.network.addresses
        self._in_flight = True
        # Not on the thread of the syncs: a name server may take its time.
        broker.runtime.cpu_offload.submit(
            lambda: addresses(endpoint.host, endpoint.port), partial(self._resolved, endpoint)
        )
        return None

    def _resolved(self, endpoint: Endpoint, addresses: object) -> None:
        self._in_flight = False
        if endpoint is not self._endpoint:
            self._plan(self._broker.runtime.now)
        elif isinstance(addresses, list) and addresses:
            self._connect(addresses[0], endpoint.port)
            self._plan(self._broker.runtime.now)
        else:
            self._endpoint = None
            self._failed(addresses)

    def _connect(self, host: str, port: int) -> None:
        settings = self._broker.settings
        assert self._endpoint is not None
        self._peer = Peer(
            self._broker.runtime,
            host,
            port,
            client_id=of_fetcher(self._broker.node_id),
            security=self._broker.peer_security,
            host_name=self._endpoint.host,
            connector=self._broker.local_links,
            limits=Limits(
                request_timeout_ms=settings.replica_socket_timeout_ms,
                max_frame_bytes=max(2 * settings.replica_fetch_response_max_bytes, 1 << 26),
            ),
        )


_PERFORM: dict[type, Callable[[LeaderFetcher, Followed, Any, Any], None]] = {
    follower.AppendBatches: LeaderFetcher._append,
    follower.AskOffsets: LeaderFetcher._ask_offsets,
    follower.BeginAt: LeaderFetcher._begin_at,
    follower.Pause: LeaderFetcher._pause,
    follower.TakeWatermarks: LeaderFetcher._watermarks,
    follower.TruncateTo: LeaderFetcher._truncate,
}
