"""Metadata, versions 0 to 13.

The live brokers, under the address of the caller's listener, and the topics of the request. Null means all topics (in
version 0 an empty list does too). A topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION; if both the broker and the
request allow it, the topic is created and the caller finds it when it asks again. An invalid name is
INVALID_TOPIC_EXCEPTION. The controller in the answer is any live broker, because brokers forward.

Version 4 lets the request allow auto-creation, 5 adds offline replicas, 6 LISTENER_NOT_FOUND in place of
LEADER_NOT_AVAILABLE, 7 leader epochs, 8 authorized operations (those of the cluster until 10), 10 topic ids, 12 topics
by id (never created; an unknown one is UNKNOWN_TOPIC_ID), 13 an error for the whole answer, which is never set here.

What it creates counts for the client's controller_mutation_rate. Once that is used up nothing is created, and the
answer is as if the topic were about to come, as in Kafka; it is not throttled.

Gaps: what a broker creates whose controller is another process does not count for controller_mutation_rate.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.operations import NOT_ASKED, authorized_operations, cluster_operations
from pykafkad.metadata.events import AutoCreateTopics
from pykafkad.metadata.placement import has_online_directory
from pykafkad.metadata.topics import INTERNAL_TOPICS, name_problem
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context
    from pykafkad.metadata.brokers import Broker
    from pykafkad.metadata.image import Image
    from pykafkad.metadata.topics import PartitionState, Topic

_DESCRIBE_TOPIC, _SEE_TOPIC, _CREATE_TOPIC, _ = RULES["Metadata"]
_Row = messages.MetadataResponse.MetadataResponseTopic
ZERO_ID = b"\0" * 16
NO_LEADER = -1
NO_CONTROLLER = -1


def handle(ctx: Context, request: messages.MetadataRequest) -> Generator[None, None, object]:
    """The brokers and the requested topics."""
    image = ctx.metadata
    everything = request.topics is None or (ctx.version == 0 and not request.topics)
    view = _View(ctx, image)
    asked_operations = request.include_topic_authorized_operations
    if everything:
        rows = []
        for name, topic in list(image.topics.items()):
            if may(ctx, _SEE_TOPIC, name):
                rows.append((yield from view.topic(topic, asked_operations)))
    else:
        names, ids, code = yield from _named(ctx, request)
        if code != errors.NONE:
            rows = [_error(code, topic.name or "", topic.topic_id) for topic in request.topics or ()]
            return messages.MetadataResponse(topics=rows, error_code=code)
        rows = yield from _asked(ctx, request, names, ids, view, asked_operations)
    operations = cluster_operations(ctx) if request.include_cluster_authorized_operations else NOT_ASKED
    alive = image.alive_brokers()
    return messages.MetadataResponse(
        brokers=[_broker(ctx, broker) for broker in alive if ctx.listener in broker.endpoints],
        cluster_id=ctx.cluster_id,
        controller_id=alive[0].id if alive else NO_CONTROLLER,
        topics=rows,
        cluster_authorized_operations=operations,
    )


def _broker(ctx: Context, broker: Broker) -> messages.MetadataResponse.MetadataResponseBroker:
    host, port = ctx.advertised(broker.id)
    return messages.MetadataResponse.MetadataResponseBroker(node_id=broker.id, host=host, port=port, rack=broker.rack)


def _named(
    ctx: Context, request: messages.MetadataRequest
) -> Generator[None, None, tuple[dict[str, None], dict[bytes, None], int]]:
    """The names and ids of the request, each once, and the error of the whole request.

    The error says that a topic is named in a way that the version does not have. From version 12 Kafka fails on a topic
    with neither name nor id; the answer is the same here.
    """
    names: dict[str, None] = {}
    ids: dict[bytes, None] = {}
    has_no_name = False
    for topic in request.topics or ():
        yield
        if topic.name is None:
            has_no_name = True
        else:
            names[topic.name] = None
        if topic.topic_id != ZERO_ID:
            ids[topic.topic_id] = None
    code = errors.NONE
    if ctx.version < 12:
        if ids or has_no_name:
            code = errors.INVALID_REQUEST
    elif not ids and has_no_name:
        code = errors.UNKNOWN_SERVER_ERROR
    return names, ids, code


def _asked(
    ctx: Context,
    request: messages.MetadataRequest,
    names: dict[str, None],
    ids: dict[bytes, None],
    view: _View,
    asked_operations: bool,
) -> Generator[None, None, list[_Row]]:
    """Rows for the topics of the request, each once. If the request has an id, names do not count, as in Kafka."""
    rows = []
    if ids:
        for topic_id in ids:
            rows.append((yield from _by_id(ctx, topic_id, view, asked_operations)))
        return rows
    missing: list[str] = []
    for name in names:
        yield
        if not may(ctx, _DESCRIBE_TOPIC, name):
            # The answer does not tell what stands behind the name, not even for an internal topic.
            rows.append(_error(_DESCRIBE_TOPIC.error, name, is_internal=False))
            continue
        topic = view.image.topics.get(name)
        if topic is not None:
            rows.append((yield from view.topic(topic, asked_operations)))
            continue
        row = _missing(ctx, request, name, missing)
        if asked_operations and row.error_code != _CREATE_TOPIC.error:
            row.topic_authorized_operations = authorized_operations(ctx, "Topic", name)
        rows.append(row)
    if missing:
        from pykafkad.metadata.topic_askers import asker_of

        askers = dict.fromkeys(missing, asker_of(ctx, is_automatic=True))
        ctx.controller.submit(AutoCreateTopics(missing, ctx.mutations, askers))
    return rows


def _by_id(ctx: Context, topic_id: bytes, view: _View, asked_operations: bool) -> Generator[None, None, _Row]:
    yield
    topic = view.image.topic_by_id(topic_id)
    if topic is None:
        return _error(errors.UNKNOWN_TOPIC_ID, None, topic_id)
    if not may(ctx, _DESCRIBE_TOPIC, topic.name):
        return _error(_DESCRIBE_TOPIC.error, None, topic_id)
    return (yield from view.topic(topic, asked_operations))


def _missing(ctx: Context, request: messages.MetadataRequest, name: str, missing: list[str]) -> _Row:
    """The row of a topic that does not exist. A name that may be created is added to `missing`."""
    creates = request.allow_auto_topic_creation and ctx.settings.auto_create_topics_enable
    if creates and not may(ctx, _CREATE_TOPIC, name):
        return _error(_CREATE_TOPIC.error, name)
    if name_problem(name) is not None:
        return _error(errors.INVALID_TOPIC_EXCEPTION, name)
    if creates:
        missing.append(name)
    return _error(errors.UNKNOWN_TOPIC_OR_PARTITION, name)


def _error(code: int, name: str | None, topic_id: bytes = ZERO_ID, *, is_internal: bool | None = None) -> _Row:
    if is_internal is None:
        is_internal = name in INTERNAL_TOPICS
    return messages.MetadataResponse.MetadataResponseTopic(
        error_code=code, name=name, topic_id=topic_id, is_internal=is_internal
    )


class _View:
    """The image as callers of one listener and version see it.

    A topic's row is built once, because clients poll the same thousands of partitions again and again. It is cached at
    the topic until one of its partitions or any broker changes. A row with authorized operations is a copy with the
    same partitions.
    """

    __slots__ = ("_brokers", "_ctx", "_key", "_lists", "image")

    def __init__(self, ctx: Context, image: Image) -> None:
        self.image = image
        self._ctx = ctx
        self._brokers = image.brokers
        # Partitions with the same replicas share their lists, because nobody changes a response.
        self._lists: dict[tuple[int, ...], list[int]] = {}
        # Version 0 leaves out replicas that are offline, with an error; version 6 has an error for a missing listener.
        self._key = (image.brokers_generation, ctx.listener, min(ctx.version, 1), ctx.version >= 6)

    def topic(self, topic: Topic, asked_operations: bool) -> Generator[None, None, _Row]:
        yield
        kept = topic.described
        if kept is None or kept[0] != self._key:
            kept = yield from self._describe(topic)
        if not asked_operations:
            row: _Row = kept[1]
            return row
        row = self._row(topic, kept[1].partitions)
        row.topic_authorized_operations = authorized_operations(self._ctx, "Topic", topic.name)
        return row

    def _describe(self, topic: Topic) -> Generator[None, None, tuple[object, _Row]]:
        # A change between the steps replaces the mark; then the row is outdated and not cached. The mark is a new list,
        # so that no other request has the same one.
        mark = topic.described = [None]
        partitions = messages.CachedArray()
        for state in list(topic.partitions):
            partitions.append(self._partition(state))
            yield
        kept = (self._key, self._row(topic, partitions))
        if topic.described is mark:
            topic.described = kept
        return kept

    def _row(self, topic: Topic, partitions: list[messages.MetadataResponse.MetadataResponsePartition]) -> _Row:
        return messages.MetadataResponse.MetadataResponseTopic(
            name=topic.name, topic_id=topic.id, is_internal=topic.is_internal, partitions=partitions
        )

    def _partition(self, state: PartitionState) -> messages.MetadataResponse.MetadataResponsePartition:
        version_0 = self._key[2] == 0
        replicas = self._alive(state.replicas) if version_0 else self._listed(state.replicas)
        isr = self._alive(state.isr) if version_0 else self._listed(state.isr)
        leader, code = self._leader(state)
        if code == errors.NONE and (len(replicas) < len(state.replicas) or len(isr) < len(state.isr)):
            code = errors.REPLICA_NOT_AVAILABLE
        return messages.MetadataResponse.MetadataResponsePartition(
            error_code=code,
            partition_index=state.index,
            leader_id=leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=offline_replicas(state, self._brokers, self._key[1]),
        )

    def _leader(self, state: PartitionState) -> tuple[int, int]:
        leader = self._brokers.get(state.leader)
        if leader is None:
            return NO_LEADER, errors.LEADER_NOT_AVAILABLE
        if self._key[1] not in leader.endpoints:
            return NO_LEADER, errors.LISTENER_NOT_FOUND if self._key[3] else errors.LEADER_NOT_AVAILABLE
        return leader.id, errors.NONE

    def _listed(self, replicas: tuple[int, ...]) -> list[int]:
        found = self._lists.get(replicas)
        if found is None:
            found = self._lists[replicas] = list(replicas)
        return found

    def _alive(self, replicas: tuple[int, ...]) -> list[int]:
        listener = self._key[1]
        return [
            replica
            for replica in replicas
            if replica in self._brokers
            and not self._brokers[replica].fenced
            and listener in self._brokers[replica].endpoints
        ]


def offline_replicas(state: PartitionState, brokers: dict[int, Broker], listener: str) -> list[int]:
    """The replicas that the caller cannot reach: their broker is unregistered, fenced, without the listener, or has
    lost the directory."""
    offline = [
        replica
        for replica in state.replicas
        if replica not in brokers or brokers[replica].fenced or listener not in brokers[replica].endpoints
    ]
    for replica, directory in zip(state.replicas, state.directories, strict=False):
        if replica not in offline and not has_online_directory(brokers[replica], directory):
            offline.append(replica)
    return offline
