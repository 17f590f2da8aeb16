"""The names of files and folders in a log directory, as Kafka gives them."""

from __future__ import annotations

# Files of a partition.
LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"

# Folders of partitions that are not served: deleted, unknown to the controller, on the way from another directory.
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
MAX_NAME_LENGTH = 255
NOT_SERVED_SUFFIXES = (DELETE_SUFFIX, STRAY_SUFFIX, FUTURE_SUFFIX)


def file_prefix(directory: str, offset: int) -> str:
    """Kafka's file names: the offset in twenty digits."""
    return f"{directory}/{offset:020d}"


def parse_partition_name(name: str) -> tuple[str, int] | None:
    """(topic, partition) of a partition directory's name, None for any other name."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not partition.isascii() or not partition.isdigit():
        return None
    return topic, int(partition)
