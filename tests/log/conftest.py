"""Fixtures of most tests of logs; tests on a real disk make their own."""

from __future__ import annotations

import pytest

from tests.log.settings import open_directory, open_log
from tests.simulation.disk import MemoryDisk


@pytest.fixture
def disk():
    """An empty disk in memory."""
    return MemoryDisk()


@pytest.fixture
def directory(disk):
    """A log directory on the disk."""
    return open_directory(disk=disk)


@pytest.fixture
def log(directory):
    """An empty partition in the directory."""
    return open_log(directory)
