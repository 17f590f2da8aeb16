"""Buckets of tokens: bursts, strict and permissive requests, and random histories beside the plain rules."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.quotas.rate_sensor import MAX_THROTTLE_MS
from pykafkad.quotas.token_bucket import MutationQuota, TokenBucket
from tests import seeds
from tests.quotas.plain_rules import PlainBucket


class Watch:
    """A clock of milliseconds."""

    def __init__(self):
        self.ms = 0

    def __call__(self):
        return self.ms


def recorded(quota, count):
    """Whether the change may be made."""
    try:
        quota.record(count)
    except KafkaError as error:
        assert error.code == errors.THROTTLING_QUOTA_EXCEEDED
        return False
    return True


def test_a_strict_request_is_refused_once_the_bucket_lacks_tokens():
    watch, bucket = Watch(), TokenBucket(11, 1000, 2.0)
    first = MutationQuota(bucket, True, watch)
    # A burst of 22, and one more change while there are any left or none.
    assert [recorded(first, count) for count in (20, 2, 10, 1, 1)] == [True, True, True, False, False]
    assert first.throttle_ms == 5000
    watch.ms = 2000
    assert first.throttle_ms == 3000
    second = MutationQuota(bucket, True, watch)
    assert second.throttle_ms == 0
    assert not recorded(second, 1)
    watch.ms = 5000
    assert second.throttle_ms == 0
    assert recorded(second, 1)


def test_a_permissive_request_is_throttled_and_never_refused():
    watch, bucket = Watch(), TokenBucket(11, 1000, 2.0)
    quota = MutationQuota(bucket, False, watch)
    assert [recorded(quota, count) for count in (22, 10, 1)] == [True, True, True]
    assert quota.throttle_ms == 5500
    watch.ms = 60_000
    assert quota.throttle_ms == 0


def test_a_bucket_without_a_bound_is_never_empty_and_one_that_gets_a_bound_is_full():
    bucket = TokenBucket(11, 1000, None)
    bucket.take(1e9, 5)
    assert (bucket.throttle_ms(5), bucket.is_idle(5)) == (0, True)
    bucket.set_bound(1.0)
    assert bucket.is_idle(5)
    bucket.take(11, 5)
    assert (bucket.throttle_ms(5), bucket.is_idle(5)) == (0, False)
    bucket.take(1, 5)
    assert bucket.throttle_ms(5) == 1000
    bucket.set_bound(None)
    assert bucket.throttle_ms(5) == 0


def test_the_throttle_time_has_a_limit():
    bucket = TokenBucket(11, 1000, 5e-324)
    bucket.take(1, 0)
    assert bucket.throttle_ms(0) == MAX_THROTTLE_MS


@pytest.mark.parametrize("life", range(seeds.examples(100)))
def test_random_histories(life):
    dice = Random(f"{life} {seeds.seed_of_the_code()}")
    rate, watch = dice.choice([0.5, 1.0, 8.0]), Watch()
    bucket, plain = TokenBucket(11, 1000, rate), PlainBucket(11, 1000, rate)
    for _ in range(100):
        watch.ms += int(dice.choice([0, 1, dice.uniform(0, 1000), dice.uniform(0, 20_000)]))
        count, is_strict = dice.randrange(20), dice.random() < 0.7
        quota = MutationQuota(bucket, is_strict, watch)
        allowed = recorded(quota, count)
        expected, throttle_ms = (plain.strict if is_strict else plain.permissive)(count, watch.ms)
        assert (allowed, quota.throttle_ms) == (expected, throttle_ms)
