"""DescribeLogDirs, versions 1 to 5 (KIP-113).

Each directory of `log.dirs` with the size of its partitions: all of them (null) or those of the request. Partitions
without a replica here and the metadata log are left out, as in Kafka. A replica that moves is listed in both
directories, in the new one as a future key with its lag in offsets. A directory that failed is KAFKA_STORAGE_ERROR.
Version 2 is flexible, 3 has an error for the whole answer, 4 the size and free space of the file system (KIP-827), 5
whether the directory is cordoned (KIP-1066).

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from pykafkad.handlers.context import Context
    from pykafkad.log.directory import LogDirectory
    from pykafkad.log.partition_log import PartitionLog

(_DESCRIBE_CLUSTER,) = RULES["DescribeLogDirs"]
_Result = messages.DescribeLogDirsResponse.DescribeLogDirsResult
_Topic = messages.DescribeLogDirsResponse.DescribeLogDirsTopic
_Partition = messages.DescribeLogDirsResponse.DescribeLogDirsPartition


def handle(ctx: Context, request: messages.DescribeLogDirsRequest) -> Generator[None, None, object]:
    """One result for each configured directory."""
    if not may(ctx, _DESCRIBE_CLUSTER):
        return messages.DescribeLogDirsResponse(error_code=_DESCRIBE_CLUSTER.error)
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    directories = ctx.directories
    results = []
    for path in directories.paths:
        directory = next((each for each in directories.online if each.path == path), None)
        absolute = directories.metadata.disk.absolute_path(path)
        result = _Result(log_dir=absolute, error_code=errors.KAFKA_STORAGE_ERROR)
        if directory is not None:
            try:
                total, usable = directory.disk.usage(path)
                result = _Result(
                    log_dir=absolute,
                    topics=(yield from _topics(ctx, directory, wanted)),
                    total_bytes=total,
                    usable_bytes=usable,
                    is_cordoned=directories.is_cordoned(path),
                )
            except errors.StorageFailure:
                # The row says that the directory failed. The next access for its own sake takes it offline.
                pass
        results.append(result)
    return messages.DescribeLogDirsResponse(results=results)


def _topics(
    ctx: Context, directory: LogDirectory, wanted: set[tuple[str, int]] | None
) -> Generator[None, None, list[_Topic]]:
    topics: dict[str, _Topic] = {}

    def add(log: PartitionLog, **fields: Any) -> None:
        if wanted is None or (log.topic, log.partition) in wanted:
            topic = topics.get(log.topic)
            if topic is None:
                topic = topics[log.topic] = _Topic(name=log.topic)
            topic.partitions.append(_Partition(partition_index=log.partition, **fields))

    for log in list(directory.logs.values()):
        yield
        if ctx.partitions.get(log.topic, log.partition) is log:
            add(log, partition_size=log.size_bytes, offset_lag=0)
    for move in ctx.moves.into(directory):
        lag = move.log.end_offset - move.end_offset
        add(move.log, partition_size=move.size_bytes, offset_lag=lag, is_future_key=True)
    return list(topics.values())
