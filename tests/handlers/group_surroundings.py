"""A context for group handlers, with a real shard, an image of topics, and answers that are encoded and decoded."""

from __future__ import annotations

from types import SimpleNamespace

from pykafkad import errors
from pykafkad.errors import name
from pykafkad.handlers.context import DEFERRED
from pykafkad.metadata.events import AllocateProducerIds
from pykafkad.metadata.image import Image
from pykafkad.server.machine_runner import CompositeReply
from pykafkad.server.producer_id_blocks import ProducerIdBlocks
from pykafkad.wire import messages
from tests.coordinator.world import World
from tests.metadata.context import finished

NODE_ID = 1
IDS = {"t": b"t" * 16, "u": b"u" * 16}


class Groups:
    """The `ctx.groups` of handlers, for the one shard of the world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.error_code = 0
        self.is_loading = False

    def shard_for(self, group_id: str) -> tuple[object, int]:
        error_code = self.error_code
        if group_id in self.world.shard.deleting:
            error_code = errors.COORDINATOR_LOAD_IN_PROGRESS
        return (None, error_code) if error_code else (self.world.shard, 0)

    def read(self, group_id: str, token: object) -> None:
        """Does nothing: no answer waits for a sync here."""

    def shards(self) -> list[object]:
        return [self.world.shard]

    def submit(self, group_id: str, event: object) -> object:
        self.world.send(event)
        if hasattr(event.token, "deliver"):
            event.token.deliver(self.world.replies.pop(event.token))
        return DEFERRED

    def submit_if_served(self, group_id: str, event: object) -> tuple[object, int]:
        return (None, self.error_code) if self.error_code else (self.submit(group_id, event), 0)

    def submit_many(self, entries: list, combine: object, token: object) -> object:
        composite = self.composite_reply(combine, token)
        for _, event in entries:
            event.token = self.world.token()
            part = composite.part()
            self.world.send(event)
            answer = self.world.replies.pop(event.token, None)
            if answer is None:
                self.delayed = (event.token, part)
            else:
                part.deliver(answer)
        composite.close()
        return DEFERRED

    def composite_reply(self, combine: object, token: object) -> CompositeReply:
        return CompositeReply(combine, token, self.world.replies.__setitem__)


class Controller:
    """Records the events that it gets; gives producer ids at once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.submitted: list[object] = []
        self.next_producer_id = 4000

    def submit(self, event: object) -> object:
        self.submitted.append(event)
        if isinstance(event, AllocateProducerIds):
            event.token.deliver(
                messages.AllocateProducerIdsResponse(producer_id_start=self.next_producer_id, producer_id_len=1000)
            )
            self.next_producer_id += 1000
        return DEFERRED


class Context:
    """The surroundings of handlers in one broker; `call` makes one request."""

    def __init__(self, **settings: int) -> None:
        self.world = World(**settings)
        self.settings = self.world.settings
        self.groups = Groups(self.world)
        self.controller = Controller(self.world)
        self.metadata = image()
        self.now = 0.0
        self.producer_ids = ProducerIdBlocks(
            SimpleNamespace(
                node_id=NODE_ID,
                image=self.metadata,
                controller=self.controller,
                runtime=SimpleNamespace(now=self.now),
                purgatory=SimpleNamespace(touch=lambda key: None),
            )
        )
        self.node_id = NODE_ID
        self.client_id = "client"
        self.principal = "User:ANONYMOUS"
        self.client_host = "/127.0.0.1"
        self.client_software = ("unknown", "unknown")
        self.denied: set[tuple[str, str, str]] = set()
        self.may_describe = None
        self.version = 0
        self.token: object = None

    def allowed(self, operation: str, resource_type: str, resource_name: str) -> bool:
        return (operation, resource_type, resource_name) not in self.denied

    could = allowed

    def refused(self, rule: object, resource_name: str) -> None:
        """Nobody audits it."""

    def advertised(self, broker_id: int) -> tuple[str, int]:
        return f"broker{broker_id}", 9092

    def call(self, handle: object, version: int, request: object) -> object:
        """The answer as a client of that version decodes it; None while the request is delayed."""
        request = round_trip(request, version)
        self.version = version
        self.token = self.world.token()
        answer = finished(handle(self, request))
        if answer is DEFERRED:
            answer = self.world.replies.get(self.token)
        return None if answer is None else round_trip(answer, version)


def round_trip(message: object, version: int) -> object:
    return messages.decode(type(message), version, bytes(messages.encode(message, version)))


def image() -> Image:
    """Topics `t` and `u` of two partitions, and one broker."""
    picture = Image()
    picture.brokers = {NODE_ID: Broker()}
    for topic, topic_id in IDS.items():
        add_topic(picture, topic, topic_id, 2)
    return picture


class Broker:
    epoch = 9
    rack = None
    fenced = False


def add_topic(picture: Image, topic: str, topic_id: bytes, count: int) -> None:
    from pykafkad.effects import StoredRecord

    picture.apply(StoredRecord(None, messages.TopicRecord(name=topic, topic_id=topic_id)))
    for index in range(count):
        picture.apply(
            StoredRecord(
                None,
                messages.PartitionRecord(
                    partition_id=index, topic_id=topic_id, leader=NODE_ID, replicas=[NODE_ID], isr=[NODE_ID]
                ),
            )
        )


def error(answer: object) -> str:
    return name(answer.error_code)
