"""Scripted clients of a world of brokers that write idempotently and in transactions, on the wire (KIP-98, KIP-890).

A client is a generator, which a `Script` runs: it yields a request for a broker and gets the answer, or a pause in
seconds, or other generators that go on at the same time. Errors are treated as Kafka's clients do: some are tried again
with the same sequence, some abort the transaction, and the others end the life of the client."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch
from tests.simulation.replication_clients import CLIENT
from tests.simulation.transaction_history import ABORTED, COMMITTED, UNKNOWN

TIMEOUT_MS = 3000
"""A transaction that is open for longer is aborted by its coordinator."""
GROUP, TRANSACTION = 0, 1
PATIENCE_SECONDS = (0.5, 6.0, 12.0)
"""For so long a client tries the same again. After a short time a batch may still be under way."""
OLD, NEW = "old", "new"
"""Clients of transaction version 1 add their partitions by themselves, and keep their epoch."""

_AGAIN = frozenset(
    (
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.LEADER_NOT_AVAILABLE,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.REQUEST_TIMED_OUT,
        errors.NETWORK_EXCEPTION,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.NOT_ENOUGH_REPLICAS,
        errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        errors.CONCURRENT_TRANSACTIONS,
        errors.KAFKA_STORAGE_ERROR,
        errors.UNKNOWN_TOPIC_ID,
    )
)
_NO_ANSWER = None
"""The code of a request that was given up: whether it was served is not known."""


class Script:
    """Runs one generator to its end."""

    def __init__(self, clients, name, body, then=lambda: None):
        self._clients, self._world, self._name = clients, clients.world, name
        self._body, self._then = body, then
        self._go_on(None)

    def _go_on(self, answer):
        try:
            asked = self._body.send(answer)
        except StopIteration:
            self._then()
            return
        if isinstance(asked, float):
            self._world.cluster.network.at(self._world.now + asked, lambda: self._go_on(None), CLIENT)
        elif isinstance(asked, list):
            self._run_all(asked)
        else:
            node_id, request = asked
            self._clients.send(node_id, request, self._go_on, self._name)

    def _run_all(self, bodies):
        left = len(bodies)

        def ended():
            nonlocal left
            left -= 1
            if not left:
                # Not at once: a generator cannot go on while it is in its `yield`.
                self._world.cluster.network.at(self._world.now, lambda: self._go_on(None), CLIENT)

        for body in bodies:
            Script(self._clients, self._name, body, ended)


class Life:
    """What a running client knows of itself: its producer id, the epoch, and the next sequence of each partition."""

    def __init__(self, number):
        self.number = number
        self.producer_id = self.epoch = -1
        self.sequences = {}
        self.is_over = False

    def became(self, producer_id, epoch):
        self.producer_id, self.epoch = producer_id, epoch
        self.sequences.clear()


class Client:
    """What both kinds of clients do. `places` are the partitions that they write to."""

    def __init__(self, part, name, places):
        self.part, self.world, self.clients = part, part.world, part.clients
        self.chance = part.chance
        self.name, self.places = name, places
        self.is_stopped = False
        self.failures = 0
        self.repeated = 0

    def _pause(self):
        return self.chance.uniform(0.05, 0.3)

    def _write(self, life, place, values):
        """Append one batch at the leader, whoever that is by now. Returns (error code, base offset)."""
        is_transactional = isinstance(self, TransactionalClient)
        batch = build_batch(
            [(None, value) for value in values],
            timestamp_ms=self.clients.runtime.now_ms,
            producer_id=life.producer_id,
            producer_epoch=life.epoch,
            base_sequence=life.sequences.get(place, 0),
            is_transactional=is_transactional,
        )
        row, (topic, index) = messages.ProduceRequest, place
        data = row.PartitionProduceData(index=index, records=bytes(batch))
        topic_id = self.world.image.topics[topic].id
        until, epoch, attempts = self.world.now + self.chance.choice(PATIENCE_SECONDS), life.epoch, 0
        while self.world.now < until and life.epoch == epoch:
            leader = self.world.state(*place).leader
            if leader < 0:
                yield self._pause()
                continue
            request = row(
                transactional_id=self.name if is_transactional else None,
                acks=-1,
                timeout_ms=3000,
                topic_data=[row.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
            )
            attempts += 1
            answer = yield leader, request
            code, base_offset = _NO_ANSWER, -1
            if isinstance(answer, messages.ProduceResponse):
                written = answer.responses[0].partition_responses[0]
                code, base_offset = written.error_code, written.base_offset
            if code in (errors.NONE, errors.DUPLICATE_SEQUENCE_NUMBER):
                self.repeated += attempts > 1
                life.sequences[place] = life.sequences.get(place, 0) + len(values)
                return errors.NONE, base_offset
            self.failures += 1
            if code is not _NO_ANSWER and code not in _AGAIN:
                return code, -1
            yield self._pause()
        return _NO_ANSWER, -1

    def _ask(self, key_type, request, code_of):
        """Ask a coordinator until it gives an answer that is one: (code, answer, whether an attempt is unclear)."""
        until, is_unclear, coordinator = self.world.now + max(PATIENCE_SECONDS), False, None
        while self.world.now < until:
            if coordinator is None:
                coordinator = yield from self._find(key_type)
                if coordinator is None:
                    yield self._pause()
                    continue
            answer = yield coordinator, request
            is_answer = isinstance(answer, messages.Struct)
            code = code_of(answer) if is_answer else _NO_ANSWER
            if is_answer and code not in _AGAIN:
                return code, answer, is_unclear
            self.failures += 1
            # Whether it was served is not known either of one that a coordinator refuses because it moves.
            is_unclear |= code != errors.CONCURRENT_TRANSACTIONS
            if code != errors.CONCURRENT_TRANSACTIONS:
                coordinator = None
            yield self._pause()
        return _NO_ANSWER, None, True

    def _find(self, key_type):
        request = messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[self.name])
        answer = yield self.chance.choice(sorted(self.world.nodes)), request
        if isinstance(answer, messages.FindCoordinatorResponse) and not answer.coordinators[0].error_code:
            return answer.coordinators[0].node_id
        return None

    def _begin(self, life, **expected):
        """Get a producer id, or a higher epoch of the one that is there. Returns whether that went well."""
        transactional_id = self.name if isinstance(self, TransactionalClient) else None
        request = messages.InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS, **expected
        )
        code, answer, _ = yield from self._ask(TRANSACTION, request, lambda answer: answer.error_code)
        if code != errors.NONE:
            return False
        life.became(answer.producer_id, answer.producer_epoch)
        return True


class IdempotentClient(Client):
    """Appends one record after another to one partition, and repeats what was not answered. After a failure it goes on
    with the next epoch, as Kafka's clients do (KIP-360)."""

    def __init__(self, part, name, places, producer):
        super().__init__(part, name, places)
        self._numbers = producer
        (self.place,) = places
        self.topic, self.index = self.place
        self.acknowledged = {}
        Script(self.clients, name, self._live())

    def forget(self, offset):
        for each in [each for each in self.acknowledged if each >= offset]:
            del self.acknowledged[each]

    def _live(self):
        life = Life(0)
        while not self.is_stopped and not (yield from self._begin(life)):
            yield self._pause()
        while not self.is_stopped:
            values = [self.part.value(self, self.place) for _ in range(self.chance.randint(1, 2))]
            code, base_offset = yield from self._write(life, self.place, values)
            if code == errors.NONE and base_offset >= 0:
                for offset, value in enumerate(values, base_offset):
                    if not self._numbers.is_forgotten(offset, value):
                        self.acknowledged[offset] = value
            elif code != errors.NONE:
                life.became(life.producer_id, life.epoch + 1)
            yield self.chance.uniform(0.05, 0.3)


class TransactionalClient(Client):
    """A transactional id. A life of it makes one transaction after another, until it dies, or until the next life takes
    its place."""

    def __init__(self, part, name, places, kind):
        super().__init__(part, name, places)
        self.kind = kind
        self.history = part.history
        self.lives = 0
        self.initialized = 0
        """The newest life that has got its epoch: all earlier ones are fenced."""
        self.committed = 0
        self.aborted = 0
        self.begin_life(0.0)

    def begin_life(self, seconds):
        def begin():
            if not self.is_stopped:
                self.lives += 1
                Script(self.clients, self.name, self._live(Life(self.lives)))

        self.world.cluster.network.at(self.world.now + seconds, begin, CLIENT)

    def _live(self, life):
        is_begun = yield from self._begin(life)
        if is_begun:
            self.initialized = max(self.initialized, life.number)
        else:
            life.is_over = True
        while not life.is_over and not self.is_stopped:
            yield from self._transact(life)
            yield self.chance.uniform(0.1, 0.6)
        if life.number == self.lives:
            self.begin_life(self.chance.choice([0.1, 1.0, 6.0]) * self.chance.random())

    def _transact(self, life):
        chance = self.chance
        transaction = self.history.begin(self.name)
        places = chance.sample(self.places, chance.randint(1, 3))
        is_whole = True

        def write_some(place):
            nonlocal is_whole
            for _ in range(chance.randint(1, 2)):
                values = [self.part.value(self, place) for _ in range(chance.randint(1, 2))]
                transaction.sent(place, values)
                code, _ = yield from self._write(life, place, values)
                if code != errors.NONE:
                    is_whole = False
                    return

        if self.kind == OLD:
            is_whole = yield from self._add(life, places)
        if is_whole:
            yield [write_some(place) for place in places]
        if is_whole and chance.random() < 0.5:
            is_whole = yield from self._send_offset(life, transaction)
        drawn = chance.random()
        if drawn < 0.06:
            # It dies in the middle.
            life.is_over = True
            return
        if drawn < 0.12 and life.number == self.lives:
            # Another takes its place, and this one goes on.
            self.begin_life(0.0)
            yield self.chance.uniform(0.0, 0.5)
        yield from self._end(life, transaction, is_whole)

    def _add(self, life, places):
        """Tell the coordinator what the transaction will write to."""
        row = messages.AddPartitionsToTxnRequest
        topics = {}
        for topic, index in places:
            topics.setdefault(topic, []).append(index)
        request = row(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=life.producer_id,
            v3_and_below_producer_epoch=life.epoch,
            v3_and_below_topics=[
                row.AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in topics.items()
            ],
        )

        def code_of(answer):
            return max(
                each.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            )

        code, _, _ = yield from self._ask(TRANSACTION, request, code_of)
        return code == errors.NONE

    def _send_offset(self, life, transaction):
        """Commit an offset of the group in the transaction. The group has the name of the transactional id."""
        if self.kind == OLD:
            adding = messages.AddOffsetsToTxnRequest(
                transactional_id=self.name,
                producer_id=life.producer_id,
                producer_epoch=life.epoch,
                group_id=self.name,
            )
            code, _, _ = yield from self._ask(TRANSACTION, adding, lambda answer: answer.error_code)
            if code != errors.NONE:
                return False
        row = messages.TxnOffsetCommitRequest
        partition = row.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=transaction.number)
        request = row(
            transactional_id=self.name,
            group_id=self.name,
            producer_id=life.producer_id,
            producer_epoch=life.epoch,
            topics=[row.TxnOffsetCommitRequestTopic(name="a", partitions=[partition])],
        )
        transaction.offset = transaction.number
        code, _, _ = yield from self._ask(GROUP, request, lambda answer: answer.topics[0].partitions[0].error_code)
        return code == errors.NONE

    def _end(self, life, transaction, is_whole):
        """Commit it or abort it. One of which a part failed can only be aborted."""
        is_commit = is_whole and self.chance.random() < 0.75
        is_fenced = self.initialized > life.number
        request = messages.EndTxnRequest(
            transactional_id=self.name,
            producer_id=life.producer_id,
            producer_epoch=life.epoch,
            committed=is_commit,
        )
        if is_commit and not is_fenced:
            transaction.outcome = UNKNOWN
        if self.chance.random() < 0.04:
            # It dies as soon as it has asked for the end.
            life.is_over = True
            coordinator = yield from self._find(TRANSACTION)
            if coordinator is not None:
                yield coordinator, request
            return
        code, answer, is_unclear = yield from self._ask(TRANSACTION, request, lambda answer: answer.error_code)
        if code != errors.NONE:
            life.is_over = True
            if code is not _NO_ANSWER and not is_unclear:
                transaction.outcome = ABORTED
            return
        if is_fenced and self.name not in self.history.forgotten:
            self.history.fail(f"{transaction} is ended after another client with its transactional id has begun")
        transaction.outcome = COMMITTED if is_commit else ABORTED
        self.committed += is_commit
        self.aborted += not is_commit
        if self.kind == NEW:
            life.became(answer.producer_id, answer.producer_epoch)
        elif not is_whole:
            expected = {"producer_id": life.producer_id, "producer_epoch": life.epoch}
            life.is_over = not (yield from self._begin(life, **expected))
