"""Delegation tokens: their HMACs, who may do what with them, their times, limits, and restarts."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.metadata import delegation_tokens, features, record_codec
from pykafkad.metadata.events import (
    CreateDelegationToken,
    ExpireDelegationToken,
    RemoveExpiredTokens,
    RenewDelegationToken,
)
from tests.metadata.cluster import Cluster, facts

NOW_MS = 1_700_000_000_000
SECRET = "the secret of the cluster"
DAY_MS, WEEK_MS = 86_400_000, 604_800_000
ALICE, BOB = ("User", "alice"), ("User", "bob")


def enabled(**settings):
    """A cluster with tokens."""
    return Cluster(delegation_token_secret_key=SECRET, **settings)


def create(cluster, *, owner=ALICE, requester="User:alice", renewers=(), max_lifetime_ms=-1, now_ms=NOW_MS):
    return cluster.submit(
        CreateDelegationToken("token", now_ms, owner, requester, list(renewers), max_lifetime_ms, names_requester=True)
    )


def renew(cluster, hmac, *, requester="User:alice", period_ms=-1, now_ms=NOW_MS):
    answer = cluster.submit(RenewDelegationToken("token", now_ms, requester, hmac, period_ms))
    return answer.error_code, answer.expiry_timestamp_ms - now_ms if answer.error_code == 0 else None


def expire(cluster, hmac, *, requester="User:alice", period_ms=-1, now_ms=NOW_MS):
    answer = cluster.submit(ExpireDelegationToken("token", now_ms, requester, hmac, period_ms))
    return answer.error_code, answer.expiry_timestamp_ms - now_ms if answer.error_code == 0 else None


def test_an_hmac_is_that_of_java():
    """HmacSHA512 with a secret and an id, as Java's Mac and openssl compute it."""
    assert delegation_tokens.hmac_of("secret-key", "J3pqBGPXQsGhOmoUHYvOGg").hex() == (
        "5519d5a0fe18e2b1705b040c6e6445058764365176838288a3c77ff9f067a776"
        "4c32e86807c95783378b454f3061e336935879bd6b484f016c962268afe066de"
    )


def test_a_token_is_made_kept_and_found_after_a_restart():
    cluster = enabled()
    answer = create(cluster, renewers=[BOB])
    assert (answer.error_code, answer.principal_type, answer.principal_name) == (0, *ALICE)
    assert (answer.token_requester_principal_type, answer.token_requester_principal_name) == ALICE
    assert len(answer.token_id) == 22
    assert answer.hmac == delegation_tokens.hmac_of(SECRET, answer.token_id) and len(answer.hmac) == 64
    assert (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms) == (
        NOW_MS,
        NOW_MS + DAY_MS,
        NOW_MS + WEEK_MS,
    )
    again = Cluster(cluster.disk, delegation_token_secret_key=SECRET)
    assert facts(again.image.delegation_tokens) == facts(cluster.image.delegation_tokens)
    (token,) = again.image.delegation_tokens.values()
    assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:alice", ["User:bob"])
    assert renew(again, answer.hmac, period_ms=5) == (0, 5)


def test_neither_hmac_nor_secret_is_stored():
    cluster = enabled()
    answer = create(cluster)
    stored = b"".join(value for _, batch in cluster.disk.batches for _, value in batch)
    assert answer.token_id.encode() in stored
    assert bytes(answer.hmac) not in stored and SECRET.encode() not in stored


def test_two_tokens_differ():
    cluster = enabled()
    one, other = create(cluster), create(cluster)
    assert one.token_id != other.token_id and one.hmac != other.hmac
    assert set(cluster.image.delegation_tokens) == {one.token_id, other.token_id}


@pytest.mark.parametrize(
    ("asked_ms", "life_ms", "first_ms"),
    [
        (-1, 9000, 4000),
        (0, 9000, 4000),
        (1, 1, 1),
        (4001, 4001, 4000),
        (9001, 9000, 4000),
        (2**63 - 1, 9000, 4000),
    ],
)
def test_a_life_is_as_long_as_asked_and_no_longer_than_the_settings_say(asked_ms, life_ms, first_ms):
    cluster = enabled(delegation_token_max_lifetime_ms="9000", delegation_token_expiry_time_ms="4000")
    answer = create(cluster, max_lifetime_ms=asked_ms)
    assert (answer.max_timestamp_ms - NOW_MS, answer.expiry_timestamp_ms - NOW_MS) == (life_ms, first_ms)


def test_times_do_not_overflow():
    endless = str(2**63 - 1)
    cluster = enabled(delegation_token_max_lifetime_ms=endless, delegation_token_expiry_time_ms=endless)
    answer = create(cluster)
    assert answer.max_timestamp_ms == answer.expiry_timestamp_ms == 2**63 - 1
    assert renew(cluster, answer.hmac) == (0, 2**63 - 1 - NOW_MS)
    assert expire(cluster, answer.hmac, period_ms=2**63 - 1) == (0, 2**63 - 1 - NOW_MS)


@pytest.mark.parametrize("secret", ({}, {"delegation_token_secret_key": ""}))
def test_without_a_secret_there_are_no_tokens(secret):
    code = errors.DELEGATION_TOKEN_AUTH_DISABLED
    cluster = Cluster(**secret)
    answer = create(cluster, renewers=[("Group", "g")])
    assert (answer.error_code, answer.principal_name, answer.issue_timestamp_ms, answer.hmac) == (code, "alice", 0, b"")
    assert renew(cluster, b"x") == expire(cluster, b"x") == (code, None)
    assert not cluster.image.delegation_tokens


def test_an_old_metadata_version_has_no_tokens():
    cluster = enabled()
    hmac = create(cluster).hmac
    cluster.image.features[features.METADATA_VERSION] = features.TOKENS_SINCE - 1
    code = errors.UNSUPPORTED_VERSION
    assert create(cluster).error_code == code
    assert renew(cluster, hmac) == expire(cluster, hmac) == (code, None)
    cluster.image.features[features.METADATA_VERSION] = features.TOKENS_SINCE
    assert renew(cluster, hmac) == (0, DAY_MS)


def test_only_users_are_renewers():
    cluster = enabled()
    answer = create(cluster, renewers=[BOB, ("Group", "g")])
    assert answer.error_code == errors.INVALID_PRINCIPAL_TYPE and not cluster.image.delegation_tokens


def test_a_token_that_does_not_fit_one_batch_is_refused():
    cluster = enabled()
    answer = create(cluster, renewers=[("User", "x" * 30_000)] * 300)
    assert answer.error_code == errors.POLICY_VIOLATION and answer.hmac == b"" and answer.token_id == ""
    assert not cluster.image.delegation_tokens and record_codec.MAX_CHANGE_BYTES < 300 * 30_000


def test_owner_and_renewers_renew_and_expire_and_nobody_else():
    """Who has asked for somebody else's token is nobody in particular, as in Kafka."""
    cluster = enabled()
    hmac = create(cluster, owner=BOB, renewers=[("User", "carol")]).hmac
    mismatch = errors.DELEGATION_TOKEN_OWNER_MISMATCH
    for who in ("User:alice", "User:eve", "User:", "Group:bob"):
        for period_ms in (-1, 1):
            assert renew(cluster, hmac, requester=who, period_ms=period_ms) == (mismatch, None)
            assert expire(cluster, hmac, requester=who, period_ms=period_ms) == (mismatch, None)
    for who in ("User:bob", "User:carol"):
        assert renew(cluster, hmac, requester=who, period_ms=7) == (0, 7)
        assert expire(cluster, hmac, requester=who, period_ms=9) == (0, 9)
    assert expire(cluster, hmac, requester="User:carol") == (0, 0)
    assert not cluster.image.delegation_tokens


@pytest.mark.parametrize("period_ms", (-1, 0, 1, 4000, 4001, 2**63 - 1))
def test_a_token_is_renewed_for_as_long_as_asked(period_ms):
    """By the settings at most, and by them too where nothing is asked; never beyond its longest life."""
    cluster = enabled(delegation_token_max_lifetime_ms="9000", delegation_token_expiry_time_ms="4000")
    hmac = create(cluster).hmac
    expected = 4000 if period_ms <= 0 else min(period_ms, 4000)
    assert renew(cluster, hmac, period_ms=period_ms) == (0, expected)
    assert renew(cluster, hmac, now_ms=NOW_MS + 1) == (0, 4000)
    late = NOW_MS + 4000
    assert renew(cluster, hmac, now_ms=late) == (0, 4000)
    assert renew(cluster, hmac, now_ms=late + 3000) == (0, 2000)
    (token,) = cluster.image.delegation_tokens.values()
    assert token.expiration_timestamp == token.max_timestamp == NOW_MS + 9000 and token.issue_timestamp == NOW_MS


def test_what_has_expired_is_not_renewed_and_can_still_be_ended():
    cluster = enabled(delegation_token_expiry_time_ms="4000")
    hmac = create(cluster).hmac
    expired, late = errors.DELEGATION_TOKEN_EXPIRED, NOW_MS + 4001
    assert renew(cluster, hmac, now_ms=late) == expire(cluster, hmac, period_ms=0, now_ms=late) == (expired, None)
    # Kafka says this first to a renewal, and last to an end.
    assert renew(cluster, hmac, requester="User:eve", now_ms=late) == (expired, None)
    mismatch = (errors.DELEGATION_TOKEN_OWNER_MISMATCH, None)
    assert expire(cluster, hmac, requester="User:eve", period_ms=0, now_ms=late) == mismatch
    assert expire(cluster, hmac, now_ms=late) == (0, 0)
    assert not cluster.image.delegation_tokens


def test_an_expiry_is_no_later_than_the_longest_life():
    cluster = enabled(delegation_token_max_lifetime_ms="9000", delegation_token_expiry_time_ms="4000")
    hmac = create(cluster).hmac
    for period_ms, expected in ((0, 0), (8999, 8999), (9001, 9000)):
        assert expire(cluster, hmac, period_ms=period_ms) == (0, expected)


def test_an_hmac_of_no_token_is_not_found():
    cluster = enabled()
    hmac = create(cluster).hmac
    code = errors.DELEGATION_TOKEN_NOT_FOUND
    for wrong in (b"", hmac[:-1], hmac + b"x", bytes(64)):
        assert renew(cluster, wrong) == expire(cluster, wrong) == (code, None)
    other = create(cluster).hmac
    assert expire(cluster, hmac) == (0, 0)
    assert renew(cluster, hmac) == (code, None) and renew(cluster, other) == (0, DAY_MS)


def test_hmacs_are_computed_once(monkeypatch):
    """A request looks at the tokens that came since the last one."""
    cluster = enabled()
    hmacs = [create(cluster).hmac for _ in range(3)]
    assert renew(cluster, hmacs[0]) == (0, DAY_MS)
    made = []
    real = delegation_tokens.hmac_of
    monkeypatch.setattr(delegation_tokens, "hmac_of", lambda *given: made.append(given) or real(*given))
    for hmac in hmacs:
        assert renew(cluster, hmac) == (0, DAY_MS)
    assert made == []


def test_expired_tokens_are_removed_a_bounded_number_at_a_time(monkeypatch):
    monkeypatch.setattr(delegation_tokens, "MAX_EXPIRED_PER_CHANGE", 2)
    cluster = enabled()
    short = [create(cluster, max_lifetime_ms=10).token_id for _ in range(3)]
    kept = create(cluster).token_id
    assert cluster.submit(RemoveExpiredTokens("token", NOW_MS + 10)) == 0
    assert cluster.submit(RemoveExpiredTokens("token", NOW_MS + 11)) == 2
    assert set(cluster.image.delegation_tokens) == {short[2], kept}
    assert cluster.submit(RemoveExpiredTokens("token", NOW_MS + 11)) == 1
    assert cluster.submit(RemoveExpiredTokens("token", NOW_MS + 11)) == 0
    assert set(cluster.image.delegation_tokens) == {kept}


def rows_of(steps):
    """What a generator returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


def test_an_owner_and_all_together_have_a_limit():
    cluster = Cluster(
        delegation_token_secret_key=SECRET,
        pykafkad_delegation_tokens_max="3",
        pykafkad_delegation_tokens_max_per_owner="2",
    )
    hmacs = [create(cluster).hmac for _ in range(2)]
    assert create(cluster).error_code == errors.POLICY_VIOLATION
    assert create(cluster, owner=BOB).error_code == 0
    assert create(cluster, owner=BOB).error_code == errors.POLICY_VIOLATION
    # Who renews has none more, and who ends one has room.
    assert renew(cluster, hmacs[0]) == (0, DAY_MS)
    assert expire(cluster, hmacs[0]) == (0, 0)
    assert create(cluster, owner=BOB).error_code == 0
    assert cluster.image.delegation_token_counts == {"User:alice": 1, "User:bob": 2}
    again = Cluster(cluster.disk, delegation_token_secret_key=SECRET)
    assert again.image.delegation_token_counts == {"User:alice": 1, "User:bob": 2}


def test_the_hmacs_of_many_tokens_are_computed_step_by_step(monkeypatch):
    """After a start a controller knows none; another request may be served after each."""
    cluster = enabled()
    for _ in range(5):
        last = create(cluster).hmac
    made = []
    real = delegation_tokens.hmac_of
    monkeypatch.setattr(delegation_tokens, "hmac_of", lambda *given: made.append(given) or real(*given))
    tokens = delegation_tokens.TokensByHmac(cluster.image, SECRET)
    assert [len(made) for _ in tokens.follow()] == [1, 2, 3, 4, 5]
    assert tokens.find(last) is not None and len(made) == 5
    expire(cluster, last)
    assert tokens.find(last) is None and len(tokens._ids) == len(tokens._hmacs) == 4


def test_a_description_goes_on_when_a_token_ends_meanwhile():
    cluster = enabled()
    hmacs = [create(cluster).hmac for _ in range(3)]
    steps = delegation_tokens.describe(cluster.image, SECRET, "User:alice", None, lambda token: False, True)
    next(steps)
    expire(cluster, hmacs[2])
    assert len(rows_of(steps)) == 2


def described(cluster, asking, owners=None, may_see=lambda token: False):
    rows = rows_of(delegation_tokens.describe(cluster.image, SECRET, asking, owners, may_see, names_requester=True))
    assert all(row.hmac == delegation_tokens.hmac_of(SECRET, row.token_id) for row in rows)
    return {row.token_id for row in rows}


def test_who_owns_renews_or_asked_for_a_token_sees_it():
    cluster = enabled()
    own = create(cluster).token_id
    for_bob = create(cluster, owner=BOB, renewers=[("User", "carol")]).token_id
    assert described(cluster, "User:alice") == {own, for_bob}
    assert described(cluster, "User:bob") == described(cluster, "User:carol") == {for_bob}
    assert described(cluster, "User:eve") == described(cluster, "User:alice", set()) == set()
    assert described(cluster, "User:alice", {"User:bob"}) == {for_bob}
    assert described(cluster, "User:alice", {"User:alice"}) == {own, for_bob}
    assert described(cluster, "User:alice", {"User:eve"}) == set()
    seen = []
    assert described(cluster, "User:eve", {"User:carol"}, lambda token: seen.append(token.owner) or True) == {for_bob}
    assert seen == ["User:bob"]


def test_a_description_has_all_of_a_token():
    cluster = enabled()
    made = create(cluster, owner=("User", "b:c"), renewers=[BOB, ("User", "")])
    (row,) = rows_of(delegation_tokens.describe(cluster.image, SECRET, "User:alice", None, lambda token: False, True))
    assert (row.principal_type, row.principal_name) == ("User", "b:c")
    assert (row.token_requester_principal_type, row.token_requester_principal_name) == ALICE
    assert (row.issue_timestamp, row.expiry_timestamp, row.max_timestamp) == (
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )
    assert [(each.principal_type, each.principal_name) for each in row.renewers] == [BOB, ("User", "")]
