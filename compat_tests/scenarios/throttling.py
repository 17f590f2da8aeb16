"""Client quotas in force: who is throttled, what the answer says, and that the connection is muted.

Each scenario has client ids of its own, so that nobody else is throttled. Of a throttle time only its presence is
compared. Where a muted connection is looked at, the throttle time is a minute and more, so that no pause of the machine
can end it."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import CLOSED, Connection, Exchange, part, request
from compat_tests.scenarios.produce import KEPT, batch, to
from compat_tests.scenarios.quotas import CONNECTIONS, CONSUMER, MUTATION, PRODUCER, REQUEST, entry
from compat_tests.scenarios.registry import scenario
from compat_tests.scenarios.share_groups import Group, Member

MUTED_LOOK_SECONDS = 0.3
MOST_CONNECTIONS = 300


def client(broker: Exchange, kind: str, **quotas: float) -> Connection:
    """A connection with a client id of its own, which has these quotas."""
    connection = broker.connect()
    connection.client_id = broker.name(kind)
    set_quotas(broker, connection, **quotas)
    return connection


def set_quotas(broker: Exchange, connection: Connection, **quotas: float | None) -> None:
    """Change quotas of the connection's client id, and wait until they are in force."""
    changes = [(key, value) if value is not None else (key,) for key, value in quotas.items()]
    answer = broker.quietly("AlterClientQuotas", 1, entries=[entry({"client-id": connection.client_id}, *changes)])
    assert answer.entries[0].error_code == 0, answer
    broker.in_effect()


def told(broker: Exchange, label: str, answer: Any, version: int) -> Any:
    """Add an answer to the transcript, with the presence of its throttle time."""
    answer.throttle_time_ms = min(answer.throttle_time_ms, 1)
    broker.record(label, answer, version)
    return answer


def is_muted(broker: Exchange, connection: Connection, label: str) -> None:
    """Add to the transcript whether one more request is left unanswered."""
    connection.send("ApiVersions", 0, request("ApiVersions", 0))
    broker.record(label, f"muted: {connection.is_idle(MUTED_LOOK_SECONDS)}")


def large(size: int) -> bytearray:
    """A batch of about that size."""
    return batch([(None, b"x" * size)])


def produce(broker: Exchange, connection: Connection, topic: str, size: int, version: int) -> Any:
    """Append a batch of about that size."""
    topics = [to(topic, (0, large(size)))]
    return broker.quietly("Produce", version, on=connection, acks=-1, timeout_ms=10_000, topic_data=topics)


def fetch(broker: Exchange, connection: Connection, topic: str | None, version: int, **fields: Any) -> Any:
    """Fetch the topic from its start."""
    rows = [part("Fetch", "FetchPartition", partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    topics = [part("Fetch", "FetchTopic", topic=topic, partitions=rows)] if topic else []
    wanted = {"session_epoch": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **fields}
    return broker.quietly("Fetch", version, on=connection, replica_id=-1, topics=topics, **wanted)


@scenario
def producers(broker: Exchange) -> None:
    """A batch over the quota is appended and answered at once, and the connection is muted; one within it is not
    throttled. A quota that is removed throttles nobody any more."""
    topic = broker.topic(**KEPT)
    for version in (3, 8, 9, 12):
        connection = client(broker, f"producer-{version}", **{PRODUCER: 1000.0})
        told(broker, f"within {version}", produce(broker, connection, topic, 1000, version), version)
        told(broker, f"over {version}", produce(broker, connection, topic, 100_000, version), version)
        is_muted(broker, connection, f"producer {version}")
        other = broker.connect()
        other.client_id = connection.client_id
        told(broker, f"another connection {version}", produce(broker, other, topic, 100_000, version), version)
        set_quotas(broker, connection, **{PRODUCER: None})
        free = broker.connect()
        free.client_id = connection.client_id
        told(broker, f"without {version}", produce(broker, free, topic, 1000, version), version)


@scenario
def unanswered_producers(broker: Exchange) -> None:
    """With acks=0 the connection is muted, too."""
    topic = broker.topic(**KEPT)
    connection = client(broker, "producer", **{PRODUCER: 1000.0})
    topics = [to(topic, (0, large(100_000)))]
    connection.send("Produce", 8, request("Produce", 8, acks=0, timeout_ms=10_000, topic_data=topics))
    connection.forget_last()
    is_muted(broker, connection, "acks=0")
    set_quotas(broker, connection, **{PRODUCER: None})


@scenario
def consumers(broker: Exchange) -> None:
    """A throttled Fetch has no partitions and begins no session; one of a session keeps it, and the news come later."""
    topic = broker.topic(**KEPT)
    broker.produce(topic, 0, bytes(large(100_000)))
    for version in (4, 6, 11, 12):
        connection = client(broker, f"consumer-{version}", **{CONSUMER: 1000.0})
        told(broker, f"over {version}", fetch(broker, connection, topic, version), version)
        is_muted(broker, connection, f"consumer {version}")
        if version >= 7:
            session = broker.connect()
            session.client_id = connection.client_id
            told(broker, f"new session {version}", fetch(broker, session, topic, version, session_epoch=0), version)
        set_quotas(broker, connection, **{CONSUMER: None})
    connection = client(broker, "session", **{CONSUMER: 1000.0})
    set_quotas(broker, connection, **{CONSUMER: None})
    empty = broker.topic("empty", **KEPT)
    first = told(broker, "session", fetch(broker, connection, empty, 11, session_epoch=0), 11)
    broker.produce(empty, 0, bytes(large(20_000)))
    # 20 KB are too much for this quota whether ten or eleven windows of a second count, and a mute is below 2 s.
    set_quotas(broker, connection, **{CONSUMER: 1700.0})
    fields = {"session_id": first.session_id, "session_epoch": 1}
    told(broker, "throttled in a session", fetch(broker, connection, None, 11, **fields), 11)
    set_quotas(broker, connection, **{CONSUMER: None})
    fields["session_epoch"] = 2
    told(broker, "news after that", fetch(broker, connection, None, 11, **fields), 11)


@scenario
def share_consumers(broker: Exchange) -> None:
    """A throttled ShareFetch has no records. They stay acquired: the member may release what it has never seen."""
    group = Group(broker, "throttled-share")
    broker.produce(group.topic, 0, bytes(large(20_000)))
    member = Member(group).join()
    member.connection.client_id = broker.name("share-consumer")

    def ask(label: str, epoch: int, *back: Any, wait_ms: int = 10_000) -> None:
        batches = [
            part("ShareFetch", "AcknowledgementBatch", first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in back
        ]
        row = part("ShareFetch", "FetchPartition", partition_index=0, acknowledgement_batches=batches)
        topics = [part("ShareFetch", "FetchTopic", topic_id=group.topic_id, partitions=[row])]
        answer = broker.quietly(
            "ShareFetch",
            2,
            on=member.connection,
            group_id=group.name,
            member_id=member.member_id,
            share_session_epoch=epoch,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=100,
            batch_size=100,
            topics=topics if back or not epoch else [],
            forgotten_topics_data=[],
        )
        told(broker, label, answer, 2)

    # As for consumers: too much for the quota, and a mute is below 2 s.
    set_quotas(broker, member.connection, **{CONSUMER: 1700.0})
    ask("what fits comes", 0)
    ask("what does not is acquired, and does not come", 1, (0, 5, [1]))
    set_quotas(broker, member.connection, **{CONSUMER: None})
    ask("it is nobody else's to get", 2, wait_ms=300)
    ask("until it is released", 3, (6, 6, [2]))


@scenario
def processor_time(broker: Exchange) -> None:
    """Nobody is so fast as to be within such a quota; the time is a window at most, and the connection is served
    again."""
    connection = client(broker, "busy", **{REQUEST: 0.000_001})
    for version in (3, 12):
        answer = broker.quietly("Metadata", version, on=connection, topics=[], allow_auto_topic_creation=False)
        time_ms = answer.throttle_time_ms
        broker.record(f"Metadata {version}", f"throttled: {time_ms > 0}, for a window at most: {time_ms <= 1000}")
    set_quotas(broker, connection, **{REQUEST: None})


@scenario
def changes_of_topics(broker: Exchange) -> None:
    """A bucket that is not empty lets one topic through, whatever its size. Strict versions refuse those behind it;
    others change them, and throttle."""
    for api, lenient, strict in (("CreateTopics", 5, 7), ("CreatePartitions", 2, 3), ("DeleteTopics", 4, 5)):
        for version in (lenient, strict):
            kinds = [f"{api}-{version}-{number}" for number in range(3)]
            names = [broker.name(kind) if api == "CreateTopics" else broker.topic(kind) for kind in kinds]
            connection = client(broker, f"{api}-{version}", **{MUTATION: 0.01})
            fields: dict[str, Any] = {"topic_names": names}
            if api == "CreateTopics":
                fields = {"topics": [part(api, "CreatableTopic", name=each, num_partitions=1) for each in names]}
                for each in fields["topics"]:
                    each.replication_factor = 1
            elif api == "CreatePartitions":
                fields = {
                    "topics": [
                        part(api, "CreatePartitionsTopic", name=each, count=2, assignments=None) for each in names
                    ]
                }
            answer = broker.quietly(api, version, on=connection, timeout_ms=60_000, **fields)
            rows = {"CreatePartitions": "results", "DeleteTopics": "responses"}.get(api)
            for row in getattr(answer, rows) if rows else ():
                # Kafka takes them in no particular order.
                row.name = ""
            told(broker, f"{api} {version}", answer, version)
            is_muted(broker, connection, f"{api} {version}")
            set_quotas(broker, connection, **{MUTATION: None})


@scenario
def addresses(broker: Exchange) -> None:
    """A connection that its address opens above the quota gets no answer, and is closed. The first ones are within it;
    which one is not depends on how fast they come."""
    # An address of the loopback that nobody else comes from: the end of the prefix is random.
    address = ".".join(["127", *(str(int(broker.prefix[at:][:2], 16) % 254 + 1) for at in (-6, -4, -2))])
    answer = broker.quietly("AlterClientQuotas", 1, entries=[entry({"ip": address}, (CONNECTIONS, 1.0))])
    assert answer.entries[0].error_code == 0, answer
    broker.in_effect()
    is_closed, count = False, 0
    while not is_closed and count < MOST_CONNECTIONS:
        count += 1
        connection = broker.connect(address)
        connection.send("ApiVersions", 0, request("ApiVersions", 0))
        is_closed = connection.receive() == CLOSED
    broker.record("a connection too many", f"closed: {is_closed}, as the first: {count == 1}")
    broker.quietly("AlterClientQuotas", 1, entries=[entry({"ip": address}, (CONNECTIONS,))])
    broker.in_effect()
    last = broker.connect(address)
    last.send("ApiVersions", 0, request("ApiVersions", 0))
    broker.record("without a quota", f"closed: {last.receive() == CLOSED}")
