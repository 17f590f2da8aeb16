"""All planted bugs: one table or two per package of `pykafkad/`."""

from __future__ import annotations

from tests.planted import (
    consumer_group_plants,
    coordinator_plants,
    edge_plants,
    handlers_plants,
    log_plants,
    metadata_plants,
    node_plants,
    replica_plants,
    server_plants,
    share_plants,
    wire_plants,
)

PLANTS = (
    *wire_plants.PLANTS,
    *log_plants.PLANTS,
    *replica_plants.PLANTS,
    *metadata_plants.PLANTS,
    *coordinator_plants.PLANTS,
    *consumer_group_plants.PLANTS,
    *edge_plants.PLANTS,
    *server_plants.PLANTS,
    *node_plants.PLANTS,
    *handlers_plants.PLANTS,
    *share_plants.PLANTS,
)
