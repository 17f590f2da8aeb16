"""Short forms of the requests of transactional producers, over a connection to a whole broker."""

from __future__ import annotations

from pykafkad.errors import name
from pykafkad.wire import messages

TRANSACTION = 1


class Producer:
    """A transactional producer with the topic `t` of two partitions. It coordinates nothing before `init`."""

    def __init__(self, world, peer, transactional_id="id"):
        self.world = world
        self.peer = peer
        self.transactional_id = transactional_id
        self.producer_id, self.epoch = -1, -1

    def create_topic(self, topic="t", partitions=2):
        wanted = messages.CreateTopicsRequest.CreatableTopic(
            name=topic, num_partitions=partitions, replication_factor=1
        )
        self.peer.ask(messages.CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7)
        return self

    def find(self):
        """Wait until there is a coordinator, whose partition is loaded."""
        request = messages.FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.transactional_id])
        for _ in range(20):
            (row,) = self.peer.ask(request, 6).coordinators
            if row.error_code == 0 and not self.world.broker.transactions.is_loading:
                return self
            self.world.turn()
        raise AssertionError(f"no coordinator: {row}")

    def init(self, version=5, **fields):
        request = messages.InitProducerIdRequest(
            **{"transactional_id": self.transactional_id, "transaction_timeout_ms": 60_000, **fields}
        )
        answer = self.peer.ask(request, version)
        if not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return name(answer.error_code)

    def add(self, *indexes, topic="t", version=3):
        topics = [messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))]
        request = messages.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        (row,) = self.peer.ask(request, version).results_by_topic_v3_and_below
        return [name(each.partition_error_code) for each in row.results_by_partition]

    def end(self, commit=True, version=4):
        request = messages.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = self.peer.ask(request, version)
        if version >= 5 and not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return name(answer.error_code)

    def add_offsets(self, group="g", version=4):
        request = messages.AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return name(self.peer.ask(request, version).error_code)

    def describe(self):
        (row,) = self.peer.ask(
            messages.DescribeTransactionsRequest(transactional_ids=[self.transactional_id]), 0
        ).transaction_states
        return row

    def state(self):
        return self.describe().transaction_state


class Refusing:
    """An authorizer that refuses what is named: (operation, resource type, resource name)."""

    def __init__(self):
        self.refused = set()

    def refuse(self, world, *what):
        """Refuse this from now on; what sessions remember counts no more."""
        self.refused = set(what)
        world.broker.sessions.acls_changed()

    def authorize(self, principal, client_address, operation, resource_type, resource_name):
        return (operation, resource_type, resource_name) not in self.refused
