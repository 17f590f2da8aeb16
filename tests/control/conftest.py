"""A broker with a control API for the tests of this folder."""

from __future__ import annotations

import pytest

from pykafkad.testing import Broker
from tests.control.http_client import Client


@pytest.fixture(scope="module")
def shared():
    """A broker with a topic of three partitions and a control API, shared by the tests of a module."""
    with Broker(topics={"orders": 3}, records={"orders": [("key", "value"), "alone"]}, control=True) as broker:
        yield broker
        # A bug of the broker's: logged with its traceback.
        assert broker._running._process.runtime.metrics.unexpected_errors == 0


@pytest.fixture
def broker(shared):
    """The same, as it was at its start."""
    shared.reset()
    return shared


@pytest.fixture
def api(broker):
    """Asks its control API."""
    return Client(broker.control_url, broker.control_token)
