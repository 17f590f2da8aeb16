"""Transactions in partitions and groups: batches, markers, committed offsets, and what readers see of them."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios import consumer_groups
from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.fetch import fetch, from_topic, row
from compat_tests.scenarios.groups import Group
from compat_tests.scenarios.offset_lookup import look_up, looked_up
from compat_tests.scenarios.offsets import fetches
from compat_tests.scenarios.produce import KEPT, batch_of_now, produce, to
from compat_tests.scenarios.registry import scenario

TRANSACTION = 1
BEFORE_IMPLICIT = 11
"""The last version of Produce that expects AddPartitionsToTxn before it."""
RETRIABLE = {14, 15, 16, 51}
# No broker gives out so high an id. A low one may be that of a producer whose answers are compared.
NOBODY = 1 << 40


class Producer:
    """A transactional producer; its requests to the coordinator are not recorded."""

    def __init__(self, broker: Exchange, kind: str = "tx") -> None:
        self.broker = broker
        self.id = broker.name(kind)
        broker.until(
            lambda: broker.quietly("FindCoordinator", 4, key_type=TRANSACTION, coordinator_keys=[self.id]),
            lambda answer: answer.coordinators[0].error_code == 0,
        )
        answer = self.again(
            "InitProducerId", 4, transactional_id=self.id, transaction_timeout_ms=60_000, producer_id=-1,
            producer_epoch=-1,
        )  # fmt: skip
        assert answer.error_code == 0, answer
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequence: dict[int, int] = {}

    def again(self, api: str, version: int, **fields: Any) -> Any:
        """Send until the coordinator serves the producer."""
        return self.broker.until(
            lambda: self.broker.quietly(api, version, **fields), lambda answer: answer.error_code not in RETRIABLE
        )

    @property
    def ids(self) -> dict[str, Any]:
        return {"transactional_id": self.id, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def add(self, topic: str, *partitions: int) -> None:
        """Add partitions to the transaction, as clients do before Produce 12."""
        rows = [part("AddPartitionsToTxn", "AddPartitionsToTxnTopic", name=topic, partitions=list(partitions))]
        fields = {f"v3_and_below_{name}": value for name, value in self.ids.items()}

        def codes(answer: Any) -> set[int]:
            return {each.partition_error_code for each in answer.results_by_topic_v3_and_below[0].results_by_partition}

        answer = self.broker.until(
            lambda: self.broker.quietly("AddPartitionsToTxn", 3, v3_and_below_topics=rows, **fields),
            lambda answer: not codes(answer) & RETRIABLE,
        )
        assert codes(answer) == {0}, answer

    def add_group(self, group: str) -> None:
        """Add a group's offsets to the transaction, as clients do before TxnOffsetCommit 5."""
        answer = self.again("AddOffsetsToTxn", 3, group_id=group, **self.ids)
        assert answer.error_code == 0, answer

    def batch(self, partition: int = 0, count: int = 1, **fields: Any) -> bytearray:
        """The producer's next batch for a partition."""
        sequence = self.sequence.get(partition, 0)
        self.sequence[partition] = sequence + count
        more = {"producer_id": self.producer_id, "producer_epoch": self.epoch, "base_sequence": sequence}
        return batch_of_now([(None, b"%d" % each) for each in range(count)], is_transactional=True, **more | fields)

    def send(self, version: int, topic: str, *partitions: int, note: str = "") -> Any:
        """Record a Produce with the next batch of each partition."""
        rows = [(partition, self.batch(partition)) for partition in partitions]
        return produce(self.broker, version, to(topic, *rows), note=note, transactional_id=self.id)

    def end(self, *, commit: bool = True, version: int = 3) -> None:
        """End the transaction; from version 5 a new epoch follows."""
        answer = self.again("EndTxn", version, committed=commit, **self.ids)
        assert answer.error_code == 0, answer
        if version >= 5:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequence.clear()
        self.broker.until(
            lambda: self.broker.quietly("DescribeTransactions", 0, transactional_ids=[self.id]),
            lambda answer: answer.transaction_states[0].transaction_state.startswith("Complete"),
        )


def read(broker: Exchange, topic: str, note: str) -> None:
    """Record what readers see of partition 0: read_committed and read_uncommitted, the ends, the producers."""
    topic_id = broker.topic_id(topic)
    for version in (4, 11, 12, 13, 17):
        for level in (0, 1):
            fetch(
                broker, version, from_topic(topic, topic_id, row(0, 0)), isolation_level=level,
                note=f"{note}, level {level}",
            )  # fmt: skip
    for level in (0, 1):
        look_up(broker, 7, looked_up(topic, (0, -1), (0, -2)), note=f"{note}, level {level}", isolation_level=level)
    asked = [part("DescribeProducers", "TopicRequest", name=topic, partition_indexes=[0])]
    broker.ask("DescribeProducers", 0, note=note, topics=asked)


@scenario
def verified_batches(broker: Exchange) -> None:
    """Before Produce 12 the coordinator must know the partition; the first batch of each transaction is verified."""
    for version in (3, 9, 10, 11):
        topic = broker.topic(f"topic{version}", 2, **KEPT)
        producer = Producer(broker, f"tx{version}")
        produce(broker, version, to(topic, (0, producer.batch())), note="not added", transactional_id=producer.id)
        producer.sequence.clear()
        producer.add(topic, 0)
        for note in ("added", "again"):
            produce(broker, version, to(topic, (0, producer.batch()), (1, producer.batch(1))), note=note,
                    transactional_id=producer.id)  # fmt: skip
            producer.sequence.pop(1)
        read(broker, topic, "open")
        producer.end(commit=version != 9)
        read(broker, topic, "ended")
        producer.send(version, topic, 0, note="after the end")
        producer.sequence[0] -= 1
        producer.add(topic, 0)
        producer.send(version, topic, 0, note="next transaction")
        producer.end(commit=version == 9)
        read(broker, topic, "ended twice")


@scenario
def implicit_batches(broker: Exchange) -> None:
    """From Produce 12 the partition is added by the batch (KIP-890), and each end of a transaction raises the epoch."""
    topic = broker.topic("topic", 3, **KEPT)
    topic_id = broker.topic_id(topic)
    producer = Producer(broker)
    for version, commit in ((12, True), (13, False), (12, False)):
        name = {"topic": topic} if version == 12 else {"topic": "", "topic_id": topic_id}
        rows = [(partition, producer.batch(partition, 2)) for partition in (0, 1)]
        produce(broker, version, to(name.pop("topic"), *rows, **name), note="first", transactional_id=producer.id)
        producer.send(12, topic, 0, 2, note="more")
        read(broker, topic, "open")
        old = producer.batch()
        producer.end(commit=commit, version=5)
        read(broker, topic, "ended")
        produce(broker, 12, to(topic, (0, old)), note="the old epoch", transactional_id=producer.id)
        late = producer.batch(0, base_sequence=1)
        produce(broker, 12, to(topic, (2, late)), note="not from 0", transactional_id=producer.id)
        producer.sequence.clear()


@scenario
def wrong_producers(broker: Exchange) -> None:
    """Other ids, epochs and transactional ids; batches without a transaction beside those of one."""
    topic = broker.topic("topic", 4, **KEPT)
    for version in (9, 11, 12):
        producer, other = Producer(broker, f"a{version}"), Producer(broker, f"b{version}")
        unknown = broker.name("nobody")
        plain = batch_of_now([(None, b"plain")])
        cases: dict[str, tuple[Any, str | None]] = {
            "no transactional id": (to(topic, (0, producer.batch())), None),
            "and a plain one": (to(topic, (0, producer.batch())), None),
            "unknown transactional id": (to(topic, (0, producer.batch())), unknown),
            "empty transactional id": (to(topic, (0, producer.batch())), ""),
            "of another": (to(topic, (0, producer.batch())), other.id),
            "two producers": (to(topic, (0, producer.batch()), (1, other.batch())), producer.id),
            "a later epoch": (to(topic, (0, producer.batch(producer_epoch=producer.epoch + 1))), producer.id),
            "unknown partition": (to(topic, (9, producer.batch())), producer.id),
            "no producer": (to(topic, (0, producer.batch(producer_id=-1, producer_epoch=-1))), producer.id),
            "plain in a transaction": (to(topic, (3, plain)), producer.id),
        }
        for note, (data, transactional_id) in cases.items():
            produce(broker, version, data, note=note, transactional_id=transactional_id)
        producer.sequence.clear()
        if version <= BEFORE_IMPLICIT:
            producer.add(topic, 0)
        producer.send(version, topic, 0, note="right")
        ids = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, "base_sequence": 1}
        produce(broker, version, to(topic, (0, batch_of_now([(None, b"x")], **ids))), note="not of the transaction",
                transactional_id=producer.id)  # fmt: skip
        produce(broker, version, to(topic, (0, batch_of_now([(None, b"x")], is_transactional=True, **ids))),
                note="no transactional id, ongoing")  # fmt: skip
        later = ids | {"producer_epoch": producer.epoch + 1, "base_sequence": 0}
        produce(broker, version, to(topic, (0, batch_of_now([(None, b"x")], is_transactional=True, **later))),
                note="a later epoch, ongoing", transactional_id=producer.id)  # fmt: skip
        producer.end(commit=False, version=5 if version == 12 else 3)


def markers(broker: Exchange, version: int, note: str, *rows: Any) -> Any:
    """Record a WriteTxnMarkers request."""
    return broker.ask("WriteTxnMarkers", version, note=note, markers=list(rows))


def marker(producer_id: int, epoch: int, *places: tuple[str, int], **fields: Any) -> Any:
    """The end of one transaction in the partitions `places`."""
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    rows = [
        part("WriteTxnMarkers", "WritableTxnMarkerTopic", name=name, partition_indexes=indexes)
        for name, indexes in topics.items()
    ]
    more = {"coordinator_epoch": 0, "transaction_result": True} | fields
    return part("WriteTxnMarkers", "WritableTxnMarker", producer_id=producer_id, producer_epoch=epoch, topics=rows,
                **more)  # fmt: skip


@scenario
def markers_of_administrators(broker: Exchange) -> None:
    """A marker ends the transaction of its producer; old epochs of producers and coordinators are refused."""
    for version in versions("WriteTxnMarkers"):
        for transaction_version in (0, 2) if version == 2 else (0,):
            kind = f"{version}.{transaction_version}"
            of = {"transaction_version": transaction_version}
            topic = broker.topic(f"topic{kind}", 3, **KEPT)
            markers(broker, version, "nothing")
            markers(broker, version, "no partitions", marker(NOBODY, 0))
            markers(
                broker, version, "unknown", marker(NOBODY, 0, (topic, 9), (broker.name("none"), 0), (topic, 1), **of)
            )
            markers(
                broker,
                version,
                "no transaction",
                marker(NOBODY + 1, 3, (topic, 1), **of),
                marker(NOBODY + 1, 3, (topic, 2), **of),
            )
            producer = Producer(broker, f"tx{kind}")
            producer.add(topic, 0)
            producer.send(11, topic, 0, note="begin")
            ended, epoch = producer.producer_id, producer.epoch
            markers(broker, version, "an older epoch", marker(ended, epoch - 1, (topic, 0), **of))
            markers(broker, version, "the same epoch", marker(ended, epoch, (topic, 0), coordinator_epoch=3, **of))
            read(broker, topic, "the same epoch")
            abort = {"transaction_result": False, "coordinator_epoch": 3} | of
            markers(broker, version, "the next epoch", marker(ended, epoch + 1, (topic, 0), **abort))
            markers(broker, version, "once more", marker(ended, epoch + 1, (topic, 0), **abort))
            read(broker, topic, "the next epoch")
            markers(broker, version, "an older coordinator", marker(ended, epoch + 1, (topic, 0), **of))
            producer.send(11, topic, 0, note="a fenced producer")


def offsets(topic: str, *rows: tuple[int, int], **fields: Any) -> Any:
    """One topic of a TxnOffsetCommit with `(partition, offset)` rows."""
    partitions = [
        part("TxnOffsetCommit", "TxnOffsetCommitRequestPartition", partition_index=index, committed_offset=offset,
             **fields)
        for index, offset in rows
    ]  # fmt: skip
    return part("TxnOffsetCommit", "TxnOffsetCommitRequestTopic", name=topic, partitions=partitions)


def stable(broker: Exchange, group: str, topic: str, note: str) -> None:
    """Record the offsets of a group, stable ones and others."""
    topic_id = broker.topic_id(topic)
    for version in (5, 7, 8, 9, 10):
        for required in (False, True) if version >= 7 else (False,):
            more = {"note": f"{note}, stable {required}", "require_stable": required}
            broker.ask("OffsetFetch", version, **more, **fetches(group, version, (topic, topic_id, [0, 1, 2])))
            broker.ask("OffsetFetch", version, **more | {"note": f"{more['note']}, all"},
                       **fetches(group, version, None))  # fmt: skip


@scenario
def offsets_in_transactions(broker: Exchange) -> None:
    """Offsets take effect with the commit; until then stable readers are told to wait (KIP-447)."""
    topic = broker.topic("topic", 3)
    for version in versions("TxnOffsetCommit"):
        group = broker.name(f"group{version}")
        broker.coordinator(group)
        producer = Producer(broker, f"tx{version}")
        for commit in (False, True):
            note = "commit" if commit else "abort"
            fields = {"group_id": group, "note": note, "generation_id": -1, "member_id": ""}
            end = 5 if version >= 5 else 3
            if version < 5:
                broker.ask("TxnOffsetCommit", version, **fields | {"note": "not added"}, **producer.ids,
                           topics=[offsets(topic, (0, 1))])  # fmt: skip
                producer.add_group(group)
            wanted = offsets(topic, (0, 10 + version), (1, 20), committed_metadata="note", committed_leader_epoch=3)
            broker.ask("TxnOffsetCommit", version, **fields, **producer.ids, topics=[wanted])
            stable(broker, group, topic, f"open, {note}")
            broker.ask("DescribeGroups", 5, note=note, groups=[group])
            producer.end(commit=commit, version=end)
            broker.until(
                lambda group=group: broker.quietly(
                    "OffsetFetch", 9, require_stable=True, **fetches(group, 9, (topic, b"", [0]))
                ),
                lambda answer: answer.groups[0].topics[0].partitions[0].error_code == 0,
            )
            stable(broker, group, topic, note)


@scenario
def refused_offsets(broker: Exchange) -> None:
    """Unknown topics, groups, members and generations, wrong producers; a plain commit meanwhile is newer."""
    topic = broker.topic("topic", 2)
    for version in versions("TxnOffsetCommit"):
        group = Group(broker, f"group{version}")
        producer, other = Producer(broker, f"tx{version}"), Producer(broker, f"other{version}")
        member = group.alone()
        own = {"group_id": group.name, "generation_id": group.generation, "member_id": member}
        good = offsets(topic, (0, 1))
        if version < 5:
            producer.add_group(group.name)
            producer.add_group("")

        def ask(note: str, *topics: Any, producer: Producer = producer, version: int = version, **fields: Any) -> None:
            broker.ask("TxnOffsetCommit", version, note=note, topics=list(topics), **producer.ids | fields)

        ask("unknown", offsets(broker.name("none"), (0, 1), (1, 1)), offsets(topic, (0, 1), (7, 1)), **own)
        ask("only unknown", offsets(broker.name("none"), (0, 1)), **own)
        ask("nothing", **own)
        ask("long", offsets(topic, (0, 1), committed_metadata="x" * 4097), offsets(topic, (1, 1)), **own)
        ask("another member", good, **own | {"member_id": "other"})
        ask("another generation", good, **own | {"generation_id": group.generation + 1})
        ask("no generation", good, **own | {"generation_id": -1})
        ask("no member", good, **own | {"member_id": ""})
        ask("an instance", good, **own | {"group_instance_id": "i"})
        ask("no metadata", good, group_id=group.name, generation_id=-1, member_id="")
        ask("no group", good, **own | {"group_id": ""})
        ask("not in the transaction", good, producer=other, **own)
        ask("a later epoch", good, **own, producer_epoch=producer.epoch + 1)
        ask("another producer", good, **own, producer_id=other.producer_id)
        ask("unknown id", good, **own, transactional_id=broker.name("nobody"))
        ask("empty id", good, **own, transactional_id="")
        producer.end(version=5 if version >= 5 else 3)
        unknown = broker.name(f"unknown{version}")
        broker.coordinator(unknown)
        if version < 5:
            producer.add_group(unknown)
        ask("unknown group", good, group_id=unknown, generation_id=0, member_id="m")
        ask("unknown group, simple", good, group_id=unknown, generation_id=-1, member_id="")
        broker.ask("DeleteGroups", 2, note="with pending offsets", groups_names=[unknown])
        producer.end(version=5 if version >= 5 else 3)
        stable(broker, unknown, topic, "deleted")


@scenario
def offsets_of_consumer_group_members(broker: Exchange) -> None:
    """Members of groups of KIP-848 commit in a transaction: with their epoch, older ones, and none (KIP-1251)."""
    for version in versions("TxnOffsetCommit"):
        group = consumer_groups.Group(broker, f"group{version}", 2)
        member = group.member()
        member.beat(quietly=True)
        group.settle(member)
        old = member.epoch
        more = broker.topic(f"more{version}", 1)
        broker.in_effect()
        member.beat(quietly=True, subscribed_topic_names=[group.topic, more])
        group.settle(member)
        assert member.epoch == old + 1
        producer = Producer(broker, f"tx{version}")
        own = {"group_id": group.name, "generation_id": member.epoch, "member_id": member.member_id}
        if version < 5:
            producer.add_group(group.name)

        def ask(note: str, *topics: Any, producer: Producer = producer, version: int = version, **fields: Any) -> None:
            broker.ask("TxnOffsetCommit", version, note=note, topics=list(topics), **producer.ids | fields)

        known, news = offsets(group.topic, (0, 1), (1, 1)), offsets(more, (0, 1))
        ask("no metadata", known, group_id=group.name, generation_id=-1, member_id="")
        if version >= 3:
            ask("own epoch", known, news, **own)
            ask("older epoch", known, **own | {"generation_id": old})
            ask("older epoch, new topic", known, news, **own | {"generation_id": old})
            ask("older epoch, long metadata", offsets(more, (0, 1), committed_metadata="x" * 4097),
                **own | {"generation_id": old})  # fmt: skip
            ask("later epoch", known, **own | {"generation_id": member.epoch + 1})
            ask("no epoch", known, **own | {"generation_id": -1})
            ask("another member", known, **own | {"member_id": "other"})
            ask("an instance", known, group_id=group.name, generation_id=-1, member_id="", group_instance_id="i")
        producer.end(version=5 if version >= 5 else 3)
