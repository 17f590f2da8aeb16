"""What tests of two brokers side by side share."""

from __future__ import annotations

import pytest

from pykafkad.differential import links
from pykafkad.differential.tee import Tee


@pytest.fixture
def between(pair):
    """A tee between them."""
    found = Tee(("127.0.0.1", 0), *(links.address(each.bootstrap) for each in pair))
    found.start()
    yield found
    found.close()
