"""The scenarios beside brokers of other releases than 4.3.1, and pykafkad that acts as each of them.

A scenario is written for 4.3.1. Beside another release it asks the versions that both have, and ends at what the
release has not. What was answered until then is compared. `scenarios/releases.py` names the differences that are left,
and the scenarios that end early for another reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.release_sides import Sides, running_sides
from compat_tests.scenarios import releases
from compat_tests.scenarios.differences import allowing
from compat_tests.scenarios.exchange import OFFERED, Exchange, NotOffered
from compat_tests.scenarios.normalise import normalised
from compat_tests.scenarios.registry import CONFIGURED, all_scenarios, needs_configured
from compat_tests.scenarios.transcripts import Transcript, differing
from compat_tests.side_by_side import on_each
from pykafkad.wire import messages

SCENARIOS = all_scenarios()
SHOWN_DIFFERENCES = 40
# The others run with --whole-suites.
IN_EVERY_RUN = ("4.4",)
# What a broker answers and does not list: ApiVersions has them only where there is a plug-in that takes metrics.
UNLISTED = ("GetTelemetrySubscriptions", "PushTelemetry")
# The setting by which pykafkad acts as a release is shown like others.
OURS = "pykafkad.act.as"
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "releases.md"


class Played(NamedTuple):
    """What one broker answered, and how a scenario ended before its end: whether the release has not what it asks, and
    what it said."""

    steps: Transcript
    is_not_offered: bool
    ended: str


class Beside:
    """The brokers of one release, each pair with other settings started when it is first asked for."""

    def __init__(self, release: str, directory: Path, stack: ExitStack) -> None:
        self.release = release
        self._directory = directory
        self._stack = stack
        self._sides: dict[bool, Sides] = {}
        self._offered: Mapping[str, range] = {}

    def sides(self, *, is_configured: bool) -> Sides:
        """Those with the settings of `CONFIGURED`, or those without."""
        if is_configured not in self._sides:
            directory = self._directory / f"configured-{is_configured}"
            directory.mkdir()
            overrides = CONFIGURED if is_configured else None
            self._sides[is_configured] = self._stack.enter_context(running_sides(self.release, directory, overrides))
        return self._sides[is_configured]

    def play(self, broker: ProcessBroker, name: str) -> Played:
        """Run a scenario on one of the brokers."""
        exchange, is_not_offered, ended = Exchange(broker.bootstrap, name), False, ""
        token = OFFERED.set(self._offered)
        try:
            SCENARIOS[name](exchange)
        except NotOffered as error:
            is_not_offered, ended = True, str(error)
        except Exception as error:
            ended = f"{type(error).__name__}: {str(error)[:500]}"
        finally:
            OFFERED.reset(token)
            exchange.close()
        return Played(_without_ours(normalised(exchange)), is_not_offered, ended)

    def lacks(self, not_offered: str) -> bool:
        """Whether the release has no version at all of the API of a `NotOffered`."""
        return not self._offered.get(not_offered.partition(" ")[0], "another end")

    def learn_versions(self, kafka: ProcessBroker) -> None:
        """Ask the release's own broker once which versions of which APIs it answers."""
        if not self._offered:
            exchange = Exchange(kafka.bootstrap, "versions")
            answer = exchange.quietly("ApiVersions", 3, client_software_name="test", client_software_version="1")
            exchange.close()
            listed = {row.api_key: range(row.min_version, row.max_version + 1) for row in answer.api_keys}
            self._offered = {
                name: range(min(versions), max(versions) + 1) if name in UNLISTED else listed.get(key, range(0))
                for key, name, versions, _ in messages.all_apis()
            }


def _without_ours(steps: Transcript) -> Transcript:
    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [without(each) for each in value if not (isinstance(each, dict) and each.get("name") == OURS)]
        return value

    return [(label, without(answer)) for label, answer in steps if not label.startswith(OURS)]


@pytest.fixture(scope="module", params=releases.RELEASES)
def beside(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """The brokers of one release."""
    if request.param not in IN_EVERY_RUN:
        request.getfixturevalue("whole_suites")
    with ExitStack() as stack:
        yield Beside(request.param, tmp_path_factory.mktemp("beside"), stack)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(beside: Beside, name: str) -> None:
    """Both give the same answers, but for what the table names."""
    sides = beside.sides(is_configured=needs_configured(name))
    beside.learn_versions(sides.kafka)
    theirs, ours = on_each(lambda broker: beside.play(broker, name), sides)
    ending = releases.ending(beside.release, name)
    lines = []
    if theirs.ended:
        if ending is None and not theirs.is_not_offered:
            lines.append(f"no row says why Kafka's run ends after {len(theirs.steps)} steps: {theirs.ended}")
        # Ours may go on where Kafka's has ended.
        ours = Played(ours.steps[: len(theirs.steps)], *(theirs[1:] if not theirs.is_not_offered else ours[1:]))
    elif ending is not None and theirs.steps:
        lines.append(f"the scenario no longer ends as this row says: {ending}")
    if theirs[1:] != ours[1:]:
        lines.append(f"the ends differ: kafka {theirs.ended!r}, pykafkad {ours.ended!r}")
    if not theirs.steps and ending is None and not beside.lacks(theirs.ended):
        lines.append("nothing of what Kafka answers is compared")
    there = set()
    for label, path, left, right in differing(theirs.steps, ours.steps):
        rows = releases.allowing(beside.release, name, label, path)
        there.update(rows)
        if not rows and not allowing(name, label, path):
            lines.append(f"{label}: {path}: kafka {left!r}, pykafkad {right!r}")
    stale = [row for row in releases.of_scenario(beside.release, name) if row not in there and not row.is_by_chance]
    lines += [f"nothing differs any more as this row says: {row}" for row in stale]
    if lines:
        more = f"\n… and {len(lines) - SHOWN_DIFFERENCES} more" if len(lines) > SHOWN_DIFFERENCES else ""
        pytest.fail("\n".join(lines[:SHOWN_DIFFERENCES]) + more, pytrace=False)


def test_every_row_is_of_a_scenario() -> None:
    """The run of the scenario finds whether a row is still true; so no row may be without one."""
    rows = [*releases.DIFFERENCES, *releases.ENDS]
    assert [row for row in rows if row.scenario not in SCENARIOS or not row.of_releases()] == []


def test_the_document_has_the_tables() -> None:
    """docs/releases.md is that of `python -m compat_tests.scenarios.releases`."""
    assert DOCUMENT.read_text().endswith(releases.as_markdown())
