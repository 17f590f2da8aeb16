"""Every scenario of `compat_tests/scenarios/`: the same requests to a real Kafka and to pykafkad, answers compared.

With `--against kafka` or `--against pykafkad` one broker is asked twice and compared with itself, which shows whether a
scenario compares something that depends on chance.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from compat_tests.conftest import AGAINST
from compat_tests.scenarios.api_versions import PROMISED
from compat_tests.scenarios.differences import ALLOWED, Difference, allowing, of_scenario
from compat_tests.scenarios.exchange import Exchange
from compat_tests.scenarios.normalise import differences, normalised
from compat_tests.scenarios.provoked import NOT_PROVOKED, PROVOKED, codes_seen
from compat_tests.scenarios.registry import all_scenarios, needs_configured
from compat_tests.side_by_side import on_each
from pykafkad import errors
from pykafkad.wire import messages

SCENARIOS = all_scenarios()
SHOWN_DIFFERENCES = 40
# The rows of test_restart_seen.py.
RESTARTS = "restarts"
# (API, version) of every request, for each scenario that ran.
asked: dict[str, set[tuple[str, int]]] = {}
# The error codes that the scenarios have seen: API to names.
provoked: dict[str, dict[str, set[str]]] = {}


def played(name: str, bootstrap: str) -> Exchange:
    """Run a scenario on one broker."""
    exchange = Exchange(bootstrap, name)
    try:
        SCENARIOS[name](exchange)
    finally:
        exchange.close()
    return exchange


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str, request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> None:
    """Both brokers give the same answers, except for the differences in `differences.py`."""
    brokers = AGAINST[pytestconfig.getoption("--against")]
    first, second = brokers if len(brokers) == 2 else (*brokers, *brokers)
    kind = "configured_" if needs_configured(name) else ""
    sides = [(broker, request.getfixturevalue(f"{kind}{broker}").bootstrap) for broker in (first, second)]

    def play(side: tuple[str, str]) -> Exchange:
        broker, bootstrap = side
        try:
            return played(name, bootstrap)
        except Exception as error:
            error.add_note(f"while scenario {name} ran against {broker}")
            raise

    # A scenario beside itself on one broker would meet its own changes of the whole cluster.
    exchanges = on_each(play, sides) if first != second else [play(each) for each in sides]
    transcripts = [normalised(each) for each in exchanges]
    asked[name] = set(exchanges[0].asked)
    provoked[name] = codes_seen(exchanges[0])
    assert transcripts[0], "nothing of what is answered is compared"
    lines = []
    there: set[Difference] = set()
    for (label, expected), (other_label, answered) in zip(*transcripts, strict=False):
        assert label == other_label, f"the steps differ: {first} {label}, {second} {other_label}"
        for _, path, left, right in differences(label, expected, answered):
            rows = [] if first == second else allowing(name, label, path)
            there.update(rows)
            if not rows:
                lines.append(f"{label}: {path}: {first} {left!r}, {second} {right!r}")
    if len(transcripts[0]) != len(transcripts[1]):
        lines.append(
            f"the transcript of {first} has {len(transcripts[0])} steps, that of {second} {len(transcripts[1])}"
        )
    if first != second:
        lines += [f"nothing differs any more as this row says: {row}" for row in of_scenario(name) if row not in there]
    if lines:
        more = f"\n… and {len(lines) - SHOWN_DIFFERENCES} more" if len(lines) > SHOWN_DIFFERENCES else ""
        pytest.fail("\n".join(lines[:SHOWN_DIFFERENCES]) + more, pytrace=False)


def test_every_difference_has_a_scenario() -> None:
    """The run of the scenario finds whether the difference is still there; so no row may be without one."""
    names = [*SCENARIOS, RESTARTS]
    assert [row for row in ALLOWED if not any(fnmatchcase(name, row.scenario) for name in names)] == []


def test_every_version_of_every_api_is_asked() -> None:
    """The scenarios together ask every promised API in every version that Kafka answers."""
    if len(asked) < len(SCENARIOS):
        return  # Only some of the scenarios were chosen for this run.
    everything = set().union(*asked.values())
    promised = {
        (name, version) for key, name, versions, _ in messages.all_apis() if key in PROMISED for version in versions
    }
    # Version 6 of InitProducerId prepares two-phase commits; Kafka 4.3.1 answers it only with unstable versions
    # enabled.
    assert promised - everything <= {("InitProducerId", 6)}


def test_every_api_is_asked_for_a_success_and_its_errors() -> None:
    """The scenarios provoke exactly the codes of the table; each API has a success, or a reason why it has none."""
    if len(provoked) < len(SCENARIOS):
        return  # Only some of the scenarios were chosen for this run.
    seen: dict[str, set[str]] = {}
    for found in provoked.values():
        for api, names in found.items():
            seen.setdefault(api, set()).update(names)
    table = {api: set(names.split()) for api, names in PROVOKED.items()}
    missing = {api: names - seen.get(api, set()) for api, names in table.items() if names - seen.get(api, set())}
    assert not missing, "no scenario provokes these codes any more"
    new = {api: names - table.get(api, set()) - NOT_PROVOKED.get(api, {}).keys() for api, names in seen.items()}
    assert not any(new.values()), f"these codes are missing in the table: {new}"


def test_the_table_of_errors_is_complete() -> None:
    """Every promised API is in the table; a success is provoked or has a reason; no code is both provoked and
    excused.
    """
    promised = {name for key, name, _, _ in messages.all_apis() if key in PROMISED}
    assert promised <= PROVOKED.keys() and NOT_PROVOKED.keys() <= PROVOKED.keys()
    known = set(errors.codes().values())
    for api, names in PROVOKED.items():
        reasons = NOT_PROVOKED.get(api, {})
        assert "NONE" in names.split() or "NONE" in reasons, api
        assert not reasons.keys() & set(names.split()), api
        assert {*names.split(), *reasons} <= known, api
