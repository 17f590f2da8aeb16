"""Which quota counts for whom, who shares it, and how many sensors there are."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.quotas import client_quota
from pykafkad.quotas.client_quota import ClientQuota
from pykafkad.quotas.limits import Limits
from pykafkad.quotas.rate_sensor import RateSensor
from tests import seeds
from tests.quotas import plain_rules
from tests.rows import in_turn


def quota(limits=None):
    made = ClientQuota(lambda bound: RateSensor(11, 1000, bound))
    made.set_limits(limits or {})
    return made


# From the strongest to the weakest, with who shares the quota for alice with the client id app.
ENTITIES = [
    (("alice", "app"), ("alice", "app")),
    (("alice", ""), ("alice", "app")),
    (("alice", None), ("alice", "")),
    (("", "app"), ("alice", "app")),
    (("", ""), ("alice", "app")),
    (("", None), ("alice", "")),
    ((None, "app"), ("", "app")),
    ((None, ""), ("", "app")),
]


@in_turn("position", range(len(ENTITIES)))
def test_the_most_specific_entity_decides(position):
    limits = Limits({entity: 1.0 + number for number, (entity, _) in enumerate(ENTITIES) if number >= position})
    sharers = limits.sharers("alice", "app")
    assert sharers == ENTITIES[position][1]
    assert limits.of(sharers) == 1.0 + position


def test_others_have_other_quotas():
    limits = Limits({("alice", "app"): 1.0, (None, "tool"): 2.0})
    for user, client_id, expected in (
        ("alice", "app", 1.0),
        ("bob", "app", None),
        ("alice", "other", None),
        ("alice", "tool", 2.0),
        ("bob", "tool", 2.0),
        ("bob", "", None),
    ):
        assert limits.of(limits.sharers(user, client_id)) == expected, (user, client_id)


def test_a_client_without_an_id_has_no_part_in_the_quotas_of_pairs():
    limits = Limits({("alice", ""): 1.0, ("alice", None): 2.0, (None, ""): 3.0})
    assert limits.of(limits.sharers("alice", "")) == 2.0
    assert limits.of(limits.sharers("bob", "")) is None


def test_an_infinite_quota_is_none_and_hides_weaker_ones():
    limits = Limits({("alice", None): float("inf"), ("", None): 1.0})
    assert limits.of(limits.sharers("alice", "app")) is None
    assert limits.of(limits.sharers("bob", "app")) == 1.0


def test_whom_a_quota_concerns():
    for entity, users in (
        (("alice", "app"), ["alice"]),
        (("alice", None), ["alice"]),
        (("", "app"), ["alice", "bob"]),
        ((None, "app"), ["alice", "bob"]),
        ((None, ""), ["alice", "bob"]),
    ):
        made = quota({entity: 1.0})
        assert made.is_set
        assert [user for user in ("alice", "bob") if made.concerns(user)] == users, entity
    assert not quota().is_set
    assert not quota().concerns("alice")


def test_clients_of_a_user_share_a_sensor_and_users_of_a_client_id_do():
    made = quota({("alice", None): 1.0, (None, "tool"): 2.0})
    assert made.sensor("alice", "app", 0) is made.sensor("alice", "tool", 0) is not None
    assert made.sensor("bob", "tool", 0) is made.sensor("carol", "tool", 0) is not made.sensor("alice", "tool", 0)
    assert made.sensor("bob", "app", 0) is None
    pairs = quota({("", ""): 1.0})
    assert pairs.sensor("alice", "app", 0) is not pairs.sensor("alice", "tool", 0)


def test_changed_limits_count_at_once_for_sensors_that_are_there():
    made = quota({("alice", None): 1.0})
    sensor = made.sensor("alice", "app", 0)
    made.set_limits({("", None): 5.0})
    assert made.sensor("alice", "app", 0) is sensor
    assert sensor.bound == 5.0
    made.set_limits({})
    assert (sensor.bound, made.sensor("alice", "app", 0)) == (None, None)
    made.set_limits({("alice", "app"): 2.0})
    assert made.sensor("alice", "app", 0) is not sensor


@pytest.mark.parametrize("life", range(seeds.examples(100)))
def test_random_limits(life):
    dice = Random(f"{life} {seeds.seed_of_the_code()}")
    made = quota()
    for _ in range(20):
        limits = {}
        for _ in range(dice.randrange(8)):
            entity = (dice.choice([None, "", "u", "v"]), dice.choice([None, "", "c", "d"]))
            if entity != (None, None):
                limits[entity] = dice.choice([1.0, 2.0, 3.0])
        made.set_limits(limits)
        sensors = {}
        for user in ("u", "v", "w"):
            for client_id in ("c", "d", "e"):
                sensor = made.sensor(user, client_id, 0)
                expected = plain_rules.limit_of(limits, user, client_id)
                assert made.sensor(user, client_id, 0) is sensor
                if expected is None:
                    assert sensor is None
                    continue
                assert sensor.bound == expected[0]
                assert sensors.setdefault(expected[1:], sensor) is sensor
        assert len(set(map(id, sensors.values()))) == len(sensors)


def test_there_are_no_more_sensors_than_allowed(monkeypatch):
    monkeypatch.setattr(client_quota, "MAX_SENSORS", 100)
    made = quota({(None, ""): 1.0})
    busy = made.sensor("u", "busy", 0)
    busy.charge(5, 11_000)
    for number in range(1000):
        made.sensor("u", f"client-{number}", 11_000)
        assert len(made) <= 100
    # Those that had nothing to tell went first.
    assert made.sensor("u", "busy", 11_000) is busy


def test_sensors_with_something_to_tell_go_when_there_are_too_many_of_them(monkeypatch):
    monkeypatch.setattr(client_quota, "MAX_SENSORS", 100)
    made = quota({(None, ""): 1.0})
    for number in range(1000):
        made.sensor("u", f"client-{number}", 0).charge(5, 0)
        assert len(made) <= 100
    assert made.sensor("u", "client-999", 0).throttle_ms(0) == 0


def test_long_names_take_no_more_memory_than_allowed(monkeypatch):
    monkeypatch.setattr(client_quota, "MAX_NAME_CHARACTERS", 100_000)
    made = quota({(None, ""): 1.0})
    for number in range(200):
        made.sensor("u", f"{number}{'x' * 10_000}", 0).charge(1, 0)
        assert len(made) <= 10
