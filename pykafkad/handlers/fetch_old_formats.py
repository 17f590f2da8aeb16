"""What Fetch below version 10 gives where Kafka is a release before 4.0: older formats, and no zstd.

Versions 0 and 1 know messages of magic 0, versions 2 and 3 those of magic 1. A topic whose compression.type is zstd is
UNSUPPORTED_COMPRESSION_TYPE below version 10, and so is a batch with zstd that would have to be converted. With
message.downconversion.enable=false nothing is converted, and the error is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.log.message_conversion import messages_of
from pykafkad.metadata.image import TYPE_TOPIC
from pykafkad.settings import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context
    from pykafkad.log.file_slice import FileSlice
    from pykafkad.log.partition_log import PartitionLog

ZSTD_SINCE = 10
_BATCHES_SINCE = 4
_MAGIC_1_SINCE = 2
_SWITCH = "message.downconversion.enable"


def as_understood(ctx: Context, log: PartitionLog, records: FileSlice | None, fetch_offset: int) -> bytes:
    """The records as messages of the magic that the request's version knows; empty if it knows batches. Raises
    `KafkaError`."""
    if log.settings.compression_type == "zstd":
        raise KafkaError(errors.UNSUPPORTED_COMPRESSION_TYPE)
    if records is None or ctx.version >= _BATCHES_SINCE:
        return b""
    if not _may_convert(ctx, log.topic):
        raise KafkaError(errors.UNSUPPORTED_VERSION)
    return messages_of(records.pread(), 0 if ctx.version < _MAGIC_1_SINCE else 1, fetch_offset)


def _may_convert(ctx: Context, topic: str) -> bool:
    described = entries.describe_topic(ctx.settings, ctx.metadata.configs(TYPE_TOPIC, topic))
    return next((entry.value for entry in described if entry.name == _SWITCH), "true") == "true"
