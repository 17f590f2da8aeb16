"""Rates over windows: rows from Kafka's arithmetic, and random histories compared with the rules written down
plainly."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.quotas.rate_sensor import MAX_THROTTLE_MS, RateSensor
from tests import seeds
from tests.quotas.plain_rules import PlainRate
from tests.rows import in_turn

SAMPLES, WINDOW_MS = 11, 1000


def sensor(bound=100.0, samples=SAMPLES, window_ms=WINDOW_MS, **settings):
    return RateSensor(samples, window_ms, bound, **settings)


# What is recorded, as (milliseconds, value), and the throttle time of the last.
HISTORIES = [
    ("nothing much", [(0, 100)], 0),
    ("all that ten windows let through", [(0, 1000)], 0),
    ("twice that needs as long again", [(0, 2000)], 10_000),
    ("in parts", [(0, 900), (10, 100), (20, 1000)], 9_980),
    ("time that has passed counts", [(0, 1000), (999, 1000)], 9_001),
    ("an old sample counts to its end", [(0, 1000), (10_999, 1000)], 9_001),
    ("and then no more", [(0, 1000), (11_000, 1000)], 0),
    ("a pause makes no credit", [(0, 1), (60_000, 2000)], 10_000),
]


@in_turn("name, history, expected", HISTORIES, name_of=lambda row: row[0])
def test_histories(name, history, expected):
    made = sensor()
    for now_ms, value in history:
        found = made.charge(value, now_ms)
    plain = PlainRate(SAMPLES, WINDOW_MS, 100.0)
    assert [plain.charge(value, now_ms) for now_ms, value in history][-1] == found == expected


def test_nothing_is_throttled_without_a_bound():
    made = sensor(None)
    assert [made.charge(1e12, now_ms) for now_ms in (0, 1, 5000)] == [0, 0, 0]
    made.set_bound(100.0)
    assert made.throttle_ms(5000) > 0
    made.set_bound(None)
    assert made.throttle_ms(5000) == 0


def test_a_changed_bound_counts_for_what_is_recorded():
    made = sensor(1000.0)
    assert made.charge(2000, 0) == 0
    made.set_bound(100.0)
    assert made.charge(0, 0) == 10_000
    made.set_bound(1000.0)
    assert made.charge(0, 0) == 0


def test_what_is_taken_back_does_not_count():
    made = sensor()
    assert made.charge(5000, 0) > 0
    made.record(-5000, 0)
    assert made.charge(1000, 0) == 0


def test_the_most_at_once_is_just_not_throttled():
    assert sensor().most_at_once == 1000
    assert sensor().charge(1000, 5) == 0
    assert sensor().charge(1001, 5) > 0
    assert sensor(samples=1).most_at_once == 0
    assert sensor(None).most_at_once == float("inf")


@pytest.mark.parametrize("bound", [5e-324, 1e-300, 1.0])
def test_the_throttle_time_has_a_limit(bound):
    assert sensor(bound).charge(1e15, 0) == MAX_THROTTLE_MS
    assert sensor(bound, max_throttle_ms=1000).charge(1e15, 0) == 1000


def test_it_is_idle_when_its_last_window_is_over():
    made = sensor()
    assert made.is_idle(0)
    made.charge(1, 0)
    made.charge(1, 1500)
    assert not made.is_idle(1500 + 10_999)
    assert made.is_idle(1500 + 11_000)


@pytest.mark.parametrize("life", range(seeds.examples(300)))
def test_random_histories(life):
    """The shortcut of not measuring changes no throttle time."""
    dice = Random(f"{life} {seeds.seed_of_the_code()}")
    samples, window_ms = dice.choice([1, 2, 3, 11]), dice.choice([1, 10, 1000])
    bound = dice.choice([None, 1.0, 50.0, 1000.0])
    made, plain = RateSensor(samples, window_ms, bound), PlainRate(samples, window_ms, bound)
    now_ms, wanted = 0, (bound or 100.0) * window_ms / 1000
    for _ in range(150):
        now_ms += int(dice.choice([0, 1, dice.uniform(0, window_ms), dice.uniform(0, 15 * window_ms)]))
        while now_ms / 1000 * 1000 != now_ms:
            now_ms += 1
        value = dice.choice([0, 1, int(dice.uniform(0, 3 * wanted)), int(dice.uniform(0, 20 * wanted))])
        step = dice.random()
        if step < 0.1:
            bound = dice.choice([None, 1.0, 50.0, 1000.0])
            made.set_bound(bound)
            plain.bound = bound
        elif step < 0.2:
            made.record(value, now_ms)
            plain.record(value, now_ms)
        elif step < 0.4:
            # As the fast path of Produce does.
            if now_ms / 1000 >= made.until:
                made.settle()
            made.turn = now_ms / 1000
            made.at_most += value + 1
            plain.record(value + 1, now_ms)
        else:
            assert made.charge(value, now_ms) == plain.charge(value, now_ms)
            if step > 0.8:
                made.record(-value, now_ms)
                plain.record(-value, now_ms)


def test_what_was_added_in_a_turn_counts_from_then_on():
    made = sensor()
    assert made.until < 5.0
    made.settle()
    made.turn = 5.0
    made.at_most += 2000
    assert not made.is_idle(5000)
    assert made.throttle_ms(5000) == 10_000
    assert 5.9 < made.until < 6.0
    made.settle()
    made.turn = 20.0
    made.at_most += 2000
    made.settle()
    assert made.throttle_ms(21_000) == 10_000, "what was added in the first turn is over by then"
    assert not made.is_idle(20_000 + 10_999)
    assert made.is_idle(21_000 + 11_000)
