"""All planted bugs: one table per package of `pykafkad/`."""

from __future__ import annotations

from tests.planted import coordinator_plants, log_plants, metadata_plants, wire_plants

PLANTS = (*wire_plants.PLANTS, *log_plants.PLANTS, *metadata_plants.PLANTS, *coordinator_plants.PLANTS)
