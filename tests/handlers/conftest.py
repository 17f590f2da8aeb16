"""Whole brokers in this process for the tests of handlers."""

import pytest

from tests.server.token_world import token_world
from tests.simulation.world import World


@pytest.fixture
def world(tmp_path):
    """A fresh broker; `world.restart()` makes another with its data."""
    made = World(tmp_path / "data")
    yield made
    assert made.runtime.metrics.unexpected_errors == 0, "an unexpected error is a bug, whatever the answer was"


@pytest.fixture
def peer(world):
    """A client connection to the broker."""
    return world.connect()


@pytest.fixture
def tokens(tmp_path):
    """A broker with a SASL listener and delegation tokens."""
    made = token_world(tmp_path / "data")
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
