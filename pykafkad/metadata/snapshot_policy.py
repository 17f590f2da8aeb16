"""When a snapshot of the metadata is made, and which ones may go: the decisions, without a clock or a disk."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.config import Settings
    from pykafkad.metadata.image import Image

LEAST_BYTES_AT_STOP = 64 * 1024
CHECK_SECONDS = 60.0


def is_due(settings: Settings, bytes_since: int) -> bool:
    """Whether so many bytes of the log since the last snapshot ask for the next."""
    return bytes_since >= settings.metadata_log_max_record_bytes_between_snapshots


def is_due_by_age(settings: Settings, age_seconds: float) -> bool:
    """Whether the last snapshot is old enough for the next."""
    interval_ms = settings.metadata_log_max_snapshot_interval_ms
    return bool(interval_ms) and age_seconds * 1000 >= interval_ms


def is_worth_it_at_stop(bytes_since: int, newest_bytes: int) -> bool:
    """Whether a snapshot at the stop spares the next start more reading than it is itself: every restart elects each
    partition anew."""
    return bytes_since >= max(LEAST_BYTES_AT_STOP, newest_bytes)


def check_seconds(settings: Settings) -> float:
    """How long until the next look at ages."""
    interval_ms = settings.metadata_log_max_snapshot_interval_ms or float("inf")
    return min(CHECK_SECONDS, interval_ms / 1000)


def can_be_made(image: Image) -> bool:
    """Whether `image` can be written as a snapshot: records of a transaction take effect at its end only, and records
    that this release doesn't know could not be written again."""
    return image.transaction is None and not image.unknown_records


def may_go(settings: Settings, total_bytes: int, age_ms: Callable[[], int]) -> bool:
    """Whether the oldest of several snapshots may go, and the log before the next: `total_bytes` is the size of the log
    and of all snapshots, `age_ms()` the age of the oldest."""
    if 0 <= settings.metadata_max_retention_bytes < total_bytes:
        return True
    return settings.metadata_max_retention_ms >= 0 and age_ms() > settings.metadata_max_retention_ms
