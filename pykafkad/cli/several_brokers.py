"""`pykafkad serve --brokers N --controllers N --rack NAME …`: the settings of each broker, and how many controllers."""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.server import cluster_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pykafkad.config import Settings
    from pykafkad.server.node_links import NodeIdentity


def read(count: str | None, racks: Sequence[str], settings: Settings, given: Collection[str]) -> list[Settings]:
    """The settings of each of `count` brokers. `given` are the names that are set. Raises `ConfigError`."""
    if count is None:
        option = f"--rack {racks[0]}" if racks else "--processes and --controllers"
        raise ConfigError(f"{option}: there is one broker; give --brokers" + (", or set broker.rack" if racks else ""))
    if not count.isdecimal():
        raise ConfigError(f"--brokers {count}: must be a number")
    return cluster_settings.of_brokers(settings, int(count), racks, given)


def controllers(count: str | None) -> int:
    """How many controllers there are. Raises `ConfigError`."""
    most = cluster_settings.MAX_CONTROLLERS
    if count is None:
        return 1
    if not count.isdecimal() or not 1 <= int(count) <= most:
        raise ConfigError(f"--controllers {count}: must be a number from 1 to {most}")
    return int(count)


def identity(settings: Settings, option: str) -> NodeIdentity | None:
    """What nodes of an `option` show to each other, where no listener of the brokers (such as that of these
    `settings`) is open to everybody; None where one is. Raises `ConfigError`."""
    from pykafkad.server.run import parse_listeners

    if not cluster_settings.needs_links(settings, parse_listeners(settings)):
        return None
    from pykafkad.cli import certificates

    return certificates.for_nodes(option)
