"""All planted bugs: one table per package of `pykafkad/`."""

from __future__ import annotations

from tests.planted import log_plants

PLANTS = (*log_plants.PLANTS,)
