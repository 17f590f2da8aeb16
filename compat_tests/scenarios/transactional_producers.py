"""Transactional producers: ids and epochs, partitions and offsets that join a transaction, and its end."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.fetch import fetch, from_topic, row
from compat_tests.scenarios.offset_lookup import look_up, looked_up
from compat_tests.scenarios.produce import KEPT, batch_of_now, produce, to
from compat_tests.scenarios.registry import configured_scenario, scenario

TRANSACTION = 1
CONCURRENT_TRANSACTIONS = 51
NOT_YET = {14, 15, 16}
OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")
BUMPING = 5  # The first version of EndTxn that raises the producer's epoch.
LONG_MS = 600_000
# Many times longer than two requests take.
TIMEOUT_MS = 6_000


class Producer:
    """A transactional producer that asks request by request."""

    def __init__(self, broker: Exchange, kind: str = "id") -> None:
        self.broker = broker
        self.id = broker.name(kind)
        self.producer_id, self.epoch = -1, -1
        broker.until(
            lambda: broker.quietly("FindCoordinator", 4, key_type=TRANSACTION, coordinator_keys=[self.id]),
            lambda answer: answer.coordinators[0].error_code == 0,
        )
        broker.until(self._described, lambda answer: answer.transaction_states[0].error_code not in NOT_YET)

    def _described(self) -> Any:
        return self.broker.quietly("DescribeTransactions", 0, transactional_ids=[self.id])

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that most requests of a producer have."""
        return {"transactional_id": self.id, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def begin(self, timeout_ms: int = LONG_MS) -> Producer:
        """Get an id and epoch, not recorded; an open transaction of the id is aborted first."""
        fields = {"transactional_id": self.id, "transaction_timeout_ms": timeout_ms}
        answer = self.broker.until(
            lambda: self.broker.quietly("InitProducerId", 4, **fields),
            lambda answer: answer.error_code not in (*NOT_YET, CONCURRENT_TRANSACTIONS),
        )
        assert answer.error_code == 0, answer
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return self

    def init(self, version: int, note: str = "", timeout_ms: int = LONG_MS, **fields: Any) -> Any:
        """Record an InitProducerId; the producer goes on as the answer says."""
        asked = {"transactional_id": self.id, "transaction_timeout_ms": timeout_ms, **fields}
        answer = self.broker.ask("InitProducerId", version, note=note, **asked)
        if answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def add(self, version: int, *topics: Any, note: str = "", **changed: Any) -> Any:
        """Record an AddPartitionsToTxn of a client (0 to 3) or of a broker (4 and 5)."""
        identity = self.identity | changed
        verify_only = identity.pop("verify_only", False)
        if version < 4:
            fields = {f"v3_and_below_{name}": value for name, value in identity.items()}
            return self.broker.ask("AddPartitionsToTxn", version, note=note, v3_and_below_topics=list(topics), **fields)
        one = part(
            "AddPartitionsToTxn",
            "AddPartitionsToTxnTransaction",
            **identity,
            verify_only=verify_only,
            topics=list(topics),
        )
        return self.broker.ask("AddPartitionsToTxn", version, note=note, transactions=[one])

    def end(self, version: int, commit: bool, note: str = "", **changed: Any) -> Any:
        """Record an EndTxn; from version 5 on the producer goes on as the answer says."""
        what = f"{'commit' if commit else 'abort'} {note}".rstrip()
        answer = self.broker.ask("EndTxn", version, note=what, committed=commit, **(self.identity | changed))
        if version >= BUMPING and answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return answer

    def settle(self) -> None:
        """Wait until every marker of an ended transaction is written."""
        self.broker.until(
            self._described, lambda answer: answer.transaction_states[0].transaction_state not in OPEN[1:]
        )

    def describe(self, note: str = "") -> None:
        """Record the state."""
        self.broker.ask("DescribeTransactions", 0, note=note, transactional_ids=[self.id])


def partitions(topic: str, *indexes: int) -> Any:
    """One topic of AddPartitionsToTxn."""
    return part("AddPartitionsToTxn", "AddPartitionsToTxnTopic", name=topic, partitions=list(indexes))


@scenario
def producer_epochs(broker: Exchange) -> None:
    """Each producer of a transactional id gets a higher epoch; one that names its id and epoch goes on (KIP-360)."""
    for version in versions("InitProducerId"):
        if version > 5:
            continue
        producer = Producer(broker, f"id{version}").begin()
        for _ in range(2):
            producer.init(version)
        producer.describe()
        if version < 3:
            continue
        old = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
        producer.init(version, "goes on", **old)
        producer.init(version, "repeated", **old)
        producer.init(version, "epoch of nobody", producer_id=producer.producer_id, producer_epoch=77)
        producer.init(version, "id of nobody", producer_id=producer.producer_id + 10_000, producer_epoch=0)
        producer.init(version, "no epoch", producer_id=producer.producer_id)
        producer.init(version, "takes over")
        producer.init(version, "too late", **old)
    for version in (3, 5):
        Producer(broker, f"fresh{version}").init(version, "an unknown id goes on", producer_id=5, producer_epoch=3)


@scenario
def producer_timeouts(broker: Exchange) -> None:
    """A timeout is positive and at most `transaction.max.timeout.ms`."""
    producer = Producer(broker).begin()
    for version in (0, 4, 5):
        for timeout_ms in (900_001, 2**31 - 1, 0, -1, 900_000, 1):
            producer.init(version, f"timeout {timeout_ms}", timeout_ms)
        producer.describe()
    broker.ask("InitProducerId", 5, note="empty id", transactional_id="", transaction_timeout_ms=0)


@scenario
def partitions_join(broker: Exchange) -> None:
    """All partitions of a request join the transaction, or none and each has its error."""
    name = broker.topic(partitions=3, **KEPT)
    for version in versions("AddPartitionsToTxn"):
        producer = Producer(broker, f"id{version}").begin()
        producer.add(version, partitions(name, 0))
        producer.add(version, partitions(name, 0, 2), note="more")
        producer.add(version, partitions(name, 1, 7), note="one unknown")
        producer.add(version, partitions(name, 1), partitions("nothing", 0), note="unknown topic")
        producer.add(version, partitions(name, 1), partitions("__transaction_state", 0), note="internal topic")
        producer.describe()
        for change in ({"producer_epoch": 9}, {"producer_id": producer.producer_id + 10_000}):
            producer.add(version, partitions(name, 1), note=f"other {next(iter(change))}", **change)
        producer.add(version, partitions(name, 1, 2), note="empty id", transactional_id="")
        other = Producer(broker, f"unknown{version}")
        producer.add(version, partitions(name, 1), note="unknown id", transactional_id=other.id)
        producer.end(3, False)
        producer.settle()
        producer.describe()


@scenario
def partitions_verified(broker: Exchange) -> None:
    """A broker asks whether partitions belong to the open transaction (KIP-890)."""
    name = broker.topic(partitions=3, **KEPT)
    for version in (4, 5):
        producer = Producer(broker, f"id{version}").begin()
        asked = partitions(name, 0, 1)
        producer.add(version, asked, note="before", verify_only=True)
        producer.add(3, partitions(name, 1))
        producer.add(version, asked, note="within", verify_only=True)
        producer.add(version, partitions(name, 9), note="unknown partition", verify_only=True)
        producer.add(version, asked, note="other epoch", verify_only=True, producer_epoch=9)
        producer.add(version, asked, note="other id", verify_only=True, producer_id=producer.producer_id + 10_000)
        producer.add(version, asked, note="empty", verify_only=True, transactional_id="")
        producer.end(4, True)
        producer.settle()
        producer.add(version, asked, note="after", verify_only=True)
        producer.describe()


@scenario
def offsets_join(broker: Exchange) -> None:
    """The partition of a group's offsets joins the transaction."""
    group = broker.name("group")
    broker.coordinator(group)
    for version in versions("AddOffsetsToTxn"):
        producer = Producer(broker, f"id{version}").begin()
        ask = lambda note="", version=version, producer=producer, **changed: broker.ask(  # noqa: E731
            "AddOffsetsToTxn", version, note=note, **({"group_id": group} | producer.identity | changed)
        )
        ask()
        ask("again")
        ask("empty group", group_id="")
        ask("empty id", transactional_id="")
        ask("other epoch", producer_epoch=7)
        ask("other id", producer_id=producer.producer_id + 10_000)
        producer.end(4, True)
        producer.settle()


@scenario
def ends(broker: Exchange) -> None:
    """A transaction ends in every version; from 5 on with a higher epoch. The same may be asked again, not another."""
    name = broker.topic(partitions=2, **KEPT)
    for version in versions("EndTxn"):
        for commit in (True, False):
            producer = Producer(broker, f"id{version}{commit}").begin()
            producer.end(version, True, "before it begins")
            before = producer.identity
            producer.add(3, partitions(name, 0, 1))
            producer.end(version, commit, "other epoch", producer_epoch=9)
            producer.end(version, commit, "other id", producer_id=producer.producer_id + 10_000)
            producer.end(version, commit)
            producer.settle()
            producer.describe()
            producer.end(version, commit, "repeated", **before)
            producer.end(version, not commit, "changed", **before)
            producer.end(version, commit, "again")
            producer.settle()
            producer.describe()
            producer.add(3, partitions(name, 1), note="the next one")
            producer.end(version, not commit, "the next one")
            producer.settle()
            producer.describe()
    broker.ask("EndTxn", 5, note="empty id", transactional_id="", producer_id=1, producer_epoch=0, committed=True)
    other = Producer(broker, "unknown")
    other.end(5, True, "unknown id")


@scenario
def aborts_of_nothing(broker: Exchange) -> None:
    """From version 5 on what was not begun can be aborted and not committed (KIP-890)."""
    producer = Producer(broker).begin()
    for _ in range(2):
        old = producer.identity
        for commit in (True, False):
            producer.end(5, commit)
            producer.settle()
        producer.end(5, False, "repeated", **old)
        producer.end(5, True, "repeated", **old)
        producer.describe()
    producer.end(4, False, "as an old client")
    producer.end(4, True, "as an old client")


@scenario
def fencing(broker: Exchange) -> None:
    """A second producer of the id has the open transaction aborted, and then fences the first."""
    name = broker.topic(**KEPT)
    for version in (1, 3, 4, 5):
        producer = Producer(broker, f"id{version}").begin()
        producer.add(3, partitions(name, 0))
        old = producer.identity
        producer.init(version, "while one is open")
        producer.settle()
        producer.describe("aborted")
        producer.init(version, "afterwards")
        for end_version in (1, 4, 5):
            producer.end(end_version, True, "by the first", **old)
        for add_version in (1, 3, 4):
            producer.add(add_version, partitions(name, 0), note="by the first", **old)


@configured_scenario
def transaction_timeout(broker: Exchange) -> None:
    """An open transaction is aborted after its timeout, and its producer is fenced."""
    name = broker.topic(**KEPT)
    producer = Producer(broker).begin(TIMEOUT_MS)
    producer.add(3, partitions(name, 0))
    producer.describe("open")
    broker.until(
        lambda: broker.quietly("DescribeTransactions", 0, transactional_ids=[producer.id]),
        lambda answer: answer.transaction_states[0].transaction_state == "CompleteAbort",
    )
    producer.describe("aborted")
    for version in (1, 4, 5):
        producer.end(version, True, "too late")
    producer.add(3, partitions(name, 0), note="too late")
    producer.init(5, "anew")


def within(producer: Producer, sequence: int = 0) -> bytearray:
    """A batch of the producer's transaction."""
    return batch_of_now(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        is_transactional=True,
    )


@scenario
def whole_transactions(broker: Exchange) -> None:
    """Committed and aborted transactions of both transaction versions, as readers see them."""
    name = broker.topic(**KEPT)
    topic_id = broker.topic_id(name)
    producer = Producer(broker).begin()
    for produce_version, end_version in ((11, 4), (12, 5)):
        for commit in (True, False):
            if produce_version == 11:
                producer.begin()
                producer.add(3, partitions(name, 0))
            produce(broker, produce_version, to(name, (0, within(producer))), transactional_id=producer.id)
            producer.describe("open")
            look_up(broker, 7, looked_up(name, (0, -1)), note="open", isolation_level=1)
            fetch(broker, 12, from_topic(name, topic_id, row(0, 0)), note="open", isolation_level=1)
            producer.end(end_version, commit)
            producer.settle()
            look_up(broker, 7, looked_up(name, (0, -1)), note="ended", isolation_level=1)
            fetch(broker, 12, from_topic(name, topic_id, row(0, 0)), note="ended", isolation_level=1)
            producer.describe("ended")


@scenario
def listed_transactions(broker: Exchange) -> None:
    """ListTransactions filters by state, producer, duration and pattern."""
    name = broker.topic(**KEPT)
    producers = [Producer(broker, kind).begin() for kind in ("empty", "open", "committed", "aborted")]
    for producer in producers[1:]:
        producer.add(3, partitions(name, 0))
    producers[2].end(4, True)
    producers[3].end(4, False)
    for producer in producers[2:]:
        producer.settle()
    own = f"{broker.prefix}.*"
    filters: dict[str, dict[str, Any]] = {
        "all": {},
        **{f"state {state}": {"state_filters": [state]} for state in ("Empty", "Ongoing", "CompleteCommit", "Dead")},
        "two states": {"state_filters": ["Ongoing", "CompleteAbort", "no state"]},
        "producers": {"producer_id_filters": [producers[1].producer_id, producers[3].producer_id, 2**60]},
        "producer and state": {"producer_id_filters": [producers[1].producer_id], "state_filters": ["Empty"]},
        "long": {"duration_filter": 3_600_000},
        "short": {"duration_filter": 0},
        "pattern": {"transactional_id_pattern": f"{broker.prefix}.(open|empty)"},
        "part of the id": {"transactional_id_pattern": broker.prefix},
    }
    for version in versions("ListTransactions"):
        for note, fields in filters.items():
            asked = {"transactional_id_pattern": own, **fields}
            answer = broker.ask("ListTransactions", version, note=note, **asked)
            answer.transaction_states = [
                each for each in answer.transaction_states if each.transactional_id.startswith(broker.prefix)
            ]
