"""What a context says about its caller."""

from __future__ import annotations

import pytest

from pykafkad.handlers.context import Context


class Connection:
    """A connection from the address `peer`."""

    def __init__(self, peer: str) -> None:
        self.peer = peer


@pytest.mark.parametrize(
    ("peer", "shown"),
    [
        ("127.0.0.1:5000", "/127.0.0.1"),
        ("[::1]:5000", "/0:0:0:0:0:0:0:1"),
        ("[2001:db8::a:0]:5000", "/2001:db8:0:0:0:0:a:0"),
        ("[fe80::1%eth0]:5000", "/fe80:0:0:0:0:0:0:1"),
        ("[::ffff:10.1.2.3]:5000", "/10.1.2.3"),
    ],
)
def test_the_callers_address_is_written_as_java_writes_it(peer: str, shown: str) -> None:
    """DescribeGroups and Kafka's tools show the address of group members."""
    context = Context(None, Connection(peer), None, 0, 0, "")
    assert context.client_host == shown
