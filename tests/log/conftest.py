"""What most tests of logs begin with; those of a real disk make their own."""

from __future__ import annotations

import pytest

from tests.log.settings import open_directory, open_log
from tests.simulation.disk import MemoryDisk


@pytest.fixture
def disk():
    """An empty one, in memory."""
    return MemoryDisk()


@pytest.fixture
def directory(disk):
    """A log directory on it."""
    return open_directory(disk=disk)


@pytest.fixture
def log(directory):
    """An empty partition in it."""
    return open_log(directory)
