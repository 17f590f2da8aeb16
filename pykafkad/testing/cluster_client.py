"""What a test asks of several brokers: each request goes to the broker that it concerns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.testing import waits
from pykafkad.testing.wire_client import OwnWireClient, WireClient
from pykafkad.wire import messages

if TYPE_CHECKING:
    from socket import socket

_TRANSACTION = 1
_OF_GROUP = {
    "OffsetCommit": lambda fields: fields["group_id"],
    "OffsetFetch": lambda fields: fields["groups"][0].group_id,
    "DescribeGroups": lambda fields: fields["groups"][0],
    "ConsumerGroupDescribe": lambda fields: fields["group_ids"][0],
    "ShareGroupDescribe": lambda fields: fields["group_ids"][0],
}
"""The group of a request that goes to its coordinator."""
_OF_EVERY_BROKER = {"ListGroups": "groups", "ListTransactions": "transaction_states"}
"""Requests of which each broker answers a part."""
_DECIDED = frozenset(("CreateTopics", "DeleteTopics", "CreatePartitions", "IncrementalAlterConfigs"))
"""Requests that the controller decides: the next one may go to another broker."""


class ClusterWireClient(OwnWireClient):
    """One connection to each broker that is asked. The leaders are looked up for each request: they move."""

    def __init__(self, connect: Callable[..., socket], wait_until_known: Callable[[], object]) -> None:
        """`connect(node_id)` makes a connection to that broker, and `connect()` to one that serves.
        `wait_until_known()` returns when each of them knows what was decided."""
        super().__init__(connect)
        self._connect = connect
        self._wait_until_known = wait_until_known
        self._clients: dict[int, WireClient] = {}

    def close(self) -> None:
        """Close the connections."""
        super().close()
        for each in self._clients.values():
            each.close()

    def ask(self, api: str, **fields: Any) -> Any:
        """As `WireClient.ask`."""
        if api == "Produce":
            topic = fields["topic_data"][0]
            return self._leader(topic.name, topic.partition_data[0].index).ask(api, **fields)
        if api == "Fetch":
            topic = fields["topics"][0]
            return self._leader(topic.topic, topic.partitions[0].partition).ask(api, **fields)
        if api == "ListOffsets":
            return self._list_offsets(fields)
        if api in _OF_GROUP:
            return self._coordinator(0, _OF_GROUP[api](fields)).ask(api, **fields)
        if api == "DescribeTransactions":
            return self._coordinator(_TRANSACTION, fields["transactional_ids"][0]).ask(api, **fields)
        if api in _OF_EVERY_BROKER:
            return self._of_every_broker(api, fields)
        answer = super().ask(api, **fields)
        if api in _DECIDED:
            self._wait_until_known()
        return answer

    def _client(self, node_id: int) -> WireClient:
        client = self._clients.get(node_id)
        if client is None:
            client = self._clients[node_id] = OwnWireClient(partial(self._connect, node_id))
        return client

    def _metadata(self, *topics: str) -> Any:
        asked = [messages.MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        answer = super().ask("Metadata", topics=asked, allow_auto_topic_creation=False)
        if not answer.brokers:
            raise ConnectionRefusedError("no broker serves: the controller has fenced all of them")
        return answer

    def _leader(self, topic: str, partition: int) -> WireClient:
        """The leader of a partition; where there is none, any broker, which says so."""
        answer = self._metadata(topic)
        leaders = {row.partition_index: row.leader_id for row in answer.topics[0].partitions}
        for broker in answer.brokers:
            if broker.node_id == leaders.get(partition):
                return self._client(broker.node_id)
        return self._client(answer.brokers[0].node_id)

    def _coordinator(self, kind: int, key: str) -> WireClient:
        """The coordinator; where there is none, any broker, which says so."""
        row = super().ask("FindCoordinator", key_type=kind, coordinator_keys=[key]).coordinators[0]
        if row.error_code:
            return self._client(self._metadata().brokers[0].node_id)
        return self._client(row.node_id)

    def _of_every_broker(self, api: str, fields: dict[str, Any]) -> Any:
        name = _OF_EVERY_BROKER[api]
        answers = [self._client(each.node_id).ask(api, **fields) for each in self._metadata().brokers]
        setattr(answers[0], name, [row for answer in answers for row in getattr(answer, name)])
        return answers[0]

    def _list_offsets(self, fields: dict[str, Any]) -> Any:
        """As the leaders answer. One that leads since a moment knows its end when a replica has fetched from it."""
        return waits.until(
            lambda: self._list_offsets_now(fields),
            lambda answer: (
                not any(
                    row.error_code == errors.OFFSET_NOT_AVAILABLE for topic in answer.topics for row in topic.partitions
                )
            ),
            "leaders that know their end offsets",
            waits.TIMEOUT_SECONDS,
        )

    def _list_offsets_now(self, fields: dict[str, Any]) -> Any:
        asked = messages.ListOffsetsRequest
        by_leader: dict[WireClient, list[Any]] = {}
        for topic in fields["topics"]:
            for row in topic.partitions:
                leader = self._leader(topic.name, row.partition_index)
                one = asked.ListOffsetsTopic(name=topic.name, partitions=[row])
                by_leader.setdefault(leader, []).append(one)
        answers = [leader.ask("ListOffsets", **{**fields, "topics": topics}) for leader, topics in by_leader.items()]
        answers[0].topics = [topic for answer in answers for topic in answer.topics]
        return answers[0]
