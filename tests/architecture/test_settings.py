"""The settings table says the truth about itself: the `effect` column follows what the code reads."""

from __future__ import annotations

import re

import pytest

from pykafkad.config import BROKER, CLIENT_METRICS, GROUP, ROWS, SCOPES, TOPIC
from tests.architecture.source import PROJECT, modules

# Read by the configuration itself, under another name or to check it.
READ_BY_CONFIG = {
    "log.dir": "Settings.log_directories",
    "log.dirs": "Settings.log_directories",
    "node.id": "the broker's id",
    "broker.id": "another name of node.id",
    "connections.max.reauth.ms": "read by `sasl/offer.py` for a listener and a mechanism",
    "sasl.enabled.mechanisms": "read there for a listener",
    "sasl.jaas.config": "read there for a listener and a mechanism",
    "sasl.server.callback.handler.class": "read there for a mechanism, and refused unless it is one of Kafka's own",
    "sasl.server.max.receive.size": "read there for a listener",
    "principal.builder.class": "refused by `settings/cross_checks.py`",
    "ssl.engine.factory.class": "refused there",
    "process.roles": "read by the wiring: which nodes the process has",
}


def _read_attributes() -> set[str]:
    names: set[str] = set()
    for module in modules():
        if not module.name.startswith(("pykafkad.config", "pykafkad.settings", "pykafkad.cli")):
            names.update(re.findall(r"settings\.([a-z0-9_]+)", module.text))
            # A table may hold a setting's name, to be read by getattr; long names mean nothing else.
            names.update(name for name in re.findall(r"\"([a-z0-9_]+)\"", module.text) if name.count("_") >= 3)
            if "import ListenerSettings" in module.text:
                # What is read for one listener is read by its whole name.
                names.update(
                    name.replace(".", "_")
                    for name in re.findall(r"\"((?:pykafkad\.)?s(?:s|as)l\.[a-z.]+)\"", module.text)
                )
    return names


def _expected() -> set[tuple[str, str]]:
    read = _read_attributes()
    effective = {(BROKER, name) for name in READ_BY_CONFIG}
    for scope in SCOPES:
        effective |= {(scope, row.name) for row in ROWS[scope].values() if row.attribute in read}
    # `server/share_groups.py` reads it by its name, which is too short for the rule above.
    effective.add((GROUP, "share.isolation.level"))
    # A subscription's settings are parsed all at once, by `handlers/telemetry.py`.
    effective |= {(CLIENT_METRICS, name) for name in ROWS[CLIENT_METRICS]}
    # A topic's setting comes from these where the topic does not set it.
    for scope in (TOPIC, GROUP):
        for row in ROWS[scope].values():
            if (scope, row.name) in effective:
                effective |= {(BROKER, name) for name, _ in row.broker_settings}
    return effective


def test_effect_column_follows_the_code() -> None:
    """A setting is marked as having an effect when, and only when, some module reads it."""
    marked = {(scope, row.name) for scope in SCOPES for row in ROWS[scope].values() if row.effect}
    expected = _expected()
    assert sorted(expected - marked) == [], "read by the code but marked `no`"
    assert sorted(marked - expected) == [], "marked `yes` but read nowhere"


@pytest.mark.parametrize("scope", SCOPES)
def test_rows_are_complete(scope: str) -> None:
    """Every row has a default that it allows itself, and help that is a sentence."""
    for row in ROWS[scope].values():
        if row.default is not None:
            row.parse(row.default)
        assert row.help[0].isupper() and row.help.endswith("."), row.name


def test_counts_are_those_of_kafka() -> None:
    """Kafka 4.3.1 has 360 broker settings and three more that exist only live, 33 topic settings and one internal."""
    counts = {scope: len([name for name in ROWS[scope] if not name.startswith("pykafkad.")]) for scope in SCOPES}
    assert counts == {"broker": 363, "topic": 34, "group": 17, "client-metrics": 3}
    assert len([row for row in ROWS[TOPIC].values() if not row.internal]) == 33


def test_settings_files_are_sorted_into_columns() -> None:
    """A table is read by people too: no tabs, no trailing blanks, every name once."""
    for path in (PROJECT / "pykafkad" / "settings").glob("*.txt"):
        lines = path.read_text().splitlines()
        names = [line.split()[0] for line in lines if line and not line.startswith("#")]
        assert len(names) == len(set(names)), path
        assert not [line for line in lines if "\t" in line or line != line.rstrip()], path
