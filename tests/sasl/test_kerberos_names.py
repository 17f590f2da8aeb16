"""Kerberos names and their rules. compat_tests/test_kerberos.py compares them with Kafka's."""

from __future__ import annotations

import pytest

from pykafkad.sasl.kerberos_names import NoName, ShortNamer
from tests.sasl.kerberos_rules import CASES, INVALID


@pytest.mark.parametrize(("rules", "principal", "name"), CASES)
def test_the_first_rule_that_fits_makes_the_name(rules: list[str], principal: str, name: str | None) -> None:
    """None: there is no name."""
    namer = ShortNamer(rules, "REALM")
    if name is None:
        with pytest.raises(NoName):
            namer.name(principal)
    else:
        assert namer.name(principal) == name


@pytest.mark.parametrize("rule", INVALID)
def test_what_is_no_rule(rule: str) -> None:
    """It is named."""
    with pytest.raises(ValueError) as caught:
        ShortNamer(["DEFAULT", rule], "REALM")
    assert rule in str(caught.value) or "regular expression" in str(caught.value) or "replacement" in str(caught.value)


def test_without_a_realm_of_the_machine() -> None:
    """The usual rule fits no name."""
    with pytest.raises(NoName):
        ShortNamer(["DEFAULT"], "").name("alice@REALM")
