"""A broker for the tests of this folder."""

from __future__ import annotations

import pytest

from pykafkad.testing import Broker


@pytest.fixture(scope="module")
def shared():
    """A broker with a topic of three partitions, shared by the tests of a module."""
    with Broker(topics={"orders": 3}, records={"orders": [("key", "value"), "alone"]}) as broker:
        yield broker
        # A bug of the broker's: logged with its traceback.
        assert broker._running._process.runtime.metrics.unexpected_errors == 0


@pytest.fixture
def broker(shared):
    """The same, as it was at its start."""
    shared.reset()
    return shared
