"""Ranges of addresses in access control entries (KIP-1276)."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import address_ranges, standard_authorizer
from pykafkad.metadata.address_ranges import FIRST_LEVEL, check, contains, network
from pykafkad.metadata.standard_authorizer import StandardAuthorizer
from tests.metadata.test_standard_authorizer import authorizer, entry

DENY, READ, ALLOW = 2, 3, 3


@pytest.mark.parametrize(
    ("host", "address", "is_in"),
    [
        ("10.0.0.0/8", "10.255.255.255", True),
        ("10.0.0.0/8", "11.0.0.0", False),
        ("10.1.2.3/8", "10.9.9.9", True),
        ("010.0.0.0/8", "10.0.0.1", True),
        ("10.0.0.7/32", "10.0.0.7", True),
        ("0.0.0.0/0", "192.168.0.1", True),
        ("0.0.0.0/0", "0:0:0:0:0:0:0:1", False),
        ("::/0", "10.0.0.1", False),
        ("2001:db8::/32", "2001:db8:0:0:0:0:0:1", True),
        ("2001:db8::/32", "2001:db9:0:0:0:0:0:1", False),
        ("10.0.0.0/8", "not an address", False),
    ],
)
def test_an_address_lies_in_a_range(host: str, address: str, is_in: bool) -> None:
    """Bits behind the prefix do not count, and families do not mix."""
    found = network(host)
    assert found is not None and contains(found, address) is is_in


@pytest.mark.parametrize(
    "host",
    ["10.0.0.0/33", "10.0.0/8", "10.0.0.256/8", "1000.0.0.0/8", "10.0.0.0/", "/8", "10.0.0.0/-1", "10.0.0.0/255.0.0.0",
     "10.0.0.0/8/8", "a/b", "::/129", "::/a", "2001:db8::g/32", "::ffff:10.0.0.0/104", "fe80::1%eth0/64"],
)  # fmt: skip
def test_what_is_no_range(host: str) -> None:
    """A new entry with it is refused."""
    assert network(host) is None
    with pytest.raises(KafkaError, match="is no range of addresses") as caught:
        check(host, FIRST_LEVEL)
    assert caught.value.code == errors.INVALID_REQUEST


def test_a_cluster_of_an_older_level_has_no_ranges() -> None:
    """Other hosts are as before."""
    check("10.0.0.1", FIRST_LEVEL - 1)
    with pytest.raises(KafkaError, match="metadata.version; the cluster has 31") as caught:
        check("10.0.0.0/8", FIRST_LEVEL - 1)
    assert caught.value.code == errors.UNSUPPORTED_VERSION


def _may(made: StandardAuthorizer, address: str) -> bool:
    return made.authorize("User:alice", address, "Read", "Topic", "orders")


def test_an_entry_counts_for_its_range() -> None:
    """A denial of a smaller range beats it; other releases than 4.4 know no ranges."""
    rows = [entry(host="10.0.0.0/8"), entry(host="10.9.0.0/16", permission_type=DENY)]
    made = authorizer(*rows, has_ranges=True)
    assert [_may(made, each) for each in ("10.0.0.1", "10.9.0.1", "11.0.0.1")] == [True, False, False]
    assert made.explain("User:alice", "10.0.0.1", "Read", "Topic", "orders").endswith("from 10.0.0.0/8")
    assert not _may(authorizer(*rows), "10.0.0.1")


def test_an_entry_that_is_removed_counts_no_more() -> None:
    """Also for addresses that were asked about before, and as long as another caller has the range."""
    made = authorizer(entry(host="10.0.0.0/8"), entry(host="10.0.0.0/8", principal="User:bob"), has_ranges=True)
    assert _may(made, "10.0.0.1")
    made._change(entry(host="10.0.0.0/8"), added=False)
    assert not _may(made, "10.0.0.1")
    assert made.authorize("User:bob", "10.0.0.1", "Read", "Topic", "orders")
    made._change(entry(host="10.0.0.0/8", principal="User:bob"), added=False)
    assert made._ranges == {}


def test_few_addresses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that clients of many addresses fill no memory."""
    monkeypatch.setattr(standard_authorizer, "MAX_PLACES", 2)
    made = authorizer(entry(host="10.0.0.0/8"), has_ranges=True)
    assert all(_may(made, f"10.0.0.{number}") for number in range(5))
    assert len(made._places) <= 2
    assert address_ranges.FIRST_LEVEL == 32
