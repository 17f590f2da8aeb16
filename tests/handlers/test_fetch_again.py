"""Every test of `test_fetch.py` again, with the code for thousands of partitions."""

import pytest

from pykafkad.handlers import fetch_long
from pykafkad.server import dispatch
from tests.handlers.test_fetch import *  # noqa: F403

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _all_are_long(monkeypatch):
    """Every request is long, with one partition per step."""
    monkeypatch.setattr(dispatch, "LONG_FRAME_BYTES", 0)
    monkeypatch.setattr(fetch_long, "AT_ONCE", 1)
