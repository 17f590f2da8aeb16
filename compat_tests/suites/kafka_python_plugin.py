"""pytest plug-in for kafka-python's suite: its distribution lacks two files of its package `test`, and its broker is
given.

The package is called like one of Python's own, so it is declared here to be that of the suite. The module that starts
and stops brokers is replaced by one whose broker is somewhere else already."""

from __future__ import annotations

import os
import sys
import types

package = types.ModuleType("test")
package.__path__ = [os.path.join(os.environ["PYKAFKAD_SUITE_SOURCE"], "test")]
sys.modules["test"] = package


class ExternalService:
    """A broker that runs already: starting and stopping it is nothing."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def open(self) -> None:
        """Nothing to start."""

    def stop(self) -> None:
        """Nothing to stop."""

    def dump_logs(self) -> None:
        """Its log is elsewhere."""


class SpawnedService:
    """A broker that the suite would start itself."""

    def __init__(self, *_: object) -> None:
        raise RuntimeError("this run is pointed at a broker and starts none")


service = types.ModuleType("test.service")
service.ExternalService = ExternalService
service.SpawnedService = SpawnedService
sys.modules["test.service"] = service
package.service = service
