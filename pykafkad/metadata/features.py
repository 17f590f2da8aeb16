"""Feature levels: what this release can run and what a new cluster starts with.

A finalized level is a promise that clients act upon, so a new cluster finalizes only what is served:

* `metadata.version` 30 (4.3-IV0). The log of an older cluster may be at any level from 7 (3.3-IV3) on, as with Kafka
  4.3: it is written in the versions of that level (`record_codec.py`) until UpdateFeatures raises it.
* `kraft.version` 1: voters stand in the log (KIP-853). It lives in control records, not in a FeatureLevelRecord.
* `eligible.leader.replicas.version` 1, as a new 4.3.1 cluster: min.insync.replicas has a cluster-wide value in the log.
* not finalized, though Kafka 4.3.1 does: `transaction.version` (a level of 2 makes producers skip AddPartitionsToTxn),
  `group.version` (KIP-848 consumers), `share.version`, `streams.version`: their APIs are not offered yet. In a log that
  a Kafka wrote they stay for its return, and clients are not told of them.
"""

from __future__ import annotations

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"

# name: (lowest level, highest level) that this release can run.
SUPPORTED = {
    ELIGIBLE_LEADER_REPLICAS: (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 30),
}

# Levels of metadata.version that changed records: there is no way down from them.
RECORD_CHANGES = (7, 8, 11, 13, 14, 15, 17, 23, 30)
LATEST_LEVEL = RECORD_CHANGES[-1]

# From these levels on the metadata log knows SCRAM credentials, transactions, where controllers listen, eligible leader
# replicas, cordoned directories.
SCRAM_SINCE = 11
TRANSACTIONS_SINCE = 13
CONTROLLERS_SINCE = 15
ELR_SINCE = 23
CORDONED_SINCE = 30

# Levels that may stand in the log of a Kafka 4.3, and that concern APIs which are not offered.
CARRIED = {
    "group.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}

# name: level of a new cluster, in the order of Kafka's bootstrap records.
BOOTSTRAP = {
    METADATA_VERSION: LATEST_LEVEL,
    ELIGIBLE_LEADER_REPLICAS: 1,
}

NEW_CLUSTER_KRAFT_VERSION = 1


def unsupported(finalized: dict[str, int]) -> list[str]:
    """Features of a cluster that this release can neither run nor carry at their level, as `name=level`."""
    known = SUPPORTED | CARRIED
    return [
        f"{name}={level}"
        for name, level in sorted({METADATA_VERSION: 0, **finalized}.items())
        if not known.get(name, (0, 0))[0] <= level <= known.get(name, (0, 0))[1]
    ]


def levels(records: list[object]) -> dict[str, int]:
    """Feature name to level, out of the FeatureLevelRecords among stored records."""
    return {
        record.value.name: record.value.feature_level
        for record in records
        if type(record.value).__name__ == "FeatureLevelRecord"
    }
