"""Short forms of the requests of the share coordinator."""

from __future__ import annotations

from pykafkad.wire import messages

GROUP = "g"
SHARE = 2


def prepared(world, peer):
    """A topic of two partitions, and a share coordinator that is loaded. Returns the topic's id."""
    from pykafkad.uuids import to_text

    topic_id = world.create_topic("t", 2)
    key = f"{GROUP}:{to_text(topic_id)}:0"
    request = messages.FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[key])
    for _ in range(20):
        (row,) = peer.ask(request, 6).coordinators
        if row.error_code == 0 and not world.broker.share_groups.states.is_loading:
            return topic_id
        world.turn()
    raise AssertionError(f"no coordinator: {row}")


def ask(peer, api, topic_id, rows, version=0, group=GROUP):
    """The rows of the answer for partitions of one topic."""
    request_class = getattr(messages, f"{api}Request")
    topic_class = getattr(request_class, api.replace("ShareGroupState", "State") + "Data")
    request = request_class(group_id=group, topics=[topic_class(topic_id=topic_id, partitions=rows)])
    answer = peer.ask(request, version)
    return [row for topic in answer.results for row in topic.partitions]


def begin(peer, topic_id, start_offset=5, partition=0, state_epoch=1):
    Row = messages.InitializeShareGroupStateRequest.PartitionData  # noqa: N806
    row = Row(partition=partition, state_epoch=state_epoch, start_offset=start_offset)
    return ask(peer, "InitializeShareGroupState", topic_id, [row])[0]
