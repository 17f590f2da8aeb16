"""Every scenario of `compat_tests/scenarios/`: the same requests to a real Kafka and to pykafkad, answers compared.

With `--against kafka` or `--against pykafkad` that broker is asked twice and compared with itself: what a scenario compares must
not depend on chance.
"""

from __future__ import annotations

import pytest

from compat_tests.conftest import AGAINST
from compat_tests.scenarios.api_versions import PROMISED
from compat_tests.scenarios.differences import allowed
from compat_tests.scenarios.exchange import Exchange
from compat_tests.scenarios.normalise import differences, normalised
from compat_tests.scenarios.registry import all_scenarios, needs_configured
from pykafkad.wire import messages

SCENARIOS = all_scenarios()
SHOWN_DIFFERENCES = 40
# What each scenario that ran has asked: (API, version).
asked: dict[str, set[tuple[str, int]]] = {}


def transcript(name: str, bootstrap: str) -> list[tuple[str, object]]:
    """Run a scenario on one broker; its normalised transcript."""
    exchange = Exchange(bootstrap, name)
    try:
        SCENARIOS[name](exchange)
    finally:
        exchange.close()
    asked[name] = {(api, version) for api, version in exchange.asked}
    return normalised(exchange)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str, request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> None:
    """Both brokers give the same answers, but for the differences that `differences.py` gives a reason for."""
    brokers = AGAINST[pytestconfig.getoption("--against")]
    first, second = brokers if len(brokers) == 2 else (*brokers, *brokers)
    transcripts = []
    for broker in (first, second):
        fixture = f"configured_{broker}" if needs_configured(name) else broker
        try:
            transcripts.append(transcript(name, request.getfixturevalue(fixture).bootstrap))
        except Exception as error:
            error.add_note(f"while scenario {name} ran against {broker}")
            raise
    lines = []
    for (label, expected), (other_label, answered) in zip(*transcripts, strict=False):
        assert label == other_label, f"the steps differ: {first} {label}, {second} {other_label}"
        for _, path, left, right in differences(label, expected, answered):
            if first == second or not allowed(name, label, path):
                lines.append(f"{label}: {path}: {first} {left!r}, {second} {right!r}")
    if len(transcripts[0]) != len(transcripts[1]):
        lines.append(f"the transcript of {first} has {len(transcripts[0])} steps, that of {second} {len(transcripts[1])}")
    if lines:
        more = f"\n… and {len(lines) - SHOWN_DIFFERENCES} more" if len(lines) > SHOWN_DIFFERENCES else ""
        pytest.fail("\n".join(lines[:SHOWN_DIFFERENCES]) + more, pytrace=False)


def test_every_version_of_every_api_is_asked() -> None:
    """The scenarios together ask every API that pykafkad promises in every version that Kafka answers."""
    if len(asked) < len(SCENARIOS):
        return  # Only some of the scenarios were chosen for this run.
    everything = set().union(*asked.values())
    promised = {(name, version) for key, name, versions, _ in messages.all_apis() if key in PROMISED for version in versions}
    # Version 6 of InitProducerId prepares two-phase commits and is not answered by Kafka 4.3.1 unless unstable ones are enabled.
    assert promised - everything <= {("InitProducerId", 6)}
