"""Compares what two brokers have answered to the same request, and translates the ids of one into those of the other.

Each broker makes ids of its own: of topics, producers, members, fetch sessions. They are learnt from the answers, pair
by pair; afterwards an id must go with its twin. What depends on the moment is left out: addresses, throttling, how
far a partition is replicated, how many records an answer has. Texts for people are compared by their presence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pykafkad import errors
from pykafkad.clock import Clock
from pykafkad.differential import group_members, share_groups, values
from pykafkad.differential.group_members import GroupMembers
from pykafkad.differential.share_groups import ShareGroups
from pykafkad.errors import ProtocolError
from pykafkad.handlers import table
from pykafkad.wire import frames, messages

NOW_TOLERANCE_MS = 3_600_000
_EARLIEST_NOW_MS = 1_500_000_000_000

_UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:(?<=-)|^)[A-Za-z0-9_-]{22}$")
_IDS = {"producer_id": "producer", "session_id": "session", "cluster_id": "cluster", "log_dir": "directory"}
_NO_ID = (-1, "")
_TEXTS = ("error_message", "batch_index_error_message", "documentation")
_LEFT_OUT = frozenset(
    ("host", "port", "client_host", "throttle_time_ms", "high_watermark", "last_stable_offset", "total_bytes",
     "usable_bytes", "finalized_features_epoch")
)  # fmt: skip
_KEYS = ("name", "topic", "topic_name", "topic_id", "partition_index", "partition", "index", "group_id", "node_id",
         "broker_id", "api_key", "resource_type", "resource_name", "key", "config_name", "transactional_id",
         )  # fmt: skip
_PRODUCE, _FETCH, _HEARTBEAT = 0, 1, 12
_NOT_YET = frozenset(
    (
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.LEADER_NOT_AVAILABLE,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.CONCURRENT_TRANSACTIONS,
    )
)
_LOADING = frozenset(
    (
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.CONCURRENT_TRANSACTIONS,
    )
)
ATTEMPTS = 50
PAUSE_SECONDS = 0.1
"""How often and when a broker that is not ready is asked again."""
_NOT_OF_THE_TOPIC = {4, 5}
"""Sources of a setting: the broker's own file and its default, of which each broker has its own."""
_REBALANCES = (0, 27)
"""A member hears of a rebalance at this heartbeat or at the next one."""

MISSING = "not there"


class Place(NamedTuple):
    """A field in which two answers differ: its path, as in `topics.0.error_code`, and what each of them has."""

    path: str
    first: object
    second: object


class Difference(NamedTuple):
    """Two brokers have answered a request in different ways: its number, who has asked what, and where they differ."""

    number: int
    client_id: str
    api: str
    version: int
    places: list[Place]

    def lines(self, names: tuple[str, str]) -> list[str]:
        """For people; `names` are those of the brokers."""
        head = f"request {self.number}: {self.api} v{self.version} of client {self.client_id!r}"
        return [
            f"{head}: {each.path or 'answer'}: {names[0]} {each.first!r}, {names[1]} {each.second!r}"
            for each in self.places
        ]


class Comparison:
    """What is known of two brokers, the first and the second. One request after the other."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        """`now` counts seconds."""
        now = now or Clock().now
        self._members = GroupMembers(now)
        self._shares = ShareGroups(now, lambda topic_id: str(self._topic(topic_id, True)), self._first_id)
        # By kind: ids of the first broker, with those of the second, and the other way round.
        self._second: dict[tuple[str | None, object], object] = {}
        self._first: dict[tuple[str | None, object], object] = {}
        self._flexible = frames.flexible_versions()
        self._topics: dict[bytes, str] = {}
        self._key = 0
        self._is_part = False

    # --- answers ------------------------------------------------------------------------------------------------------

    def behind(self, request: bytes, first: bytes | None, second: bytes | None) -> bytes | None:
        """Before answers to a member of a share group are compared: the request by which the second broker is asked for
        records that it has not given and the first one has; None if there are none."""
        key, version = _key_and_version(request)
        if key not in share_groups.KEYS or first is None or second is None:
            return None
        asked = self.asked(request)
        try:
            left, right = (self.decoded(key, version, each) for each in (first, second))
        except (ProtocolError, ValueError):
            return None
        return None if asked is None else self._for_second(request, self._shares.heard(key, asked, left, right))

    def still_behind(self, request: bytes, more: bytes | None) -> bytes | None:
        """The same, after the answer to such a request."""
        key, version = _key_and_version(request)
        try:
            answer = self.decoded(key, version, more or b"")
        except (ProtocolError, ValueError):
            return None
        return self._for_second(request, self._shares.heard_more(self.asked(request), answer))

    def _for_second(self, request: bytes, asked: Any) -> bytes | None:
        if asked is None:
            return None
        version = _key_and_version(request)[1]
        values.replace(asked, messages.schema(type(asked)).root, version, self._twin)
        return self._with_head_of(request, asked, version)

    def compare(self, request: bytes, first: bytes | None, second: bytes | None) -> list[Place]:
        """Where the answers to a request differ; None is a connection that was closed. All are frames without their
        size."""
        key, version = _key_and_version(request)
        if first is None or second is None:
            told = ["closed the connection" if each is None else "answered" for each in (first, second)]
            return [] if first is second else [Place("", *told)]
        try:
            left, right = (self.decoded(key, version, each) for each in (first, second))
        except (ProtocolError, ValueError) as problem:
            same = first[4:] == second[4:]
            return [] if same else [Place("", "an answer that can't be read", str(problem))]
        if self.is_loading(request, first, second):
            # The client asks again, and then both are ready.
            return []
        self._key = key
        asked = self.asked(request)
        self._is_part = key == _FETCH and getattr(asked, "session_epoch", 0) > 0
        places = list(self._struct(left, right, messages.schema(type(left)).root, version, ""))
        if key in share_groups.KEYS:
            places += self._share_rows(left, right, version)
            places += [Place(*each) for each in self._shares.places(asked)]
        if key in group_members.HEARTBEATS:
            places += [Place(*each) for each in self._members.heard(key, asked, left, right, self._topic)]
        return places

    def _first_id(self, topic_id: bytes) -> bytes:
        twin = self._first.get(("uuid", topic_id))
        return twin if isinstance(twin, bytes) else topic_id

    def _topic(self, topic_id: bytes, is_first: bool) -> object:
        topic_id = topic_id if is_first else self._first_id(topic_id)
        return self._topics.get(topic_id) or values.shown(topic_id)

    def head(self, request: bytes) -> tuple[str, str, int]:
        """Who asks what: client id, API and its version. A request without a whole header is of API -1."""
        key, version = _key_and_version(request)
        row = table.by_key(key)
        try:
            client_id = frames.read_request_header(memoryview(request), self._flexible)[3]
        except ProtocolError:
            client_id = ""
        return client_id, f"API {key}" if row is None else row.name, version

    def decoded(self, key: int, version: int, frame: bytes) -> Any:
        """The message of an answer. Raises ProtocolError or ValueError."""
        view = memoryview(frame)
        position = frames.read_response_header(view, frames.response_is_tagged(key, version, self._flexible))[1]
        cls = messages.response_class(key)
        try:
            return messages.decoder(cls, version)(view, position)[0]
        except ProtocolError:
            # ApiVersions of a version that the broker does not have is answered in version 0 (KIP-511).
            if key != frames.API_VERSIONS:
                raise
            return messages.decoder(cls, 0)(view, position)[0]

    def asked(self, request: bytes) -> Any:
        """The message of a request; None for one that can't be read."""
        view = memoryview(request)
        try:
            key, version, _, _, position = frames.read_request_header(view, self._flexible)
            return messages.decoder(messages.request_class(key), version)(view, position)[0]
        except (ProtocolError, ValueError):
            return None

    def is_not_ready(self, request: bytes, first: bytes | None, second: bytes | None) -> bool:
        """Whether the second broker has refused what the first one has served, as it is not ready yet: a coordinator
        loads, a topic has no leader so far. It has done nothing, and may be asked again."""
        key, version = _key_and_version(request)
        if key in share_groups.KEYS:
            # A session takes each of its requests once.
            return False
        codes = [self._codes(key, version, each) for each in (first, second)]
        if not codes[1] & _NOT_YET or codes[1] & codes[0] & _NOT_YET:
            return False
        return key != _PRODUCE or len(codes[1]) == 1

    def is_on_its_way(self, request: bytes, first: bytes | None, second: bytes | None) -> bool:
        """Whether the answers describe groups in different ways, of which one may be in the midst of a rebalance."""
        if _key_and_version(request)[0] not in group_members.DESCRIPTIONS:
            return False
        return first is not None and second is not None and bool(self.compare(request, first, second))

    def is_loading(self, request: bytes, first: bytes | None, second: bytes | None) -> bool:
        """Whether a coordinator of the first broker loads, which the second one has ready: the first may be asked
        again, so that both have served the request as often."""
        key, version = _key_and_version(request)
        if key in share_groups.KEYS:
            return False
        codes = [self._codes(key, version, each) for each in (first, second)]
        return second is not None and bool(codes[0] & _LOADING) and not codes[1] & _LOADING

    def _codes(self, key: int, version: int, answer: bytes | None) -> frozenset[int]:
        """All error codes of an answer, 0 among them."""
        found: set[int] = set()
        if answer is not None:
            try:
                values.collect(self.decoded(key, version, answer), "error_code", found)
            except (ProtocolError, ValueError):
                pass
        return frozenset(found)

    def _struct(self, left: Any, right: Any, struct: Any, version: int, path: str) -> Iterator[Place]:
        for field in struct.fields:
            if not field.alive(version) or field.name in _LEFT_OUT:
                continue
            if self._key in group_members.HEARTBEATS and field.name in group_members.TOLD:
                # At one heartbeat or at a later one.
                continue
            if field.name in share_groups.LEFT_OUT.get(self._key, ()):
                continue
            inner = f"{path}.{field.name}" if path else field.name
            one, other = getattr(left, field.name), getattr(right, field.name)
            if self._key in group_members.DESCRIPTIONS and field.name in group_members.ASSIGNMENTS:
                one, other = group_members.size(one), group_members.size(other)
                if one != other:
                    yield Place(inner, one, other)
                continue
            if field.name == "producer_id" and getattr(left, "error_code", 0) and getattr(right, "error_code", 0):
                continue
            if field.type == "records":
                yield from _records(one, other, inner)
            elif one is None or other is None:
                if one is not other:
                    yield Place(inner, values.shown(one), values.shown(other))
            elif field.is_array:
                yield from self._array(field, one, other, version, inner)
            elif field.struct is not None:
                yield from self._struct(one, other, field.struct, version, inner)
            elif not self._is_same(field, one, other):
                yield Place(inner, values.shown(one), values.shown(other))

    def _share_rows(self, left: Any, right: Any, version: int) -> Iterator[Place]:
        """Rows of partitions in answers to a member of a share group, without what `ShareGroups` compares. Which
        partitions an answer has is a matter of the moment."""
        ones = dict(share_groups.rows(left))
        others = {(self._first_id(topic_id), index): row for (topic_id, index), row in share_groups.rows(right)}
        struct: Any = messages.schema(type(left)).root
        for name in ("responses", "partitions"):
            (struct,) = (each.struct for each in struct.fields if each.name == name)
        for (topic_id, index), one in ones.items():
            path = f"responses.{self._topic(topic_id, True)}.partitions.{index}"
            other = others.pop((topic_id, index), None)
            if other is None:
                yield from self._lonely(one, path, is_first=True)
            elif one.error_code == other.error_code or not self._is_told(one, other):
                yield from self._struct(one, other, struct, version, path)
        for (topic_id, index), other in others.items():
            path = f"responses.{self._topic(topic_id, True)}.partitions.{index}"
            yield from self._lonely(other, path, is_first=False)

    def _is_told(self, one: Any, other: Any) -> bool:
        """Whether errors that differ are told elsewhere, or are those of a partition that is not there yet."""
        return self._key == share_groups.ACKNOWLEDGE or bool(share_groups.NOT_YET & {one.error_code, other.error_code})

    def _lonely(self, row: Any, path: str, *, is_first: bool) -> Iterator[Place]:
        if self._key == share_groups.FETCH and row.error_code and row.error_code not in share_groups.NOT_YET:
            yield Place(f"{path}.error_code", *((row.error_code, MISSING) if is_first else (MISSING, row.error_code)))

    def _array(self, field: Any, left: Any, right: Any, version: int, path: str) -> Iterator[Place]:
        if field.struct is None:
            one, other = (sorted(map(values.shown, each), key=repr) for each in (left, right))
            if field.type == "uuid":
                one, other = [str(len(one))], [str(len(other))]
            if one != other:
                yield Place(path, one, other)
            return
        pairs, lonely = self._pairs(field.struct, left, right, version)
        for name, one, other in pairs:
            yield from self._struct(one, other, field.struct, version, f"{path}.{name}")
        if not (self._is_part or (self._key == _FETCH and path.count(".") > 1)):
            for name, is_first in lonely:
                yield Place(f"{path}.{name}", *(("there", MISSING) if is_first else (MISSING, "there")))

    def _pairs(
        self, struct: Any, left: Any, right: Any, version: int
    ) -> tuple[list[tuple[str, Any, Any]], list[tuple[str, bool]]]:
        """The rows that belong together, each with a name; and those that only one has, and whether it is the first."""
        keys = (*_KEYS, "member_id") if self._key in group_members.DESCRIPTIONS else _KEYS
        names = [field.name for field in struct.fields if field.name in keys and field.alive(version)]
        ones = {self._row_key(each, names, True): each for each in left}
        others = {self._row_key(each, names, False): each for each in right}
        if names and len(ones) == len(left) and len(others) == len(right):
            found = [(self._row_name(key), ones[key], others[key]) for key in ones if key in others]
            lonely = [(self._row_name(key), True) for key in ones if key not in others]
            return found, lonely + [(self._row_name(key), False) for key in others if key not in ones]
        one, other = (sorted(each, key=lambda row: values.sketch(row, struct, version)) for each in (left, right))
        found = [(str(index), *pair) for index, pair in enumerate(zip(one, other, strict=False))]
        shorter, longer = sorted((len(one), len(other)))
        return found, [(str(index), len(one) > len(other)) for index in range(shorter, longer)]

    def _row_name(self, key: tuple[object, ...]) -> str:
        return "/".join(
            self._topics.get(each, str(values.shown(each))) if isinstance(each, bytes) else str(each) for each in key
        )

    def _row_key(self, row: Any, names: list[str], is_first: bool) -> tuple[object, ...]:
        key: list[object] = []
        for name in names:
            value = getattr(row, name)
            if isinstance(value, bytes | bytearray | memoryview):
                value = bytes(value)
                topic = getattr(row, "name", "") or getattr(row, "topic", "")
                if is_first and topic:
                    self._topics[value] = topic
                value = value if is_first else self._first.get(("uuid", value), value)
                if "name" in names or "topic" in names:
                    # The name tells which one it is; ids are learnt afterwards.
                    continue
            elif name == "member_id" and not is_first:
                value = self._first.get(("text", value), value)
            key.append(value)
        return tuple(key)

    def _is_same(self, field: Any, one: Any, other: Any) -> bool:
        name = field.name
        if field.type == "uuid":
            return any(one) == any(other) and (not any(one) or self._learn("uuid", bytes(one), bytes(other)))
        if field.type == "bytes":
            return bytes(one) == bytes(other)
        kind = values.kind(name, one, _IDS)
        if kind not in (None, "text") and one not in _NO_ID and other not in _NO_ID:
            if kind == "producer" or (one and other):
                return self._learn(kind, one, other)
        if name in _TEXTS:
            return bool(one) == bool(other)
        if isinstance(one, str):
            return one == other or self._is_same_text(one, other)
        if name in group_members.EPOCHS and one > 0 and other > 0:
            return True
        if name == "config_source" and {one, other} == _NOT_OF_THE_TOPIC:
            return True
        if self._key == _HEARTBEAT and name == "error_code":
            return one == other or (one in _REBALANCES and other in _REBALANCES)
        if "time" in name and min(one, other) > _EARLIEST_NOW_MS:
            return bool(abs(one - other) < NOW_TOLERANCE_MS)
        return bool(one == other)

    def _is_same_text(self, one: str, other: str) -> bool:
        """Members have names that end with an id."""
        pair = _UUID_TEXT.search(one), _UUID_TEXT.search(other)
        if pair[0] is None or pair[1] is None:
            return False
        is_same = one.replace(pair[0][0], "") == other.replace(pair[1][0], "")
        return is_same and self._learn("text", one, other)

    def _learn(self, kind: str | None, one: object, other: object) -> bool:
        """Two ids belong together. False if one of them has another twin."""
        if self._second.setdefault((kind, one), other) != other:
            return False
        return self._first.setdefault((kind, other), one) == one

    # --- requests -----------------------------------------------------------------------------------------------------

    def translate(self, request: bytes) -> bytes:
        """A request to the first broker as it has to be for the second one."""
        asked = self.asked(request)
        if asked is None:
            return request
        key, version = _key_and_version(request)
        changed = self._members.translate(key, asked)
        changed = self._shares.translate(key, asked) or changed
        changed = values.replace(asked, messages.schema(type(asked)).root, version, self._twin) or changed
        return self._with_head_of(request, asked, version) if changed else request

    def _with_head_of(self, request: bytes, asked: Any, version: int) -> bytes:
        position = frames.read_request_header(memoryview(request), self._flexible)[4]
        chunks: list[Any] = [bytearray(request[:position])]
        messages.encoder(type(asked), version)(asked, chunks)
        return b"".join(chunks)

    def _twin(self, name: str, value: object) -> object:
        kind = values.kind(name, value, _IDS)
        return value if kind is None else self._second.get((kind, value), value)


def _key_and_version(request: bytes) -> tuple[int, int]:
    """-1 for each in a request without a whole header, to which no API belongs."""
    try:
        return frames.peek_request(memoryview(request))[:2]
    except ProtocolError:
        return -1, -1


def _records(one: Any, other: Any, path: str) -> Iterator[Place]:
    """Records at the same offsets: one answer may have more of them."""
    left, right = values.by_offset(one), values.by_offset(other)
    for offset in sorted(left.keys() & right.keys()):
        if left[offset] != right[offset]:
            yield Place(
                f"{path}.{offset}",
                *(", ".join(str(values.shown(part)) for part in each[offset]) for each in (left, right)),
            )
            return
