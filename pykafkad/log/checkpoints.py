"""The small text files of a log directory, in Kafka's formats.

Offset checkpoints: version `0`, the count, then `topic partition offset` per line. `meta.properties` and
`partition.metadata`: key and value per line. A file that cannot be read counts as missing, as in Kafka: recovery then
starts earlier, which costs time and loses nothing."""

from __future__ import annotations

from pykafkad import uuids

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
META_PROPERTIES_FILE = "meta.properties"
PARTITION_METADATA_FILE = "partition.metadata"
LOCK_FILE = ".lock"


def encode_offsets(offsets: dict[tuple[str, int], int]) -> bytes:
    """Text of an offset checkpoint."""
    rows = "".join(f"{topic} {partition} {offset}\n" for (topic, partition), offset in sorted(offsets.items()))
    return f"0\n{len(offsets)}\n{rows}".encode()


def decode_offsets(data: bytes | None) -> dict[tuple[str, int], int]:
    """Read an offset checkpoint; a missing or damaged one is empty."""
    offsets: dict[tuple[str, int], int] = {}
    lines = (data or b"").decode("utf-8", "replace").splitlines()
    try:
        if int(lines[0]) != 0:
            return {}
        for line in lines[2:]:
            topic, partition, offset = line.split()
            offsets[topic, int(partition)] = int(offset)
        return offsets if len(offsets) == int(lines[1]) else {}
    except (ValueError, IndexError):
        return {}


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """The content of `partition.metadata`."""
    return f"version: 0\ntopic_id: {uuids.to_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes | None) -> bytes | None:
    """The topic id of a partition directory; None when the file is missing or damaged."""
    for line in (data or b"").decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "topic_id":
            try:
                return uuids.from_text(value.strip())
            except ValueError:
                return None
    return None


def encode_properties(properties: dict[str, str]) -> bytes:
    """A Java properties file of plain keys and values."""
    return "".join(f"{key}={value}\n" for key, value in properties.items()).encode()


def decode_properties(data: bytes) -> dict[str, str]:
    """Read a Java properties file of plain keys and values; comments and empty lines are skipped."""
    rows = (
        line.partition("=")
        for line in data.decode("utf-8", "replace").splitlines()
        if line.strip() and line[0] not in "#!"
    )
    return {key.strip(): value.strip() for key, _, value in rows}


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """Kafka's JSON of a clean stop."""
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode()


def decode_clean_shutdown(data: bytes | None) -> int:
    """The broker epoch of a clean stop; -1 when the file is missing or says none."""
    _, found, rest = (data or b"").decode("utf-8", "replace").partition('"brokerEpoch"')
    digits = rest.lstrip(" :").split("}")[0].split(",")[0].strip()
    return int(digits) if found and digits.lstrip("-").isdigit() else -1
