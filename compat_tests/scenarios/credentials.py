"""SCRAM credentials (DescribeUserScramCredentials, AlterUserScramCredentials), and SASL and delegation tokens without
SASL.
"""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.registry import scenario

SHA_256, SHA_512 = 1, 2


def credential(name: str, **fields: Any) -> Any:
    """One upsertion."""
    wanted = {"mechanism": SHA_256, "iterations": 4096, "salt": b"salt", "salted_password": b"p" * 32, **fields}
    return part("AlterUserScramCredentials", "ScramCredentialUpsertion", name=name, **wanted)


def removal(name: str, mechanism: int = SHA_256) -> Any:
    """One deletion."""
    return part("AlterUserScramCredentials", "ScramCredentialDeletion", name=name, mechanism=mechanism)


def alter(broker: Exchange, note: str, deletions: list[Any], upsertions: list[Any]) -> None:
    """Record an AlterUserScramCredentials request."""
    broker.ask("AlterUserScramCredentials", 0, note=note, deletions=deletions, upsertions=upsertions)


def users(*names: str) -> list[Any]:
    """Users to describe."""
    return [part("DescribeUserScramCredentials", "UserName", name=name) for name in names]


def settled(broker: Exchange, name: str, count: int) -> None:
    """Wait until the broker shows `count` credentials of a user: a Kafka broker learns of them a moment after the
    answer.
    """
    broker.until(
        lambda: broker.quietly("DescribeUserScramCredentials", 0, users=users(name)),
        lambda answer: len(answer.results[0].credential_infos) == count,
    )


@scenario
def stored_and_removed(broker: Exchange) -> None:
    """Credentials of both mechanisms are added, replaced, described and deleted."""
    alice, bob = broker.name("alice"), broker.name("bob")
    alter(
        broker,
        "two users",
        [],
        [credential(alice), credential(bob, mechanism=SHA_512, iterations=16384, salted_password=b"p" * 64)],
    )
    settled(broker, bob, 1)
    alter(broker, "another mechanism", [], [credential(alice, mechanism=SHA_512, iterations=8192)])
    settled(broker, alice, 2)
    broker.ask("DescribeUserScramCredentials", 0, note="both", users=users(alice, bob))
    alter(broker, "replaced", [], [credential(alice, iterations=5000)])
    alter(broker, "one deleted, another replaced", [removal(bob, SHA_512)], [credential(alice, salt=b"")])
    settled(broker, bob, 0)
    broker.ask("DescribeUserScramCredentials", 0, note="both afterwards", users=users(alice, bob))
    for note, asked in (("all", None), ("all by an empty list", [])):
        answer = broker.quietly("DescribeUserScramCredentials", 0, users=asked)
        answer.results = [row for row in answer.results if row.user.startswith(broker.prefix)]
        broker.record(f"DescribeUserScramCredentials {note}", answer, 0)
    broker.ask("DescribeUserScramCredentials", 0, note="twice", users=users(alice, alice, bob))
    broker.ask("DescribeUserScramCredentials", 0, note="nobody", users=users("", broker.name("nobody")))
    alter(broker, "nothing", [], [])
    alter(broker, "first", [removal(alice)], [])
    alter(broker, "second", [removal(alice, SHA_512)], [])
    settled(broker, alice, 0)
    alter(broker, "no longer there", [removal(alice)], [])


@scenario
def impossible_credentials(broker: Exchange) -> None:
    """Each user has its own error; a user that is named twice is not changed."""
    kept, other = broker.name("kept"), broker.name("other")
    alter(broker, "prepared", [], [credential(kept)])
    settled(broker, kept, 1)
    good = credential(broker.name("good"))
    for note, wrong in (
        ("few iterations", credential(other, iterations=4095)),
        ("many iterations", credential(other, iterations=16385)),
        ("no iterations", credential(other, iterations=0)),
        ("negative iterations", credential(other, iterations=-1)),
        ("unknown mechanism", credential(other, mechanism=0)),
        ("strange mechanism", credential(other, mechanism=3)),
        ("negative mechanism", credential(other, mechanism=-1)),
        ("no name", credential("")),
        ("no name, no mechanism", credential("", mechanism=0)),
        ("no password", credential(other, salted_password=b"")),
        ("short password", credential(broker.name("short"), salted_password=b"x")),
    ):
        alter(broker, note, [], [good, wrong])
    for note, wrong in (
        ("delete another mechanism", removal(kept, SHA_512)),
        ("delete an unknown mechanism", removal(kept, 7)),
        ("delete nobody", removal(other)),
        ("delete without name", removal("")),
    ):
        alter(broker, note, [wrong], [good])
    alter(broker, "deleted and added", [removal(kept)], [credential(kept)])
    alter(broker, "deleted twice", [removal(kept), removal(kept)], [])
    alter(broker, "added twice", [], [credential(other), credential(other, mechanism=SHA_512)])
    alter(broker, "three times", [], [credential(other), credential(other), credential(other)])
    alter(broker, "wrong, then right", [], [credential(other, iterations=1), credential(other)])
    alter(broker, "deletion of nothing, then addition", [removal(other)], [credential(other)])
    settled(broker, broker.name("short"), 1)
    broker.ask("DescribeUserScramCredentials", 0, users=users(kept, other, broker.name("good")))
    alter(broker, "clean up", [removal(kept), removal(broker.name("good")), removal(broker.name("short"))], [])
    settled(broker, kept, 0)


@scenario
def login_without_sasl(broker: Exchange) -> None:
    """On a PLAINTEXT listener every client counts as logged in: SASL's requests are ILLEGAL_SASL_STATE."""
    for version in versions("SaslHandshake"):
        for mechanism in ("PLAIN", "SCRAM-SHA-256", ""):
            broker.ask("SaslHandshake", version, note=mechanism, mechanism=mechanism)
    for version in versions("SaslAuthenticate"):
        for token in (b"", b"\0user\0secret"):
            broker.ask("SaslAuthenticate", version, note=f"{len(token)} bytes", auth_bytes=token)


@scenario
def delegation_tokens(broker: Exchange) -> None:
    """A client without a SASL or TLS login gets no delegation token: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""
    renewer = part("CreateDelegationToken", "CreatableRenewers", principal_type="User", principal_name="r")
    strange = part("CreateDelegationToken", "CreatableRenewers", principal_type="Group", principal_name="g")
    for version in versions("CreateDelegationToken"):
        for note, fields in (
            ("for myself", {"owner_principal_type": None, "owner_principal_name": None}),
            ("for nobody", {"owner_principal_type": "", "owner_principal_name": ""}),
            ("of an empty type", {"owner_principal_type": "", "owner_principal_name": "bob"}),
            ("for bob", {"owner_principal_type": "User", "owner_principal_name": "bob"}),
            ("of no type", {"owner_principal_type": None, "owner_principal_name": "bob"}),
        ):
            broker.ask("CreateDelegationToken", version, note=note, renewers=[renewer], max_lifetime_ms=-1, **fields)
        broker.ask("CreateDelegationToken", version, note="strange renewer", renewers=[strange], max_lifetime_ms=0)
    for api, field in (("RenewDelegationToken", "renew_period_ms"), ("ExpireDelegationToken", "expiry_time_period_ms")):
        for version in versions(api):
            broker.ask(api, version, hmac=b"x", **{field: 1})
            broker.ask(api, version, note="nothing", hmac=b"", **{field: -1})
    owner = part("DescribeDelegationToken", "DescribeDelegationTokenOwner", principal_type="User", principal_name="r")
    for version in versions("DescribeDelegationToken"):
        for owners in (None, [], [owner]):
            broker.ask("DescribeDelegationToken", version, note=f"owners {owners is None}", owners=owners)
