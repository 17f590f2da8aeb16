"""Any bytes give a value or the documented error, from every decoder. `make test` tries a hundred thousand inputs."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from tests.fuzz import coverage, mutation
from tests.fuzz.target import Target
from tests.seeds import examples, seed_of_the_code

INPUTS, QUICK_INPUTS = 100_000, 4_000
BY_COVERAGE, QUICK_BY_COVERAGE = 20_000, 1_000
# Instrumenting the compiled functions of the schemas takes half a minute. The mutations test these functions.
MESSAGES = "messages"


def _names(target: Target) -> str:
    return target.name.replace(" ", "-")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_mutated_bytes_are_values_or_documented_errors(pytestconfig):
    """Time and memory are limited too. Repeat with: python -m tests.fuzz --inputs 100000 --seed SEED."""
    is_quick = pytestconfig.getoption("--quick")
    count = QUICK_INPUTS if is_quick else INPUTS
    seed = f"{seed_of_the_code():x}"
    report = mutation.run(count, seed)
    assert report.findings == [], f"repeat with: python -m tests.fuzz --inputs {count} --seed {seed}"
    assert report.total == count
    if is_quick:
        # A quick run gives the slow targets about thirty inputs: too few to say how many of them are values.
        return
    # A fuzzer whose inputs are all refused at the first byte, or all accepted, tests nothing.
    for name, inputs in report.inputs.items():
        # Few inputs are directories of files, and about thirteen of these are refused: 2 allows for chance.
        assert inputs * 0.02 < report.values[name] < inputs * 0.99 + 2, (name, inputs, report.values[name])


@pytest.mark.parametrize("target", mutation.TARGETS, ids=_names)
def test_valid_bytes_are_values(target):
    """Mutations start from these bytes."""
    draw = random.Random(5)
    outcomes = [target.check(target.example(draw)) for _ in range(60)]
    assert sum(outcomes) > (3 if target.name == "small files" else 30)


@pytest.mark.parametrize("target", mutation.TARGETS, ids=_names)
@hypothesis_settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_values_or_documented_errors(target, data):
    """Hypothesis draws the bytes and shrinks those of a failure."""
    target.check(data)


@pytest.mark.parametrize("target", mutation.TARGETS, ids=_names)
@hypothesis_settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_valid_bytes_with_an_insertion_are_values_or_documented_errors(target, data):
    """Other bytes are inserted anywhere into valid bytes."""
    example = target.example(random.Random(data.draw(st.integers(0, 1000))))
    start = data.draw(st.integers(0, len(example)))
    end = data.draw(st.integers(start, len(example)))
    target.check(example[:start] + data.draw(st.binary(max_size=20)) + example[end:])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_inputs_guided_by_coverage_are_values_or_documented_errors(capfd, pytestconfig):
    """atheris draws the inputs, where it can be installed."""
    pytest.importorskip("atheris")
    names = [target.name for target in mutation.TARGETS if target.name != MESSAGES]
    count = QUICK_BY_COVERAGE if pytestconfig.getoption("--quick") else BY_COVERAGE
    code = coverage.run(count, names, seed_of_the_code() % (1 << 31))
    said = "".join(capfd.readouterr())
    assert code == 0, said[-4000:]
    # It may run a few more inputs than it was asked to.
    assert int(re.search(r"Done (\d+) runs", said)[1]) >= count, said[-4000:]


def _broken(check):
    return Target("broken", 1, lambda draw: draw.randbytes(20), check)


@pytest.mark.long
def test_errors_endless_loops_and_memory_growth_are_findings():
    """Tests the fuzzer itself: each finding has the bytes that caused it."""

    def error(data):
        if data[:1] < b"\x10":
            raise IndexError("beyond the end")
        return True

    report = mutation.run(1000, 1, [_broken(error)])
    assert 10 < len(report.findings) < 200
    assert report.findings[0].startswith("broken: IndexError: beyond the end: 0")
    kept = []
    report = mutation.run(20, 1, [_broken(lambda data: kept.append(b"x" * (20 << 20)) or True)])
    assert report.findings == [f"the process grew by {report.growth_mb:.0f} MB"]
    kept.clear()


def test_a_slow_input_is_a_finding(monkeypatch):
    """Processor time counts for one input, and wall-clock time when it never ends."""
    monkeypatch.setattr(mutation, "LIMIT_SECONDS", 0.01)

    def slow(data):
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
        return True

    assert "broken: 0.0 s" in mutation.run(2, 1, [_broken(slow)]).findings[0]
    monkeypatch.setattr(mutation, "ROUND_SECONDS", 0.1)
    calls = []

    def endless(data):
        calls.append(data)
        # The first call is a warm-up.
        time.sleep(0 if len(calls) == 1 else 60)

    assert mutation.run(2, 1, [_broken(endless)]).findings[0].startswith("broken: Finding: took longer")
