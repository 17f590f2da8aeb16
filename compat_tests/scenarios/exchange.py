"""A scenario's access to one broker: raw connections, and the transcript of requests and answers."""

from __future__ import annotations

import socket
import struct
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from pykafkad.wire import frames, messages
from pykafkad.wire.messages import Struct

CLIENT_ID = "scenario"
# Many times longer than an answer takes, because the machine may be busy.
ANSWER_SECONDS = 100.0
# Most of what is awaited has happened after some milliseconds.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.002, 0.02
FLEXIBLE_FROM = frames.flexible_versions()
CLOSED = "connection closed"
RETRIABLE_AT_START = (3, 5, 14, 15, 16)
GROUP_RESOURCE = 32
# Group coordinators learn of a change of topics a moment after their broker shows it, so `Exchange` waits for them
# between a request of the first kind and one of the second.
CHANGES_TOPICS = frozenset({"CreateTopics", "CreatePartitions", "DeleteTopics"})
LOOKS_AT_TOPICS_OF_COORDINATORS = frozenset({
    "ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "StreamsGroupHeartbeat", "StreamsGroupDescribe",
    "ShareGroupHeartbeat", "ShareGroupDescribe", "AlterShareGroupOffsets", "DescribeShareGroupOffsets",
    "DeleteShareGroupOffsets",
})  # fmt: skip
# The versions that a release answers, by API, while scenarios run beside another release than 4.3.1.
OFFERED: ContextVar[Mapping[str, range] | None] = ContextVar("OFFERED", default=None)


class NotOffered(Exception):
    """The release beside which a scenario runs has no such API, or not that version of it."""


def versions(api: str) -> Iterator[int]:
    """Every version of `api` that Kafka 4.3.1 answers; beside another release, those of them that it answers too."""
    offered = OFFERED.get()
    both = [each for each in messages.valid_versions(_class(api, "Request")) if offered is None or each in offered[api]]
    return iter(both)


def _class(api: str, kind: str) -> type[Struct]:
    return getattr(messages, api + kind)


def part(api: str, struct_name: str, /, **fields: Any) -> Struct:
    """A nested struct of the request of `api`, by its name in the schema."""
    return getattr(_class(api, "Request"), struct_name)(**fields)


class Step:
    """One entry of a transcript: its label (None: not compared), and the answer (a message with its version, or a
    text).
    """

    __slots__ = ("answer", "label", "version")

    def __init__(self, label: str | None, answer: Struct | str, version: int) -> None:
        self.label = label
        self.answer = answer
        self.version = version


class Connection:
    """One TCP connection that sends requests and receives answers."""

    def __init__(self, bootstrap: str, address: str = "") -> None:
        """It comes from `address`, if that is given."""
        host, port = bootstrap.rsplit(":", 1)
        source = (address, 0) if address else None
        self.socket = socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS, source_address=source)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = CLIENT_ID
        """What the requests from now on name."""
        self._correlation_id = 0
        self._waiting: list[tuple[str, int, int]] = []

    def send(self, api: str, version: int, request: Struct) -> None:
        """Send a request; `receive` takes the answer."""
        key = messages.schema(type(request)).key
        self._correlation_id += 1
        tagged = version >= FLEXIBLE_FROM.get(key, 32767)
        chunks = [frames.start_request(key, version, self._correlation_id, self.client_id, tagged)]
        messages.encoder(type(request), version)(request, chunks)
        frames.finish_frame(chunks)
        self.expect(api, version, self._correlation_id)
        self.socket.sendall(b"".join(chunks))

    def expect(self, api: str, version: int, correlation_id: int) -> None:
        """Expect the answer to a request that was written to `socket` directly."""
        self._waiting.append((api, version, correlation_id))

    def forget_last(self) -> None:
        """Expect no answer to the last request (Produce with acks=0)."""
        self._waiting.pop()

    def receive(self) -> Struct | str:
        """The answer to the oldest unanswered request, or CLOSED."""
        api, version, correlation_id = self._waiting.pop(0)
        try:
            (size,) = struct.unpack(">i", self._exactly(4))
            frame = memoryview(self._exactly(size))
        except (EOFError, ConnectionError):
            return CLOSED
        key = messages.schema(_class(api, "Request")).key
        tagged = frames.response_is_tagged(key, version, FLEXIBLE_FROM)
        answered, position = frames.read_response_header(frame, tagged)
        assert answered == correlation_id, (
            f"{api} v{version}: the answer has correlation id {answered}, expected {correlation_id}"
        )
        message, end = messages.decoder(_class(api, "Response"), version)(frame, position)
        assert end == size, f"{api} v{version}: {size - end} bytes follow the answer"
        return message

    def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            more = self.socket.recv(size - len(received))
            if not more:
                raise EOFError
            received += more
        return bytes(received)

    def is_idle(self, seconds: float) -> bool:
        """Whether nothing arrives for that long."""
        self.socket.settimeout(seconds)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(ANSWER_SECONDS)
        return False

    def close(self) -> None:
        """Close it."""
        self.socket.close()


class Exchange:
    """A scenario's access to one broker.

    `ask` sends and records, `quietly` sends without recording, `name` makes unique names, `topic` prepares topics.
    """

    def __init__(self, bootstrap: str, scenario: str) -> None:
        self.bootstrap = bootstrap
        self.steps: list[Step] = []
        self.asked: list[tuple[str, int]] = []
        # Unique in every run, so that a run never meets leftovers of an earlier one; `normalise.py` removes it again.
        self.prefix = f"{scenario}-{uuid.uuid4().hex[:6]}"
        self._connections: list[Connection] = []
        self._main = self.connect()
        self._coordinators_are_behind = False

    def connect(self, address: str = "") -> Connection:
        """One more connection, closed at the end of the scenario; it comes from `address`, if that is given."""
        connection = Connection(self.bootstrap, address)
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close()

    def name(self, kind: str) -> str:
        """A name that only this run of the scenario uses; in comparisons it counts as the same name on both brokers."""
        return f"{self.prefix}.{kind}"

    def record(self, label: str | None, answer: Struct | str, version: int = 0) -> None:
        """Add a value to the transcript that is compared like an answer."""
        self.steps.append(Step(label, answer, version))

    def ask(self, api: str, version: int, /, *, on: Connection | None = None, note: str = "", **fields: Any) -> Any:
        """Send a request, record its answer in the transcript and return it, or CLOSED.

        `fields` that the version does not carry, also in nested structs, take their default.
        """
        answer = self._exchange(api, version, on, fields)
        self.record(f"{api} v{version} {note.replace(self.prefix, '')}".rstrip(), answer, version)
        return answer

    def quietly(self, api: str, version: int, /, *, on: Connection | None = None, **fields: Any) -> Any:
        """Like `ask`, but not recorded, for preparations. The transcript still knows the ids in the answer."""
        answer = self._exchange(api, version, on, fields)
        self.record(None, answer, version)
        return answer

    def _exchange(self, api: str, version: int, on: Connection | None, fields: dict[str, Any]) -> Any:
        connection = on or self._main
        offered = OFFERED.get()
        if offered is not None and version not in offered[api]:
            raise NotOffered(f"{api} v{version}")
        if api in CHANGES_TOPICS:
            self._coordinators_are_behind = True
        elif self._coordinators_are_behind and api in LOOKS_AT_TOPICS_OF_COORDINATORS:
            self.in_effect()
            self._coordinators_are_behind = False
        self.asked.append((api, version))
        connection.send(api, version, request(api, version, **fields))
        answer = connection.receive()
        if answer == CLOSED and connection is self._main:
            self._main = self.connect()
        return answer

    def needs(self, api: str) -> None:
        """Raise `NotOffered` beside a release without the API, before what it has not is waited for."""
        offered = OFFERED.get()
        if offered is not None and not offered[api]:
            raise NotOffered(f"{api} v0")

    def needs_setting(self, name: str) -> None:
        """The same for a setting of groups."""
        if OFFERED.get() is not None and name not in self._settings_of_groups():
            raise NotOffered(f"the setting {name}")

    def until(self, attempt: Callable[[], Any], accept: Callable[[Any], object]) -> Any:
        """Repeat an unrecorded request until its answer is accepted, for effects that take a moment."""
        deadline = time.monotonic() + ANSWER_SECONDS
        pause = FIRST_PAUSE_SECONDS
        while True:
            answer = attempt()
            if accept(answer):
                return answer
            assert time.monotonic() < deadline, f"not accepted in {ANSWER_SECONDS} s: {answer}"
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def topic(self, kind: str = "topic", partitions: int = 1, **configs: str) -> str:
        """Create a topic, wait until its partitions have leaders, and return its name; not recorded.

        Underscores in configs stand for dots.
        """
        name = self.name(kind)
        entries = [
            part("CreateTopics", "CreatableTopicConfig", name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        wanted = part("CreateTopics", "CreatableTopic", name=name, num_partitions=partitions, replication_factor=1)
        wanted.configs = entries
        answer = self.quietly("CreateTopics", 7, topics=[wanted], timeout_ms=60_000)
        assert answer.topics[0].error_code == 0, answer
        self.topic_id(name)
        return name

    def topic_id(self, name: str) -> bytes:
        """The id of a topic, once every partition has a leader and the leader knows the id."""
        asked = [part("Metadata", "MetadataRequestTopic", name=name)]

        def led(answer: Any) -> bool:
            (topic,) = answer.topics
            return topic.error_code == 0 and all(p.leader_id >= 0 and p.error_code == 0 for p in topic.partitions)

        attempt = lambda: self.quietly("Metadata", 11, topics=asked, allow_auto_topic_creation=False)  # noqa: E731
        (topic,) = self.until(attempt, led).topics
        rows = [
            part("ListOffsets", "ListOffsetsPartition", partition_index=p.partition_index, timestamp=-1)
            for p in topic.partitions
        ]
        asked = [part("ListOffsets", "ListOffsetsTopic", name=name, partitions=rows)]
        self.until(
            lambda: self.quietly("ListOffsets", 5, replica_id=-1, topics=asked),
            lambda answer: all(row.error_code == 0 for row in answer.topics[0].partitions),
        )
        return topic.topic_id

    def produce(self, topic: str, partition: int, records: bytes, *, acks: int = -1) -> Any:
        """Append one batch, not recorded; returns the partition's answer."""
        data = part("Produce", "PartitionProduceData", index=partition, records=records)
        topic_data = part("Produce", "TopicProduceData", name=topic, partition_data=[data])
        answer = self.quietly("Produce", 9, acks=acks, timeout_ms=10_000, topic_data=[topic_data])
        (row,) = answer.responses[0].partition_responses
        assert row.error_code == 0, answer
        return row

    def in_effect(self) -> None:
        """Wait until a change that the broker shows is also in effect: Kafka shows a change a moment before it acts on
        it.

        The controller applies changes in order, so a later change that is visible proves the earlier ones.
        """
        user = self.name(f"in-effect-{uuid.uuid4().hex[:6]}")
        entity = [part("AlterClientQuotas", "EntityData", entity_type="user", entity_name=user)]
        asked = [part("DescribeClientQuotas", "ComponentData", entity_type="user", match_type=0, match=user)]
        for remove in (False, True):
            change = part("AlterClientQuotas", "OpData", key="producer_byte_rate", value=1e9, remove=remove)
            answer = self.quietly(
                "AlterClientQuotas", 1, entries=[part("AlterClientQuotas", "EntryData", entity=entity, ops=[change])]
            )
            assert not any(entry.error_code for entry in answer.entries), answer
            self.until(
                lambda: self.quietly("DescribeClientQuotas", 1, components=asked, strict=False),
                lambda answer, shown=not remove: bool(answer.entries) is shown,
            )

    def set_group(self, group: str, **configs: str) -> None:
        """Change settings of a group and wait until they are in effect; not recorded. Underscores stand for dots.

        Beside another release than 4.3.1, those that it does not know are left out."""
        api = "IncrementalAlterConfigs"
        named = {key.replace("_", "."): value for key, value in configs.items()}
        if OFFERED.get() is not None:
            known = self._settings_of_groups()
            named = {key: value for key, value in named.items() if key in known}
            if not named:
                return
        settings = [part(api, "AlterableConfig", name=key, value=value) for key, value in named.items()]
        resource = part(
            api, "AlterConfigsResource", resource_type=GROUP_RESOURCE, resource_name=group, configs=settings
        )
        answer = self.quietly(api, 1, resources=[resource])
        assert answer.responses[0].error_code == 0, answer
        self.in_effect()

    def _settings_of_groups(self) -> set[str]:
        asked = part("DescribeConfigs", "DescribeConfigsResource", resource_type=GROUP_RESOURCE, resource_name="any")
        asked.configuration_keys = None
        results = self.quietly("DescribeConfigs", 4, resources=[asked]).results
        return {row.name for found in results for row in found.configs}

    def coordinator(self, group: str) -> None:
        """Wait until the coordinator of `group` serves it, which takes a moment after the first use of groups."""
        self.until(
            lambda: self.quietly("FindCoordinator", 3, key=group),
            lambda answer: answer.error_code == 0,
        )
        self.until(
            lambda: self.quietly("DescribeGroups", 4, groups=[group]),
            lambda answer: answer.groups[0].error_code not in RETRIABLE_AT_START,
        )


def request(api: str, version: int, /, **fields: Any) -> Struct:
    """A request whose fields fit `version`: fields that the version does not carry get their default."""
    cls = _class(api, "Request")
    return fitted(cls(**fields), messages.schema(cls).root, version)


def fitted(value: Struct, schema: Any, version: int) -> Struct:
    """A copy of a struct without the fields that `version` does not carry."""
    kept = {}
    for field in schema.fields:
        if field.alive(version):
            inner = getattr(value, field.name)
            if field.struct is not None and inner is not None:
                convert = lambda item, field=field: fitted(item, field.struct, version)  # noqa: E731
                inner = [convert(item) for item in inner] if field.is_array else convert(inner)
            kept[field.name] = inner
    return value._root(**kept)


ZERO_UUID = uuid.UUID(int=0).bytes
