"""What `pykafkad serve` has beside its broker over HTTP: `--control` and `--registry`."""

from __future__ import annotations

import os

from pykafkad.cli import extras
from pykafkad.cli.serve_options import Options
from pykafkad.control import command_line
from pykafkad.errors import ConfigError
from pykafkad.server.listeners import parse_address
from pykafkad.server.wiring import BROKER
from pykafkad.testing import served_broker
from pykafkad.testing.served_broker import ServedBroker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.config import Settings
    from pykafkad.control.served import ServedControl
    from pykafkad.registry.served import ServedRegistry

REGISTRY = "--registry"


class Beside:
    """The servers that the options ask for: made before the settings are read, which have to allow their requests;
    then `start`, `began` with each process, and `close` after the last. Raises ConfigError."""

    def __init__(self, options: Options, properties: dict[str, tuple[str, str]]) -> None:
        self._control_address = self._registry_address = None
        if options.control is not None:
            self._control_address, self._token = command_line.read(
                options.control, options.control_token, os.environ, properties
            )
        if options.registry is not None:
            for package in ("waitress", "avro.schema", "jsonschema.validators"):
                if sentence := extras.missing(package):
                    raise ConfigError(f"{REGISTRY}: {sentence}")
            self._registry_address = _address(options.registry)
            served_broker.allow(properties, REGISTRY)
        self._broker = ServedBroker(has_several=options.asks_for_several())
        self._control: ServedControl | None = None
        self._registry: ServedRegistry | None = None
        self.clock = self._broker.clock
        """The broker's, which the control API moves."""
        self.began = self._broker.began
        self.ended = self._broker.ended

    def start(self, settings: Settings, topics: list[tuple[str, int]]) -> None:
        """Serve; `topics` (name, partitions) are there again after a reset. Without a broker requests are refused as
        such. Raises ConfigError, and StartFailure for an address that can't be had."""
        if BROKER not in settings.process_roles:
            option, what = (
                (REGISTRY, "keep schemas") if self._control_address is None else ("--control", "be controlled")
            )
            raise ConfigError(f"{option}: process.roles has no broker that could {what}")
        if self._control_address is not None:
            from pykafkad.control.served import ServedControl

            registry = None if self._registry_address is None else self._registry_url
            self._control = ServedControl(self._broker, *self._control_address, self._token or None, topics, registry)
            self._control.start()
        if self._registry_address is not None:
            from pykafkad.registry.served import ServedRegistry

            self._registry = ServedRegistry(self._broker, *self._registry_address)
            self._registry.start()

    def close(self) -> None:
        """Stop. The broker has ended."""
        self._broker.ended()
        for server in (self._control, self._registry):
            if server is not None:
                server.close()

    def _registry_url(self) -> str:
        # The control API is served before it, and does not ask for it until it has a record.
        return "" if self._registry is None else self._registry.url

    @property
    def words(self) -> dict[str, str]:
        """What the readiness line tells of them."""
        told = {} if self._control is None else self._control.words
        return told if self._registry is None else {**told, "schema.registry.url": self._registry.url}


def read(options: Options, properties: dict[str, tuple[str, str]]) -> Beside | None:
    """What the options ask for; None for nothing. Raises ConfigError."""
    if options.control is None and options.control_token is not None:
        raise ConfigError("--control-token: there is no control API without --control")
    return None if options.control is None and options.registry is None else Beside(options, properties)


def _address(text: str) -> tuple[str, int]:
    if ":" not in text:
        return parse_address(f":{text}", REGISTRY)
    host, port = parse_address(text, REGISTRY)
    if not host:
        raise ConfigError(
            f"{REGISTRY} {text}: names no host; PORT alone is at 127.0.0.1, 0.0.0.0:PORT at every address"
        )
    return host, port
