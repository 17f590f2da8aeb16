"""Short forms of the requests of the data path."""

from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch

NOW_MS = 1_700_000_000_000


def batch(*values, timestamp_ms=NOW_MS, **keywords):
    """One batch with these values and no keys."""
    return bytes(build_batch([(None, value) for value in values], timestamp_ms=timestamp_ms, **keywords))


def produce(topic, partitions, *, acks=-1, topic_id=bytes(16), transactional_id=None):
    """`partitions` maps the index to the bytes of its records."""
    request = messages.ProduceRequest
    return request(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            request.TopicProduceData(
                name=topic,
                topic_id=topic_id,
                partition_data=[
                    request.PartitionProduceData(index=index, records=records) for index, records in partitions.items()
                ],
            )
        ],
    )


def fetch(
    topic,
    offsets,
    *,
    max_wait_ms=0,
    min_bytes=1,
    max_bytes=1 << 20,
    partition_max_bytes=1 << 20,
    topic_id=bytes(16),
    forget=(),
    **keywords,
):
    """`offsets` maps the partition to the fetch offset, or to keywords of its FetchPartition."""
    request = messages.FetchRequest
    partitions = []
    for index, asked in offsets.items():
        asked = {"fetch_offset": asked} if isinstance(asked, int) else asked
        partitions.append(
            request.FetchPartition(partition=index, **{"partition_max_bytes": partition_max_bytes, **asked})
        )
    return request(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[request.FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)] if partitions else [],
        forgotten_topics_data=[request.ForgottenTopic(topic=topic, topic_id=topic_id, partitions=list(forget))]
        if forget
        else [],
        **keywords,
    )


def watch_fast_paths(world, allowed, monkeypatch):
    """A list that gets, for each frame that a fast path looks at, whether the fast path served it. The fast paths are
    on only where `allowed`."""
    served = []
    known = {}

    def watch(serve):
        def look(connection, view, start, end, version, correlation_id):
            answer = allowed and serve(connection, view, start, end, version, correlation_id)
            # A frame that came alone and was declined is looked at again with the frames behind it.
            at = known.setdefault((connection, correlation_id), len(served))
            served[at:] = [answer]
            return answer

        return look

    broker = world.broker
    for word, serve in list(broker.fast_paths.items()):
        monkeypatch.setitem(broker.fast_paths, word, watch(serve))
    return served
