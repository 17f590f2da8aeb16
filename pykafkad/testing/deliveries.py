"""What became of records between a producer and a consumer, as a wire trace tells it: lost, doubled, out of order.

What a producer was told are the offsets in answers to its Produce requests; records of a transaction count when its end
was answered. What a consumer read are the records in answers to its Fetch requests, from the offset on that it asked
for: they have reached the client. What its program did with them is known to the test alone, which may say so: `read`.

A record that is sent again is known by its key, value and headers, so a test should send no two that are the same."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.server.exchanges import Exchange, read_frame
from pykafkad.testing.records import Record, answered_batches
from pykafkad.wire import frames
from pykafkad.wire.batch import BatchHeader, validate
from pykafkad.wire.records import iterate_records

Read = Record | tuple[int, int] | bytes | str
"""What a program has read: a `Record`, the partition and offset of one, or its value."""

MOST_TOLD = 10
"""So many records an error names, and how many more there are."""

_PRODUCE, _FETCH, _END_TXN = 0, 1, 26
_Content = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
_Place = tuple[int, int]


class Delivered(NamedTuple):
    """A record at its partition and offset, and the client that was told of it or was sent it."""

    client_id: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def __str__(self) -> str:
        key = "" if self.key is None else f" with key {self.key!r}"
        return f"offset {self.offset} of partition {self.partition}{key}, of client {self.client_id!r}"

    @property
    def place(self) -> _Place:
        return self.partition, self.offset

    @property
    def content(self) -> _Content:
        return self.key, self.value, self.headers


class Deliveries:
    """The records of a topic that producers were told are written, and those that consumers were sent."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.acknowledged: list[Delivered] = []
        """What producers were told, in the order of their requests."""
        self.read: list[Delivered] = []
        """What consumers were sent, in the order of their requests."""
        self.groups: dict[str, set[str]] = {}
        """The groups of each client id."""
        # How often a record was meant to be written, as far as anybody knows.
        self._meant: Counter[_Content] = Counter()
        self._sent: set[_Content] = set()
        # By client and partition: the turn of each acknowledged record among those sent, and the record.
        self._turns: dict[tuple[str, int], list[tuple[int, Delivered]]] = {}
        # The turns of records that were sent and not acknowledged.
        self._unresolved: dict[tuple[str, int, _Content], deque[int]] = {}
        self._turn = 0

    # --- what a test asserts ------------------------------------------------------------------------------------------

    def assert_none_lost(self, read: Iterable[Read] | None = None, *, group: str | None = None) -> None:
        """Raises AssertionError for acknowledged records that were not read, and ValueError where there were none."""
        self._check_acknowledged()
        for reader, found in self._readers(read, group).items():
            places = {each.place for each in found}
            unread = [each for each in self.acknowledged if each.place not in places]
            if unread:
                raise AssertionError(
                    f"{self.topic}: {len(unread)} of {len(self.acknowledged)} acknowledged records were not read "
                    f"by {reader}: {_told(unread)}"
                )

    def assert_none_doubled(self, read: Iterable[Read] | None = None, *, group: str | None = None) -> None:
        """Raises AssertionError for records that were read twice, or written twice by a client that sent them again."""
        for reader, found in self._readers(read, group).items():
            seen: set[_Place] = set()
            again = []
            written: Counter[_Content] = Counter()
            copies = []
            for each in found:
                if each.place in seen:
                    again.append(each)
                    continue
                seen.add(each.place)
                written[each.content] += 1
                if each.content in self._sent and written[each.content] > max(1, self._meant[each.content]):
                    copies.append(each)
            if again:
                raise AssertionError(f"{self.topic}: {len(again)} records were read again by {reader}: {_told(again)}")
            if copies:
                raise AssertionError(
                    f"{self.topic}: {len(copies)} records that {reader} has read are second copies of one that was "
                    f"sent again: {_told(copies)}"
                )

    def assert_order_kept(self, read: Iterable[Read] | None = None, *, group: str | None = None) -> None:
        """Raises AssertionError for records that were written in another order than a client has sent them first, or
        read in another order than written."""
        self._check_acknowledged()
        for (client_id, partition), turns in self._turns.items():
            behind = _behind([each for _, each in sorted(turns, key=lambda turn: turn[0])])
            if behind:
                raise AssertionError(
                    f"{self.topic}: {len(behind)} records of client {client_id!r} stand in partition {partition} "
                    f"before ones that it had sent earlier: {_told(behind)}"
                )
        for reader, found in self._readers(read, group).items():
            by_partition: dict[int, dict[_Place, Delivered]] = {}
            for each in found:
                by_partition.setdefault(each.partition, {}).setdefault(each.place, each)
            for first in by_partition.values():
                behind = _behind(list(first.values()))
                if behind:
                    raise AssertionError(
                        f"{self.topic}: {len(behind)} records were read by {reader} after ones that stand behind them: "
                        f"{_told(behind)}"
                    )

    def _check_acknowledged(self) -> None:
        if not self.acknowledged:
            raise ValueError(f"{self.topic}: the trace has no acknowledged record; did it begin before the producer?")

    def _readers(self, read: Iterable[Read] | None, group: str | None) -> dict[str, list[Delivered]]:
        """What each reader has read, by a name for people."""
        if read is not None:
            if group is not None:
                raise ValueError("group and read are both there; give one of them")
            return {"the test's program": self._given(read)}
        found: dict[str, list[Delivered]] = {}
        for each in self.read:
            its_groups = self.groups.get(each.client_id, set())
            if len(its_groups) > 1:
                raise ValueError(
                    f"{self.topic}: client {each.client_id!r} is in the groups {', '.join(sorted(its_groups))}, and a "
                    "Fetch does not say for which it reads; give the consumers of each a client id of their own"
                )
            name = f"group {next(iter(its_groups))}" if its_groups else f"client {each.client_id!r}"
            found.setdefault(name, []).append(each)
        if group is not None:
            found = {name: rows for name, rows in found.items() if name == f"group {group}"}
        if not found:
            who = "nobody" if group is None else f"group {group}"
            raise AssertionError(f"{self.topic}: {who} has read a record, {len(self.acknowledged)} were acknowledged")
        return found

    def _given(self, read: Iterable[Read]) -> list[Delivered]:
        """What a program says it has read. A value stands for the records with that value, first written first; one
        that nobody was told of stands at offset -1."""
        by_place = {each.place: each for each in (*self.read, *self.acknowledged)}
        by_value: dict[bytes | None, deque[Delivered]] = {}
        for each in sorted(by_place.values(), key=lambda each: each.place):
            by_value.setdefault(each.value, deque()).append(each)
        found = []
        unknown = 0
        for given in read:
            if isinstance(given, str | bytes):
                value = given.encode() if isinstance(given, str) else given
                rows = by_value.get(value)
                if rows is None:
                    unknown -= 1
                    found.append(Delivered("", unknown, -1, None, value))
                else:
                    # The last one again and again: more were read than there are.
                    found.append(rows.popleft() if len(rows) > 1 else rows[0])
                continue
            if isinstance(given, Record):
                if given.topic != self.topic:
                    continue
                partition, offset = given.partition, given.offset
            elif isinstance(given, tuple) and [type(each) for each in given] == [int, int]:
                partition, offset = given
            else:
                raise TypeError(
                    f"read: {given!r} is no value (bytes or str), no pair of partition and offset, and no Record"
                )
            known = by_place.get((partition, offset))
            found.append(known if known is not None else Delivered("", partition, offset, None, None))
        return found

    # --- from a trace -------------------------------------------------------------------------------------------------

    def sent(self, client_id: str, partition: int, header: BatchHeader, view: memoryview, base: int | None) -> Any:
        """A batch was sent; `base` is the offset that was answered, if any. What was acknowledged."""
        told = []
        for record in iterate_records(view, header):
            offset = -1 if base is None else record.offset - header.base_offset + base
            row = Delivered(client_id, partition, offset, record.key, record.value, tuple(record.headers))
            self._sent.add(row.content)
            which = client_id, partition, row.content
            unresolved = self._unresolved.setdefault(which, deque())
            if unresolved:
                turn = unresolved.popleft()
            else:
                turn = self._turn
                self._turn += 1
            if base is None:
                unresolved.append(turn)
            else:
                told.append((turn, row))
        return told

    def acknowledge(self, told: list[tuple[int, Delivered]], known: set[_Place]) -> None:
        """These records are written, as their client knows; an idempotent producer may be told so twice."""
        for turn, row in told:
            if row.place not in known:
                known.add(row.place)
                self.acknowledged.append(row)
                self._meant[row.content] += 1
                self._turns.setdefault((row.client_id, row.partition), []).append((turn, row))

    def without_answer(self, header: BatchHeader, view: memoryview) -> None:
        """A batch was sent with acks=0."""
        for record in iterate_records(view, header):
            content = record.key, record.value, tuple(record.headers)
            self._sent.add(content)
            self._meant[content] += 1


def follow(topic: str, topic_id: bytes | None, exchanges: list[Exchange], lost: int) -> Deliveries:
    """What these exchanges tell of a topic. Raises ValueError where that can't be all: `lost` older ones are gone, or
    some were not kept whole."""
    if lost:
        raise ValueError(f"{topic}: the trace has lost its oldest {lost} requests; clear it more often or trace less")
    follower = _Follower(topic, topic_id)
    flexible = frames.flexible_versions()
    for each in exchanges:
        client_id, request, answer = read_frame(each, flexible)
        follower.step(each, client_id, request, answer)
    return follower.found


class _Follower:
    """Goes from one exchange to the next."""

    def __init__(self, topic: str, topic_id: bytes | None) -> None:
        self.found = Deliveries(topic)
        self._topic = topic
        self._topic_id = topic_id
        self._known: set[_Place] = set()
        # By producer id and epoch: what was acknowledged in a transaction that is open.
        self._open: dict[tuple[int, int], list[tuple[int, Delivered]]] = {}
        # By the broker's address and the id of a fetch session (KIP-227): where it stands in each partition.
        self._sessions: dict[tuple[str, int, int], dict[int, int]] = {}

    def step(self, exchange: Exchange, client_id: str, request: Any, answer: Any) -> None:
        """Take the next one."""
        key = exchange.key
        if key in (_PRODUCE, _FETCH):
            is_cut = (
                len(exchange.request) < exchange.request_bytes or len(exchange.answer or b"") < exchange.answer_bytes
            )
            if is_cut and (request is None or self._is_about(request, key)):
                most = max(exchange.request_bytes, exchange.answer_bytes)
                raise ValueError(
                    f"{self._topic}: the trace has only a part of a {'Produce' if key == _PRODUCE else 'Fetch'} of "
                    f"client {client_id!r} of {most} bytes; keep more of each: broker.trace(frame_bytes={2 * most})"
                )
        group = getattr(request, "group_id", None)
        if isinstance(group, str) and group and hasattr(request, "member_id") and request.member_id:
            self.found.groups.setdefault(client_id, set()).add(group)
        if request is None:
            return
        if key == _PRODUCE:
            self._produce(client_id, request, answer)
        elif key == _FETCH and answer is not None:
            self._fetch(client_id, request, answer, exchange.local_address)
        elif key == _END_TXN and answer is not None and answer.error_code == errors.NONE:
            told = self._open.pop((request.producer_id, request.producer_epoch), [])
            self.found.acknowledge(told if request.committed else [], self._known)

    def _is_about(self, request: Any, key: int) -> bool:
        if key == _FETCH and request.session_epoch > 0:
            return True
        return any(self._is_topic(each) for each in (request.topic_data if key == _PRODUCE else request.topics))

    def _is_topic(self, row: Any) -> bool:
        if row.topic_id is not None and any(row.topic_id):
            return bool(bytes(row.topic_id) == self._topic_id)
        return bool(getattr(row, "name", None) == self._topic or getattr(row, "topic", None) == self._topic)

    def _produce(self, client_id: str, request: Any, answer: Any) -> None:
        bases = {
            row.index: row.base_offset
            for topic in (() if answer is None else answer.responses)
            if self._is_topic(topic)
            for row in topic.partition_responses
            if row.error_code == errors.NONE and row.base_offset >= 0
        }
        for topic in request.topic_data:
            for row in topic.partition_data if self._is_topic(topic) else ():
                if row.records is None or len(row.records) < 61:
                    continue
                view = memoryview(row.records)
                try:
                    header = validate(view)
                    if request.acks == 0:
                        self.found.without_answer(header, view)
                        continue
                    told = self.found.sent(client_id, row.index, header, view, bases.get(row.index))
                except KafkaError:
                    # The broker has refused it, too.
                    continue
                if header.is_transactional:
                    self._open.setdefault((header.producer_id, header.producer_epoch), []).extend(told)
                else:
                    self.found.acknowledge(told, self._known)

    def _fetch(self, client_id: str, request: Any, answer: Any, address: tuple[str, int]) -> None:
        session_id = request.session_id if request.session_epoch > 0 else answer.session_id
        session = (address[0], address[1], session_id)
        positions = self._sessions.get(session, {}) if request.session_epoch > 0 else {}
        for topic in request.topics:
            if self._is_topic(topic):
                positions.update((row.partition, row.fetch_offset) for row in topic.partitions)
        if session_id:
            self._sessions[session] = positions
        for topic in answer.responses:
            for row in topic.partitions if self._is_topic(topic) else ():
                if row.error_code == errors.NONE:
                    self._sent_to(client_id, row, positions.get(row.partition_index, 0))

    def _sent_to(self, client_id: str, row: Any, position: int) -> None:
        for _, view in answered_batches(row):
            if view is None:
                continue
            try:
                records = list(iterate_records(view, validate(view)))
            except KafkaError:
                # A consumer refuses it and what follows.
                return
            self.found.read += [
                Delivered(client_id, row.partition_index, each.offset, each.key, each.value, tuple(each.headers))
                for each in records
                if each.offset >= position
            ]


def _behind(rows: list[Delivered]) -> list[Delivered]:
    """Those whose offset is lower than one before them."""
    most = -1
    found = []
    for each in rows:
        if 0 <= each.offset < most:
            found.append(each)
        most = max(most, each.offset)
    return found


def _told(rows: list[Delivered]) -> str:
    shown = "; ".join(map(str, rows[:MOST_TOLD]))
    return shown if len(rows) <= MOST_TOLD else f"{shown}; and {len(rows) - MOST_TOLD} more"
