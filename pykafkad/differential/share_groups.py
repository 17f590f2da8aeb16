"""Records of share groups (KIP-932), as two brokers give them to members.

Which records an answer to ShareFetch has is a matter of the moment. What counts is that both brokers give a group the
same records, as often, with the same delivery counts. So it is noted by offset what each has given and to whom. The
second broker is asked again while it has not given what the first one has (`behind`); what it alone has given may come
from the first one at a later fetch. Members acknowledge what the first broker has given them: the second one hears of
each record when it has given that out as well.

Once a record's lock has run out, or a member has gone with records that the other broker has not given it, delivery
counts are no longer alike, and are not compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pykafkad import errors
from pykafkad.differential import values
from pykafkad.wire import messages

FETCH, ACKNOWLEDGE = 78, 79
KEYS = (FETCH, ACKNOWLEDGE)
LEFT_OUT = {
    FETCH: frozenset(
        ("responses", "records", "acquired_records", "acknowledge_error_code", "acknowledge_error_message")
    ),
    ACKNOWLEDGE: frozenset(("responses",)),
}
"""Fields that are compared here, and not as those of other answers are."""
NOT_YET = frozenset((errors.UNKNOWN_TOPIC_ID, errors.UNKNOWN_TOPIC_OR_PARTITION, errors.NOT_LEADER_OR_FOLLOWER))
"""Errors of partitions that have just been made: the member asks again."""

ATTEMPTS = 10
WAIT_MS = 500
"""How often the second broker is asked for what it has not given, and how long it may look for records."""
PATIENT_FETCHES = 4
PATIENT_SECONDS = 3.0
"""Records differ that the first broker has not given in so many empty answers, and so long, and the second one has."""
MOST_OFFSETS = 200_000
MOST_MEMBERS = 10_000

_RENEW = 4
_FINAL_EPOCH = -1
_MOST_EPOCH = 2**31 - 1

Member = tuple[str, str]
"""Ids of the group and of the member."""
Partition = tuple[str, bytes, int]
"""Group, the topic's id at the first broker, index."""
FirstId = Callable[[bytes], bytes]
Acknowledged = list[tuple[int, int]]
"""Offsets, each with what the member says of its record."""


class Apart(NamedTuple):
    """A place of an answer, and what each broker has there."""

    path: str
    first: object
    second: object


class _Record:
    """What each of the two has done with one record; `given` are its delivery counts, `member` is who has it now."""

    __slots__ = ("content", "given", "is_loose", "member", "said")

    def __init__(self) -> None:
        self.content: list[Any] = [None, None]
        self.given: tuple[list[int], list[int]] = ([], [])
        self.member: list[str | None] = [None, None]
        self.said: list[int] = []
        """What members have acknowledged at the first broker, and the second one has not heard."""
        self.is_loose = False

    @property
    def is_even(self) -> bool:
        """Whether both have given it as often, or that is no longer known."""
        return self.is_loose or len(self.given[0]) == len(self.given[1])


class _Partition:
    __slots__ = ("ahead", "empty", "records", "unsaid")

    def __init__(self) -> None:
        self.records: dict[int, _Record] = {}
        self.unsaid: set[int] = set()
        """Offsets of which the second broker has to hear."""
        self.ahead: dict[int, float] = {}
        """Offsets that the second broker alone has given, and since when."""
        self.empty = 0
        """Answers without records of the first broker since then."""


class _Session:
    """What is known of one member: how many more fetches the second broker has seen, and, of the request that is
    compared now, how often it was asked for more, the partitions of which it has heard other acknowledgements, and what
    differs."""

    __slots__ = ("attempts", "changed", "more", "places")

    def __init__(self) -> None:
        self.more = self.attempts = 0
        self.changed: set[Partition] = set()
        self.places: list[Apart] = []


class ShareGroups:
    """Those of all groups."""

    def __init__(self, now: Callable[[], float], name: Callable[[bytes], str], first_id: FirstId) -> None:
        """`now` counts seconds, `name` is that of a topic, and `first_id` the id at the first broker of one of the
        second."""
        self._now = now
        self._name = name
        self._first_id = first_id
        self._partitions: dict[Partition, _Partition] = {}
        self._sessions: dict[Member, _Session] = {}
        self._count = 0

    def sizes(self) -> tuple[int, int]:
        """The numbers of records and of members that it remembers."""
        return self._count, len(self._sessions)

    # --- requests -----------------------------------------------------------------------------------------------------

    def translate(self, key: int, asked: Any) -> bool:
        """Change a request to the first broker to what the second one has to be asked: whether anything is changed."""
        if key not in KEYS:
            return False
        member = _member(asked)
        session = self._session(member)
        session.attempts, session.changed, session.places = 0, set(), []
        if not asked.share_session_epoch:
            session.more = 0
            return False
        asked_before = _acknowledged(asked, member[0])
        heard = {where: self._heard(where, member[1], said) for where, said in asked_before.items()}
        if not getattr(asked, "is_renew_ack", False):
            for where in self._of_group(member[0]):
                heard[where] = heard.get(where, []) + self._unsaid(where, member[1])
        for where, said in heard.items():
            if sorted(said) != sorted(asked_before.get(where, [])):
                session.changed.add(where)
                _say(asked, where, sorted(said))
        changed = bool(session.changed)
        if asked.share_session_epoch > 0 and session.more:
            asked.share_session_epoch = (asked.share_session_epoch - 1 + session.more) % _MOST_EPOCH + 1
            changed = True
        return changed

    def _session(self, member: Member) -> _Session:
        if member not in self._sessions and len(self._sessions) >= MOST_MEMBERS:
            del self._sessions[next(iter(self._sessions))]
        return self._sessions.setdefault(member, _Session())

    def _heard(self, where: Partition, member: str, said: Acknowledged) -> Acknowledged:
        """What the second broker may hear of it now. What the first one has never given is passed on as it is."""
        found = []
        partition = self._partitions.get(where)
        for offset, kind in said:
            record = None if partition is None else partition.records.get(offset)
            if partition is None or record is None or record.member[0] != member:
                found.append((offset, kind))
            elif kind == _RENEW:
                if record.member[1] == member:
                    found.append((offset, kind))
            else:
                record.member[0] = None
                record.said.append(kind)
                partition.unsaid.add(offset)
                if record.member[1] == member and len(record.said) == 1:
                    found.append((offset, self._say_one(partition, offset, record)))
        return found

    def _unsaid(self, where: Partition, member: str) -> Acknowledged:
        partition, found = self._partitions[where], []
        for offset in sorted(partition.unsaid):
            record = partition.records[offset]
            if record.member[1] == member:
                found.append((offset, self._say_one(partition, offset, record)))
        return found

    def _say_one(self, partition: _Partition, offset: int, record: _Record) -> int:
        record.member[1] = None
        kind = record.said.pop(0)
        if not record.said:
            partition.unsaid.discard(offset)
            if record.is_even and record.member[0] is None and kind != 2:
                # Nobody gets it again. What is released may come again, with the next delivery count.
                self._forget(partition, offset)
        return kind

    def _forget(self, partition: _Partition, offset: int) -> None:
        if partition.records.pop(offset, None) is not None:
            self._count -= 1
        partition.unsaid.discard(offset)
        partition.ahead.pop(offset, None)

    def _of_group(self, group: str) -> list[Partition]:
        return [where for where in self._partitions if where[0] == group]

    # --- answers ------------------------------------------------------------------------------------------------------

    def heard(self, key: int, asked: Any, first: Any, second: Any) -> Any:
        """Take in two answers. Returns the request by which the second broker is asked for what it has not given, or
        None."""
        member = _member(asked)
        session = self._session(member)
        if first.error_code or second.error_code:
            return None
        session.places += self._acknowledgements(key, asked, first, second, session.changed)
        behind = None
        if key == FETCH:
            gave = [self._give(side, member, each, session) for side, each in enumerate((first, second))]
            session.places += self._ahead(member[0], not gave[0])
            behind = self.behind(asked)
        if asked.share_session_epoch == _FINAL_EPOCH:
            self._release(member)
        return behind

    def heard_more(self, asked: Any, more: Any) -> Any:
        """Take in the second broker's answer to a request of `behind`. Returns the next one, or None."""
        member = _member(asked)
        session = self._session(member)
        if more.error_code:
            session.places.append(Apart("error_code", 0, more.error_code))
            return None
        for (topic_id, index), row in rows(more):
            if row.acknowledge_error_code:
                path = f"{self._path((member[0], self._first_id(topic_id), index))}.acknowledge_error_code"
                session.places.append(Apart(path, 0, row.acknowledge_error_code))
        self._give(1, member, more, session)
        return self.behind(asked)

    def behind(self, asked: Any) -> Any:
        """A ShareFetch for what the second broker has not given and the first one has; None if there is nothing."""
        member = _member(asked)
        session = self._session(member)
        if asked.share_session_epoch == _FINAL_EPOCH or session.attempts == ATTEMPTS or not any(self._lacking(member)):
            return None
        session.attempts += 1
        session.more += 1
        epoch = (asked.share_session_epoch + session.more - 1) % _MOST_EPOCH + 1
        fields = {
            name: getattr(asked, name)
            for name in ("group_id", "member_id", "max_bytes", "batch_size", "share_acquire_mode")
        }
        records = max(1, asked.max_records)
        request = messages.ShareFetchRequest(
            **fields, share_session_epoch=epoch, max_wait_ms=WAIT_MS, min_bytes=1, max_records=records
        )
        for where in self._of_group(member[0]):
            said = self._unsaid(where, member[1])
            if said:
                _say(request, where, said)
        return request

    def places(self, asked: Any) -> Iterator[Apart]:
        """What differs in the answers that were taken in last, and what the second broker has not given at all."""
        member = _member(asked)
        session = self._sessions.get(member)
        if session is None:
            return
        yield from session.places
        session.places = []
        for where, offsets in self._lacking(member):
            for offset in offsets:
                self._partitions[where].records[offset].is_loose = True
            yield Apart(f"{self._path(where)}.acquired_records", _spans(offsets), "not there")

    def _lacking(self, member: Member) -> Iterator[tuple[Partition, list[int]]]:
        """Offsets that the first broker has given this member, and the second one nobody."""
        for where in self._of_group(member[0]):
            offsets = [
                offset
                for offset, record in self._partitions[where].records.items()
                if record.member[0] == member[1]
                and not record.is_loose
                and len(record.given[1]) < len(record.given[0])
                and record.member[1] in (None, member[1])
            ]
            if offsets:
                yield where, sorted(offsets)

    def _give(self, side: int, member: Member, answer: Any, session: _Session) -> bool:
        """Note what an answer gives to a member: whether that is anything."""
        is_any = False
        for (topic_id, index), row in rows(answer):
            where = member[0], topic_id if side == 0 else self._first_id(topic_id), index
            contents = values.by_offset(row.records)
            for each in row.acquired_records:
                is_any = True
                # A range has as many offsets as a broker lets a group have at once.
                for offset in range(each.first_offset, min(each.last_offset, each.first_offset + MOST_OFFSETS) + 1):
                    given = each.delivery_count, contents.get(offset)
                    session.places += self._give_one(side, where, offset, member[1], given)
        return is_any

    def _give_one(
        self, side: int, where: Partition, offset: int, member: str, given: tuple[int, Any]
    ) -> Iterator[Apart]:
        partition = self._partitions.setdefault(where, _Partition())
        record = partition.records.get(offset)
        if record is None:
            record = partition.records[offset] = _Record()
            self._count += 1
            if self._count > MOST_OFFSETS:
                self._forget_oldest()
        if record.member[side] is not None:
            # Its lock has run out, or its member's connection has ended.
            record.is_loose = True
        record.member[side] = member
        record.given[side].append(given[0])
        record.content[side] = given[1]
        number = len(record.given[side])
        if number <= len(record.given[1 - side]):
            partition.ahead.pop(offset, None)
            path = f"{self._path(where)}.{{}}.{offset}"
            counts = [each[number - 1] for each in record.given]
            if counts[0] != counts[1] and not record.is_loose:
                yield Apart(path.format("acquired_records"), *(f"delivery count {each}" for each in counts))
            if record.content[0] != record.content[1]:
                yield Apart(path.format("records"), *map(_shown, record.content))
        elif side == 1 and not record.is_loose:
            if not partition.ahead:
                partition.empty = 0
            partition.ahead[offset] = self._now()

    def _forget_oldest(self) -> None:
        partition = next(each for each in self._partitions.values() if each.records)
        self._forget(partition, next(iter(partition.records)))

    def _ahead(self, group: str, is_empty: bool) -> Iterator[Apart]:
        """What the second broker has given, and the first one will not."""
        for where in self._of_group(group):
            partition = self._partitions[where]
            partition.ahead = {
                offset: since for offset, since in partition.ahead.items() if not partition.records[offset].is_even
            }
            partition.empty += is_empty
            if not partition.ahead or partition.empty <= PATIENT_FETCHES:
                continue
            late = [o for o, since in partition.ahead.items() if self._now() - since >= PATIENT_SECONDS]
            for offset in late:
                partition.records[offset].is_loose = True
                del partition.ahead[offset]
            if late:
                yield Apart(f"{self._path(where)}.acquired_records", "not there", _spans(late))

    def _acknowledgements(
        self, key: int, asked: Any, first: Any, second: Any, changed: set[Partition]
    ) -> Iterator[Apart]:
        """Outcomes. Where the second broker has heard of other records, it must have taken what it has heard."""
        field = "acknowledge_error_code" if key == FETCH else "error_code"
        left = {(asked.group_id, *where): getattr(row, field) for where, row in rows(first)}
        right = {
            (asked.group_id, self._first_id(topic_id), index): getattr(row, field)
            for (topic_id, index), row in rows(second)
        }
        for where in dict.fromkeys((*left, *right)):
            one, other = (each.get(where, 0 if key == FETCH else "not there") for each in (left, right))
            if one and one != "not there":
                self._loosen(where, asked)
            is_same = one == other or (where in changed and (one or other in (0, "not there")))
            if not is_same:
                yield Apart(f"{self._path(where)}.{field}", one, other)

    def _loosen(self, where: Partition, asked: Any) -> None:
        """Whether the first broker has taken what the request acknowledges is not known."""
        partition = self._partitions.get(where)
        records = {} if partition is None else partition.records
        for offset, _ in _acknowledged(asked, where[0]).get(where, []):
            if offset in records:
                records[offset].is_loose = True

    def _release(self, member: Member) -> None:
        """A session has ended: nothing is the member's any more."""
        for where in self._of_group(member[0]):
            for record in self._partitions[where].records.values():
                had = [each == member[1] for each in record.member]
                if any(had):
                    record.is_loose = record.is_loose or had[0] != had[1]
                    record.member = [None if is_his else each for each, is_his in zip(record.member, had, strict=True)]

    def _path(self, where: Partition) -> str:
        return f"responses.{self._name(where[1])}.partitions.{where[2]}"


def _member(asked: Any) -> Member:
    return asked.group_id or "", asked.member_id or ""


def rows(answer: Any) -> list[tuple[tuple[bytes, int], Any]]:
    """Every partition of an answer, with the id of its topic and its index."""
    return [
        ((bytes(topic.topic_id), row.partition_index), row) for topic in answer.responses for row in topic.partitions
    ]


def _acknowledged(asked: Any, group: str) -> dict[Partition, Acknowledged]:
    """What a request says of each record. A batch that no broker takes is left out."""
    found: dict[Partition, Acknowledged] = {}
    for topic in asked.topics:
        for row in topic.partitions:
            for batch in row.acknowledgement_batches:
                size = batch.last_offset - batch.first_offset + 1
                kinds = batch.acknowledge_types
                if 0 < size <= MOST_OFFSETS and len(kinds) in (1, size):
                    offsets = range(batch.first_offset, batch.last_offset + 1)
                    said = found.setdefault((group, bytes(topic.topic_id), row.partition_index), [])
                    said += zip(offsets, kinds * size if len(kinds) == 1 else kinds, strict=True)
    return found


def _say(asked: Any, where: Partition, said: Acknowledged) -> None:
    """Have a request acknowledge these records of a partition, and no others."""
    is_fetch = isinstance(asked, messages.ShareFetchRequest)
    topic_class, row_class = (
        ("FetchTopic", "FetchPartition") if is_fetch else ("AcknowledgeTopic", "AcknowledgePartition")
    )
    _, topic_id, index = where
    topic: Any = next((each for each in asked.topics if bytes(each.topic_id) == topic_id), None)
    row: Any = next((each for each in topic.partitions if each.partition_index == index), None) if topic else None
    if row is None:
        if topic is None:
            topic = getattr(type(asked), topic_class)(topic_id=topic_id, partitions=[])
            asked.topics = [*asked.topics, topic]
        row = getattr(type(asked), row_class)(partition_index=index)
        topic.partitions = [*topic.partitions, row]
    batch = type(asked).AcknowledgementBatch
    row.acknowledgement_batches = [
        batch(first_offset=first, last_offset=first + len(kinds) - 1, acknowledge_types=kinds)
        for first, kinds in _runs(said)
    ]
    if not said and not is_fetch:
        topic.partitions = [each for each in topic.partitions if each is not row]
        asked.topics = [each for each in asked.topics if each.partitions]


def _runs(said: Acknowledged) -> list[tuple[int, list[int]]]:
    """Offsets that follow each other, each run with what is said of them."""
    found: list[tuple[int, list[int]]] = []
    for offset, kind in said:
        if found and offset == found[-1][0] + len(found[-1][1]):
            found[-1][1].append(kind)
        else:
            found.append((offset, [kind]))
    return found


def _spans(offsets: list[int]) -> str:
    """For people: `3-7, 9`."""
    runs = _runs([(offset, 0) for offset in sorted(offsets)])
    return ", ".join(str(first) if len(kinds) == 1 else f"{first}-{first + len(kinds) - 1}" for first, kinds in runs)


def _shown(content: Any) -> str:
    return "no record" if content is None else ", ".join(str(values.shown(part)) for part in content)
