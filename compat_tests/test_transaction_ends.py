"""SIGKILL between each two steps of a transaction's end: after the restart it is wholly there or wholly not.

`tests/crash_points.py` names the steps, and kills the broker there. One round is one step, a commit or an abort, with a
group's offset or without, in transaction version 1 or 2. `--rounds N` asks for so many, in other combinations; without
it each step has one round.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from compat_tests.brokers.broker import BrokerFailed
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import assert_no_bug_logged
from compat_tests.scenarios.exchange import Exchange, part, request
from compat_tests.scenarios.produce import to
from compat_tests.scenarios.transactional_producers import OPEN, Producer, partitions
from pykafkad.errors import name
from pykafkad.wire.batch import build_batch
from tests import crash_points

PARTITIONS = 3
TOPIC, GROUP = "written", "group"
DEATH_SECONDS = 60.0
SAFE_DOWNGRADE = 2
READ_COMMITTED = 1
# Transaction version: the versions of Produce, of TxnOffsetCommit and of EndTxn.
VERSIONS = {1: (11, 4, 4), 2: (12, 5, 5)}
PLAIN = crash_points.points(PARTITIONS, syncs=False)
SYNCED = crash_points.points(PARTITIONS, syncs=True)
# What a broker has left to do that was killed when the decision was written.
LEFT = [step for step in PLAIN if PLAIN.index(step) > PLAIN.index(crash_points.READY) and step != crash_points.SENT]
# (whether it commits, transaction version, whether with a group's offset)
COMBINATIONS = (
    (True, 2, True),
    (False, 1, True),
    (True, 1, False),
    (False, 2, False),
    (True, 1, True),
    (False, 2, True),
    (True, 2, False),
    (False, 1, False),
)


class Round(NamedTuple):
    """One transaction, and the step of its end at which the broker is killed.

    With `again` the broker is killed once more at that step, when it goes on with the end after its restart.
    """

    point: str
    again: str
    commits: bool
    version: int
    with_offsets: bool

    @property
    def is_decided(self) -> bool:
        """Whether the decision is in the log when the broker is killed."""
        return SYNCED.index(self.point) >= SYNCED.index(crash_points.DECIDED)


def rounds_of(kills: list[tuple[str, str]], wanted: int) -> list[Round]:
    """At least so many rounds, and each kill as often as another one; eight times have every combination."""
    rounds = []
    for lap in range(ceil(wanted / len(kills))):
        for index, (point, again) in enumerate(kills):
            commits, version, with_offsets = COMBINATIONS[(index + lap) % len(COMBINATIONS)]
            is_of_group = {point, again} & {step for step in SYNCED if crash_points.GROUP in step}
            is_of_offsets = crash_points.OFFSETS in (point, again)
            rounds.append(Round(point, again, commits, version, with_offsets or bool(is_of_group) or is_of_offsets))
    return rounds


class DyingBroker(PykafkadProcess):
    """A pykafkad that kills itself at one step of the end of one transaction."""

    point = transactional_id = ""

    def start_for(self, point: str, transactional_id: str) -> None:
        """Start it; it dies at that step."""
        self.point, self.transactional_id = point, transactional_id
        self.start()

    def _spawn(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        crash = {crash_points.POINT: self.point, crash_points.ID: self.transactional_id}
        program = [{"pykafkad": "tests.crash_points"}.get(word, word) for word in command]
        super()._spawn(program, {**(environment or {}), **crash})

    def await_death(self) -> None:
        """Wait until it has killed itself."""
        assert self.process is not None
        assert self.process.wait(DEATH_SECONDS) == -signal.SIGKILL, self.log_tail()
        self.process = None


class Ends:
    """The rounds with one broker; what is committed so far is in `values` and `offset`."""

    def __init__(self, broker: DyingBroker) -> None:
        self.broker = broker
        self.values: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.offset = -1
        self.transaction_version = 2
        self.exchange: Any = None

    def play(self, rounds: list[Round]) -> None:
        """All rounds, one after the other; each start of the broker ends one and begins the next one."""
        self.broker.start()
        self.connect()
        self.exchange.topic(TOPIC, PARTITIONS, retention_ms="-1")
        self.exchange.close()
        self.broker.stop()
        for number, each in enumerate(rounds):
            try:
                self.broker.start_for(each.point, f"ends.id-{number}")
                self.connect()
                if number:
                    self.check(number - 1, rounds[number - 1])
                self.kill(number, each)
            except BaseException as error:
                error.add_note(f"in round {number}, {each}, after {rounds[max(number - 1, 0)]}")
                raise
        self.broker.start_for("", "")
        self.connect()
        self.check(len(rounds) - 1, rounds[-1])
        self.exchange.close()

    def connect(self) -> None:
        """Begin with new connections, and the same names as before."""
        self.exchange = Exchange(self.broker.bootstrap, "ends")
        self.exchange.prefix = "ends"
        self.exchange.coordinator(GROUP)

    @property
    def topic(self) -> str:
        return f"ends.{TOPIC}"

    def kill(self, number: int, each: Round) -> None:
        """Begin a transaction, and let the broker die while it ends it."""
        self.use_version(each.version)
        producer = Producer(self.exchange, f"id-{number}").begin()
        self.fill(producer, number, each)
        connection = self.exchange.connect()
        version = VERSIONS[each.version][2]
        connection.send("EndTxn", version, request("EndTxn", version, committed=each.commits, **producer.identity))
        self.broker.await_death()
        answer = connection.receive()
        self.exchange.close()
        if isinstance(answer, str):
            assert each.point != crash_points.SENT
        else:
            assert answer.error_code == 0 and each.is_decided, answer
        if each.again:
            # It may die before it is ready.
            with contextlib.suppress(BrokerFailed):
                self.broker.start_for(each.again, producer.id)
            self.broker.await_death()
        if each.is_decided and each.commits:
            for index in range(PARTITIONS):
                self.values[index].append(value_of(number, index))
            self.offset = number if each.with_offsets else self.offset

    def use_version(self, version: int) -> None:
        """Set the finalized transaction version."""
        if version == self.transaction_version:
            return
        update = part(
            "UpdateFeatures",
            "FeatureUpdateKey",
            feature="transaction.version",
            max_version_level=version,
            upgrade_type=1 if version > self.transaction_version else SAFE_DOWNGRADE,
        )
        answer = self.exchange.quietly("UpdateFeatures", 2, timeout_ms=10_000, feature_updates=[update])
        assert answer.error_code == 0, answer
        self.transaction_version = version

    def fill(self, producer: Producer, number: int, each: Round) -> None:
        """A record in each partition, and the group's offset, in the producer's transaction."""
        produce_version, offsets_version, _ = VERSIONS[each.version]
        ids = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, "base_sequence": 0}
        now_ms = int(time.time() * 1000)
        rows = [
            (index, build_batch([(None, value_of(number, index))], timestamp_ms=now_ms, is_transactional=True, **ids))
            for index in range(PARTITIONS)
        ]
        if each.version < 2:
            added = producer.add(3, partitions(self.topic, *range(PARTITIONS)))
            assert not any(
                row.partition_error_code for row in added.results_by_topic_v3_and_below[0].results_by_partition
            )
        fields = {"transactional_id": producer.id, "acks": -1, "timeout_ms": 5000}
        answer = self.exchange.quietly("Produce", produce_version, topic_data=[to(self.topic, *rows)], **fields)
        assert not any(row.error_code for row in answer.responses[0].partition_responses), answer
        if not each.with_offsets:
            return
        if each.version < 2:
            answer = self.exchange.quietly("AddOffsetsToTxn", 3, group_id=GROUP, **producer.identity)
            assert answer.error_code == 0, answer
        row = part("TxnOffsetCommit", "TxnOffsetCommitRequestPartition", partition_index=0, committed_offset=number)
        topics = [part("TxnOffsetCommit", "TxnOffsetCommitRequestTopic", name=self.topic, partitions=[row])]
        fields = {"group_id": GROUP, "topics": topics, **producer.identity}
        answer = self.exchange.quietly("TxnOffsetCommit", offsets_version, **fields)
        assert answer.topics[0].partitions[0].error_code == 0, answer

    def check(self, number: int, each: Round) -> None:
        """The transaction is wholly there or wholly not, to a reader of committed records and in the group."""
        producer = Producer(self.exchange, f"id-{number}")
        producer.settle()
        (described,) = producer._described().transaction_states
        state = described.transaction_state
        if not each.is_decided:
            assert state == "Ongoing", state
            if each.with_offsets:
                assert name(self.group_offset()[0]) == "UNSTABLE_OFFSET_COMMIT"
            # The next producer of the id aborts it.
            producer.begin()
            producer.settle()
        else:
            assert state == ("CompleteCommit" if each.commits else "CompleteAbort"), state
            assert state not in OPEN
        assert self.read() == self.values
        assert self.group_offset() == (0, self.offset)
        assert self.ends(READ_COMMITTED) == self.ends(0)

    def read(self) -> list[list[bytes]]:
        """The values that a client is given that reads committed records, by partition."""
        settings = {"isolation.level": "read_committed", "enable.partition.eof": True, "enable.auto.commit": False}
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "-", "log_level": 0, **settings})
        consumer.assign([TopicPartition(self.topic, index, 0) for index in range(PARTITIONS)])
        found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        at_the_end: set[int] = set()
        deadline = time.monotonic() + DEATH_SECONDS
        while len(at_the_end) < PARTITIONS:
            assert time.monotonic() < deadline, "not read to the end"
            for message in consumer.consume(500, 0.02):
                if message.error() is None:
                    found[message.partition()].append(message.value())
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    at_the_end.add(message.partition())
        consumer.close()
        return found

    def group_offset(self) -> tuple[int, int]:
        """The error and the offset of the group, which must be stable."""
        topics = [part("OffsetFetch", "OffsetFetchRequestTopics", name=self.topic, partition_indexes=[0])]
        asked = [part("OffsetFetch", "OffsetFetchRequestGroup", group_id=GROUP, topics=topics)]
        answer = self.exchange.quietly("OffsetFetch", 8, groups=asked, require_stable=True)
        (row,) = answer.groups[0].topics[0].partitions
        return row.error_code, row.committed_offset

    def ends(self, isolation_level: int) -> list[int]:
        """The end of each partition, as readers of that isolation level see it."""
        rows = [
            part("ListOffsets", "ListOffsetsPartition", partition_index=index, timestamp=-1)
            for index in range(PARTITIONS)
        ]
        topics = [part("ListOffsets", "ListOffsetsTopic", name=self.topic, partitions=rows)]
        answer = self.exchange.quietly("ListOffsets", 5, replica_id=-1, isolation_level=isolation_level, topics=topics)
        return [row.offset for row in answer.topics[0].partitions]


def value_of(number: int, index: int) -> bytes:
    return b"round %d, partition %d" % (number, index)


@pytest.fixture
def dying(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DyingBroker]:
    """It is not started."""
    made = DyingBroker(tmp_path, getattr(request, "param", {}))
    try:
        yield made
    finally:
        made.close()
    assert_no_bug_logged(made)


def play(broker: DyingBroker, rounds: list[Round]) -> None:
    """Play the rounds, and print what they were."""
    ends = Ends(broker)
    ends.play(rounds)
    print(f"{len(rounds)} rounds, {len(ends.values[0])} transactions are there")


@pytest.mark.timeout(3600)
def test_a_kill_at_each_step(dying: DyingBroker, pytestconfig: pytest.Config) -> None:
    """Before the decision is written whole nothing is there, afterwards everything."""
    kills = [(point, "") for point in PLAIN]
    play(dying, rounds_of(kills, pytestconfig.getoption("--rounds") or len(kills)))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dying", [{"pykafkad.group.commit": "true"}], indirect=True, ids=["synced"])
def test_a_kill_at_each_step_that_waits_for_a_sync(dying: DyingBroker, pytestconfig: pytest.Config) -> None:
    """The same when the decision, the markers and the end are synced; the answer leaves after the first."""
    rounds = pytestconfig.getoption("--rounds")
    kills = [(point, "") for point in SYNCED if rounds or point not in PLAIN or point == crash_points.SENT]
    play(dying, rounds_of(kills, rounds or len(kills)))


@pytest.mark.timeout(3600)
def test_a_second_kill_when_the_end_goes_on(dying: DyingBroker, pytestconfig: pytest.Config) -> None:
    """The broker has begun again with the markers, and dies at each of the steps that were left."""
    rounds = pytestconfig.getoption("--rounds")
    kills = [(crash_points.DECIDED, step) for step in (LEFT if rounds else LEFT[::3])]
    play(dying, rounds_of(kills, rounds or len(kills)))
