"""Feature levels: those that this release supports, and those of a new cluster.

Clients rely on finalized levels, so a new cluster finalizes only features that are served:

* `metadata.version` 30 (4.3-IV0). The log of an older cluster may have any level from 7 (3.3-IV3), as with Kafka 4.3.
  Until UpdateFeatures raises the level, records are written in the versions of that level (`record_codec.py`).
* `kraft.version` 1: the voters are in the log (KIP-853). This level is in control records, not in a FeatureLevelRecord.
* `eligible.leader.replicas.version` 1, as in a new 4.3.1 cluster: min.insync.replicas has a cluster-wide value in the
  log.

* `transaction.version` 2, as in a new 4.3.1 cluster: producers do not send AddPartitionsToTxn, and each end of a
  transaction raises their epoch (KIP-890).
* `group.version` 1, as in a new 4.3.1 cluster: consumer groups of KIP-848.
* `share.version` 1, as in a new 4.3.1 cluster: share groups (KIP-932).
* `streams.version` 1, as in a new 4.3.1 cluster: streams groups (KIP-1071).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"

# Name: (lowest level, highest level) that this release supports.
SUPPORTED = {
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 30),
    SHARE_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
}

# Levels of metadata.version that changed records. A cluster cannot downgrade below them.
RECORD_CHANGES = (7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33)
# The level of a new cluster of 4.3. The levels after it are of 4.4.
LATEST_LEVEL = 30

# The first levels of metadata.version with SCRAM credentials, transactions, delegation tokens, controller
# registrations, eligible leader replicas, cordoned directories, and unregistered controllers.
SCRAM_SINCE = 11
TRANSACTIONS_SINCE = 13
TOKENS_SINCE = 14
CONTROLLERS_SINCE = 15
ELR_SINCE = 23
CORDONED_SINCE = 30
UNREGISTRATION_SINCE = 33

# Name: level in a new cluster, in the order of Kafka's bootstrap records.
BOOTSTRAP = {
    METADATA_VERSION: LATEST_LEVEL,
    ELIGIBLE_LEADER_REPLICAS: 1,
    GROUP_VERSION: 1,
    SHARE_VERSION: 1,
    STREAMS_VERSION: 1,
    TRANSACTION_VERSION: 2,
}

NEW_CLUSTER_KRAFT_VERSION = 1


def supported(settings: Settings) -> dict[str, tuple[int, int]]:
    """`SUPPORTED`, or what the release supports that is acted as."""
    return SUPPORTED if settings.release is None else settings.release.features


def of_new_cluster(settings: Settings) -> dict[str, int]:
    """`BOOTSTRAP`, or the levels of a new cluster of the release that is acted as."""
    if settings.release is None:
        return BOOTSTRAP
    return {name: level for name in BOOTSTRAP if (level := settings.release.new_cluster.get(name, 0))}


def unsupported(finalized: dict[str, int], settings: Settings) -> list[str]:
    """The features of a cluster whose level this release does not support, as `name=level`."""
    ranges = supported(settings)
    if settings.release is not None:
        # Older releases than 3.9 do not know kraft.version, and our own quorum has it whatever we act as.
        ranges = {KRAFT_VERSION: SUPPORTED[KRAFT_VERSION], **ranges}
    return [
        f"{name}={level}"
        for name, level in sorted({METADATA_VERSION: 0, **finalized}.items())
        if not ranges.get(name, (0, 0))[0] <= level <= ranges.get(name, (0, 0))[1]
    ]


def levels(records: Iterable[StoredRecord]) -> dict[str, int]:
    """Feature name to level, from the FeatureLevelRecords among the records."""
    found: dict[str, int] = {}
    for record in records:
        value: Any = record.value
        if type(value).__name__ == "FeatureLevelRecord":
            found[value.name] = value.feature_level
    return found
