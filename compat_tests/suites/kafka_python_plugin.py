"""pytest plug-in for kafka-python's suite: it replaces two missing files of its package `test` and sets the broker.

The suite's package has the name of a package of Python itself, so the plug-in declares it to be the suite's. The module
that starts and stops brokers is replaced by one with a broker that already runs.
"""

from __future__ import annotations

import os
import sys
import types

package = types.ModuleType("test")
package.__path__ = [os.path.join(os.environ["PYKAFKAD_SUITE_SOURCE"], "test")]
sys.modules["test"] = package


class ExternalService:
    """A broker that already runs: starting and stopping it does nothing."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def open(self) -> None:
        """There is nothing to start."""

    def stop(self) -> None:
        """There is nothing to stop."""

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
