"""Short forms of the requests of share groups, over a connection to a whole broker."""

from __future__ import annotations

from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.group_member import MEMBER, GroupMember
from tests.handlers.requests import batch, produce


class Share(GroupMember):
    """A member of the share group `g`, and a topic `t` that begins with the group."""

    def __init__(self, world, member=MEMBER, group="g", topic_id=None, partitions=1):
        super().__init__(world, member, group)
        self.topic_id = topic_id or world.create_topic("t", partitions)
        self.session = 0
        self.assigned = {}

    def begin_at_the_start(self):
        return self.begin_at("earliest")

    def begin_at(self, reset):
        request = messages.IncrementalAlterConfigsRequest
        setting = request.AlterableConfig(name="share.auto.offset.reset", config_operation=0, value=reset)
        resource = request.AlterConfigsResource(resource_type=32, resource_name=self.group, configs=[setting])
        answer = self.peer.ask(request(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0
        return self

    def heartbeat(self, topics=None, **fields):
        request = messages.ShareGroupHeartbeatRequest(
            **{
                "group_id": self.group,
                "member_id": self.member,
                "member_epoch": self.epoch,
                "subscribed_topic_names": topics,
                **fields,
            }
        )
        answer = self.peer.ask(request, 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}
        return answer

    def join(self, topics=("t",)):
        """Send heartbeats until there is an assignment."""
        self.find()
        assert self.heartbeat(list(topics)).error_code == 0
        for _ in range(20):
            if self.assigned:
                return self
            self.world.advance(1)
            assert self.heartbeat().error_code == 0
        raise AssertionError("nothing is assigned")

    def produce(self, *values, partition=0):
        answer = self.peer.ask(produce("t", {partition: batch(*values)}), 8)
        assert answer.responses[0].partition_responses[0].error_code == 0
        return self

    def fetch_request(self, *partitions, give_back=None, forget=(), epoch=None, **fields):
        """`give_back` maps a partition to rows of first and last offset and types."""
        request = messages.ShareFetchRequest
        rows = [
            request.FetchPartition(partition_index=index, acknowledgement_batches=_batches(request, give_back, index))
            for index in dict.fromkeys((*partitions, *(give_back or ())))
        ]
        forgotten = [request.ForgottenTopic(topic_id=self.topic_id, partitions=list(forget))] if forget else []
        return request(
            **{
                "group_id": self.group,
                "member_id": self.member,
                "share_session_epoch": self.session if epoch is None else epoch,
                "max_wait_ms": 0,
                "min_bytes": 1,
                "max_bytes": 1 << 20,
                "max_records": 100,
                "batch_size": 100,
                "topics": [request.FetchTopic(topic_id=self.topic_id, partitions=rows)] if rows else [],
                "forgotten_topics_data": forgotten,
                **fields,
            }
        )

    def fetch(self, *partitions, version=2, **fields):
        """The answer. A first fetch begins the session."""
        partitions = partitions or ((0,) if self.session == 0 else ())
        answer = self.peer.ask(self.fetch_request(*partitions, **fields), version)
        if not answer.error_code and fields.get("epoch") is None:
            self.session += 1
        return answer

    def acknowledge(self, *batches, partition=0, epoch=None, version=2, topic_id=None, **fields):
        """The answer. Each batch is first and last offset and types."""
        request = messages.ShareAcknowledgeRequest
        row = request.AcknowledgePartition(
            partition_index=partition, acknowledgement_batches=_batches(request, {partition: batches}, partition)
        )
        answer = self.peer.ask(
            request(
                **{
                    "group_id": self.group,
                    "member_id": self.member,
                    "share_session_epoch": self.session if epoch is None else epoch,
                    "topics": [request.AcknowledgeTopic(topic_id=topic_id or self.topic_id, partitions=[row])],
                    **fields,
                }
            ),
            version,
        )
        if not answer.error_code and epoch is None:
            self.session += 1
        return answer


def _batches(request, give_back, index):
    return [
        request.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, types in (give_back or {}).get(index, ())
    ]


def rows_of(answer):
    """Partition to its row."""
    return {row.partition_index: row for topic in answer.responses for row in topic.partitions}


def acquired(answer, partition=0):
    """The ranges of an answer."""
    row = rows_of(answer).get(partition)
    return (
        []
        if row is None
        else [(each.first_offset, each.last_offset, each.delivery_count) for each in row.acquired_records]
    )


def codes(answer):
    """Partition to the name of its error."""
    return {index: name(row.error_code) for index, row in rows_of(answer).items()}
