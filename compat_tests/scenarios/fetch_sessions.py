"""Unusual fetch sessions, and the leader hints of Fetch (KIP-227, KIP-951)."""

from __future__ import annotations

from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.fetch import fetch, filled, from_topic, row
from compat_tests.scenarios.registry import scenario


@scenario
def moved_between_names_and_ids(broker: Exchange) -> None:
    """A session uses either names or ids; a request of the other kind is an error that does not end it."""
    name, topic_id = filled(broker, batches=1)
    for first, other in ((12, 13), (13, 12), (18, 7)):
        opened = fetch(
            broker, first, from_topic(name, topic_id, row(0, 3)), session_id=0, session_epoch=0, note=f"open {other}"
        )
        session = {"session_id": opened.session_id}
        fetch(broker, other, **session, session_epoch=1, note=f"after {first}")
        fetch(broker, first, **session, session_epoch=2, note="wrong epoch")
        fetch(broker, first, **session, session_epoch=1, note=f"goes on after {other}")


@scenario
def emptied(broker: Exchange) -> None:
    """A session without partitions is closed; a request to open one without partitions opens none."""
    name, topic_id = filled(broker, partitions=2, batches=1)
    for version in (7, 12, 13, 18):
        topic = from_topic(name, topic_id, row(0, 3), row(1, 3))
        opened = fetch(broker, version, topic, session_id=0, session_epoch=0, note="open")
        session = {"session_id": opened.session_id}
        forgotten = [part("Fetch", "ForgottenTopic", topic=name, topic_id=topic_id, partitions=[0, 1, 7])]
        fetch(broker, version, **session, session_epoch=1, forgotten_topics_data=forgotten, note="all forgotten")
        fetch(broker, version, **session, session_epoch=2, note="closed")
        fetch(broker, version, session_id=0, session_epoch=0, note="for nothing")


@scenario
def added_and_forgotten_at_once(broker: Exchange) -> None:
    """A partition that a request both adds and forgets is forgotten."""
    name, topic_id = filled(broker, partitions=2, batches=1)
    for version in (11, 13):
        opened = fetch(
            broker, version, from_topic(name, topic_id, row(0, 0)), session_id=0, session_epoch=0, note="open"
        )
        session = {"session_id": opened.session_id}
        forgotten = [part("Fetch", "ForgottenTopic", topic=name, topic_id=topic_id, partitions=[1])]
        more = from_topic(name, topic_id, row(1, 0))
        fetch(broker, version, more, **session, session_epoch=1, forgotten_topics_data=forgotten, note="both")
        fetch(broker, version, more, **session, session_epoch=2, note="asked again")


@scenario
def leader_hints(broker: Exchange) -> None:
    """A replica that is not assigned or has an old epoch is told the leader and its address, from version 16 on."""
    name, topic_id = filled(broker, batches=1)
    for version in (15, 16, 17, 18):
        for replica in (-1, 5, 1):
            state = part("Fetch", "ReplicaState", replica_id=replica, replica_epoch=-1)
            topic = from_topic(name, topic_id, row(0, 0))
            fetch(broker, version, topic, replica_state=state, note=f"replica {replica}")
        for epoch in (0, 1, 9):
            fetch(
                broker,
                version,
                from_topic(name, topic_id, row(0, 0, current_leader_epoch=epoch)),
                note=f"epoch {epoch}",
            )
        topics = (from_topic(name, topic_id, row(0, 0), row(7, 0)), from_topic("", b"q" * 16, row(0, 0)))
        fetch(broker, version, *topics, replica_state=part("Fetch", "ReplicaState", replica_id=5), note="beside others")
