"""DescribeLogDirs, versions 1 to 5 (KIP-113).

The log directory with the size of every partition in it, or of those asked for; null asks for all. Partitions that are not
here are left out, and so is the metadata log, as in Kafka. Version 2 is flexible, 3 has an error of the whole, 4 the size and
free space of the file system (KIP-827), 5 whether the directory is cordoned (KIP-1066), which it never is.

Gaps: there is one directory; of several in `log.dirs` the first is used.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

_Result = messages.DescribeLogDirsResponse.DescribeLogDirsResult
_Topic = messages.DescribeLogDirsResponse.DescribeLogDirsTopic
_Partition = messages.DescribeLogDirsResponse.DescribeLogDirsPartition


def handle(ctx: Context, request: object) -> object:
    if not ctx.allowed("Describe", "Cluster", "kafka-cluster"):
        return messages.DescribeLogDirsResponse(error_code=errors.CLUSTER_AUTHORIZATION_FAILED)
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    directory = ctx.partitions.directory
    result = _Result(log_dir=directory.absolute_path)
    try:
        result.total_bytes, result.usable_bytes = directory.disk.usage(directory.path)
        result.topics = _topics(ctx, wanted)
    except errors.StorageFailure:
        result = _Result(log_dir=directory.absolute_path, error_code=errors.KAFKA_STORAGE_ERROR)
    return messages.DescribeLogDirsResponse(results=[result])


def _topics(ctx: Context, wanted: set[tuple[str, int]] | None) -> list[object]:
    topics: dict[str, object] = {}
    for log in ctx.partitions:
        if wanted is None or (log.topic, log.partition) in wanted:
            topic = topics.get(log.topic)
            if topic is None:
                topic = topics[log.topic] = _Topic(name=log.topic)
            topic.partitions.append(_Partition(partition_index=log.partition, partition_size=log.size_bytes, offset_lag=0))
    return list(topics.values())
