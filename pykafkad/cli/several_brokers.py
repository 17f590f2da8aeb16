"""`pykafkad serve --brokers N --rack NAME …`: the settings of each broker."""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.server import cluster_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pykafkad.config import Settings


def read(count: str | None, racks: Sequence[str], settings: Settings, given: Collection[str]) -> list[Settings]:
    """The settings of each of `count` brokers. `given` are the names that are set. Raises `ConfigError`."""
    if count is None:
        raise ConfigError(f"--rack {racks[0]}: there is one broker; give --brokers, or set broker.rack")
    if not count.isdecimal():
        raise ConfigError(f"--brokers {count}: must be a number")
    return cluster_settings.of_brokers(settings, int(count), racks, given)
