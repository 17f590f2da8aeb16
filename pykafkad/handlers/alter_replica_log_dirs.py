"""AlterReplicaLogDirs, versions 1 and 2 (KIP-113).

Moves replicas of this broker to other directories of `log.dirs`. The answer says that a move has begun; DescribeLogDirs
shows its progress. Naming the directory that holds the replica stops its move; naming another one redirects it. A path
outside `log.dirs` is LOG_DIR_NOT_FOUND, a directory that failed KAFKA_STORAGE_ERROR, a cordoned one
INVALID_REPLICA_ASSIGNMENT (KIP-1066), and a topic name too long for a move's folder INVALID_TOPIC_EXCEPTION. A
partition without a replica here is UNKNOWN_TOPIC_OR_PARTITION or, if it is another broker's, REPLICA_NOT_AVAILABLE; if
the replica comes later, it is created in that directory. While a directory is offline no move begins:
KAFKA_STORAGE_ERROR. Version 2 is flexible.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.log.file_names import MAX_NAME_LENGTH
from pykafkad.log.moves import future_name
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context

(_ALTER_CLUSTER,) = RULES["AlterReplicaLogDirs"]
_Topic = messages.AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
_Row = messages.AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult


def handle(ctx: Context, request: messages.AlterReplicaLogDirsRequest) -> Generator[None, None, object]:
    """Begins moves. If a partition is named twice, the last directory counts."""
    allowed = may(ctx, _ALTER_CLUSTER)
    wanted = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    topics: dict[str, _Topic] = {}
    for (name, index), path in wanted.items():
        yield
        code = errors.NONE
        try:
            if not allowed:
                raise errors.KafkaError(_ALTER_CLUSTER.error)
            _alter(ctx, name, index, path)
        except errors.KafkaError as error:
            code = error.code
        except errors.StorageFailure:
            code = errors.KAFKA_STORAGE_ERROR
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = _Topic(topic_name=name)
        topic.partitions.append(_Row(partition_index=index, error_code=code))
    return messages.AlterReplicaLogDirsResponse(results=list(topics.values()))


def _alter(ctx: Context, name: str, index: int, path: str) -> None:
    directories = ctx.directories
    if len(future_name(name, index, 0)) > MAX_NAME_LENGTH:
        raise errors.KafkaError(errors.INVALID_TOPIC_EXCEPTION)
    target = directories.at(path)
    if target is None:
        known = any(directories.metadata.disk.absolute_path(each) == path for each in directories.paths)
        raise errors.KafkaError(errors.KAFKA_STORAGE_ERROR if known else errors.LOG_DIR_NOT_FOUND)
    if directories.is_cordoned(target.path):
        raise errors.KafkaError(errors.INVALID_REPLICA_ASSIGNMENT)
    log = ctx.partitions.get(name, index)
    if log is None:
        directories.prefer(name, index, path)
        known = ctx.metadata.partition(name, index) is not None
        raise errors.KafkaError(errors.REPLICA_NOT_AVAILABLE if known else errors.UNKNOWN_TOPIC_OR_PARTITION)
    if log.offline is not None:
        raise errors.KafkaError(errors.KAFKA_STORAGE_ERROR)
    present = ctx.moves.target(log)
    if present is target:
        return
    if present is not None:
        ctx.moves.cancel(name, index)
    source = directories.of(log)
    assert source is not None
    if source is not target:
        if directories.failed:
            # As in Kafka: the failed one may hold an unfinished move of the same partition.
            raise errors.KafkaError(errors.KAFKA_STORAGE_ERROR)
        ctx.moves.start(log, source, target)
