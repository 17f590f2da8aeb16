"""Any bytes give a value or the promised error, from every decoder: a hundred thousand inputs in `make test`."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from tests.fuzz import coverage, mutation
from tests.fuzz.target import Target
from tests.seeds import examples, seed_of_the_code

INPUTS, QUICK_INPUTS = 100_000, 10_000
BY_COVERAGE, QUICK_BY_COVERAGE = 20_000, 1_000
# Instrumenting what the compiler of the schemas makes takes half a minute; the mutations have them.
MESSAGES = "messages"


def _names(target: Target) -> str:
    return target.name.replace(" ", "-")


@pytest.mark.timeout(600)
def test_mutations_of_valid_bytes(pytestconfig):
    """Bounded time and memory too. Repeat with: python -m tests.fuzz --inputs 100000 --seed SEED."""
    is_quick = pytestconfig.getoption("--quick")
    count = QUICK_INPUTS if is_quick else INPUTS
    seed = f"{seed_of_the_code():x}"
    report = mutation.run(count, seed)
    assert report.findings == [], f"repeat with: python -m tests.fuzz --inputs {count} --seed {seed}"
    assert report.total == count
    if is_quick:
        # The slow targets get some thirty inputs then: too few to say how many of them are values.
        return
    # A fuzzer whose every input is refused at the first byte, or let in, tests nothing.
    for name, inputs in report.inputs.items():
        # Of the few directories of files thirteen are refused; two fewer than a hundredth would be by chance.
        assert inputs * 0.02 < report.values[name] < inputs * 0.99 + 2, (name, inputs, report.values[name])


@pytest.mark.parametrize("target", mutation.TARGETS, ids=_names)
def test_valid_bytes_are_values(target):
    """What the mutations start from."""
    draw = random.Random(5)
    outcomes = [target.check(target.example(draw)) for _ in range(60)]
    assert sum(outcomes) > (3 if target.name == "small files" else 30)


@pytest.mark.parametrize("target", mutation.TARGETS, ids=_names)
@hypothesis_settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes(target, data):
    """Hypothesis's bytes, which it makes small when they break something."""
    target.check(data)


@pytest.mark.parametrize("target", mutation.TARGETS, ids=_names)
@hypothesis_settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_valid_bytes_with_something_in_the_middle(target, data):
    """Valid bytes cut anywhere, other bytes put in, the rest behind them."""
    example = target.example(random.Random(data.draw(st.integers(0, 1000))))
    start = data.draw(st.integers(0, len(example)))
    end = data.draw(st.integers(start, len(example)))
    target.check(example[:start] + data.draw(st.binary(max_size=20)) + example[end:])


@pytest.mark.timeout(600)
def test_inputs_that_are_led_by_coverage(capfd, pytestconfig):
    """atheris, where it can be installed."""
    pytest.importorskip("atheris")
    names = [target.name for target in mutation.TARGETS if target.name != MESSAGES]
    count = QUICK_BY_COVERAGE if pytestconfig.getoption("--quick") else BY_COVERAGE
    code = coverage.run(count, names, seed_of_the_code() % (1 << 31))
    said = "".join(capfd.readouterr())
    assert code == 0, said[-4000:]
    # It may do a few more than it was told to.
    assert int(re.search(r"Done (\d+) runs", said)[1]) >= count, said[-4000:]


def _broken(check):
    return Target("broken", 1, lambda draw: draw.randbytes(20), check)


def test_what_goes_wrong_is_found():
    """A guard for the guard: an error, a loop without end and memory without bound are findings, with the bytes that do
    it."""

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


def test_what_takes_too_long_is_found(monkeypatch):
    """By the processor's time of one input, and by the clock where it never ends."""
    monkeypatch.setattr(mutation, "LIMIT_SECONDS", 0.01)

    def slow(data):
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
        return True

    assert "broken: 0.0 s" in mutation.run(2, 1, [_broken(slow)]).findings[0]
    monkeypatch.setattr(mutation, "ROUND_SECONDS", 0.5)
    calls = []

    def endless(data):
        calls.append(data)
        # The first call only warms up.
        time.sleep(0 if len(calls) == 1 else 60)

    assert mutation.run(2, 1, [_broken(endless)]).findings[0].startswith("broken: Finding: took longer")
