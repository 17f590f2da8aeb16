"""SCRAM credentials: keys, checks, duplicates, limits, and restarts."""

from __future__ import annotations

import base64
import hashlib

import pytest

from pykafkad import errors
from pykafkad.metadata import credentials, record_codec
from pykafkad.metadata.events import AlterUserScramCredentials
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster, facts

Request = messages.AlterUserScramCredentialsRequest


def added(name, mechanism=1, iterations=4096, salted_password=b"p", **fields):
    return Request.ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salted_password=salted_password,
        **{"salt": b"s", **fields},
    )


def removed(name, mechanism=1):
    return Request.ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(cluster, deletions=(), upsertions=()):
    answer = cluster.submit(AlterUserScramCredentials("token", deletions, upsertions))
    return {row.user: row.error_code for row in answer.results}


def test_keys_equal_those_of_the_rfc():
    """This is the example of RFC 7677: user `user`, password `pencil`. A server with these keys sends this
    signature."""
    import hmac

    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    stored_key, server_key = credentials.keys(1, salted)
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    signed = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    assert (
        base64.b64encode(hmac.digest(server_key, signed, "sha256")) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(stored_key, signed, "sha256")
    client_key = bytes(left ^ right for left, right in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == stored_key


def test_an_error_does_not_keep_the_request_in_memory():
    """A traceback would keep the frames of the stack, and these the buffer of the request."""
    frame = bytearray(b"the request")
    _refused(memoryview(frame))
    frame.append(0)  # BufferError while anybody holds a view


def _refused(view):
    cluster = Cluster()
    assert alter(cluster, [removed("nobody")]) == {"nobody": errors.RESOURCE_NOT_FOUND}
    assert view.nbytes


def test_credentials_are_added_replaced_described_and_deleted():
    cluster = Cluster()
    assert alter(cluster, (), [added("a"), added("b", 2, 16384)]) == {"a": 0, "b": 0}
    assert alter(cluster, (), [added("a", 2, 5000)]) == {"a": 0}
    assert alter(cluster, [removed("b", 2)], [added("a", iterations=6000)]) == {"a": 0, "b": 0}
    again = cluster.restart()
    assert facts(again.image.scram_credentials) == facts(cluster.image.scram_credentials)
    (row,) = credentials.describe(again.image, [])
    assert row.user == "a" and {(each.mechanism, each.iterations) for each in row.credential_infos} == {
        (1, 6000),
        (2, 5000),
    }
    rows = credentials.describe(again.image, ["a", "b", "a"])
    assert [(row.user, row.error_code) for row in rows] == [
        ("a", errors.DUPLICATE_RESOURCE),
        ("b", errors.RESOURCE_NOT_FOUND),
    ]
    # The stored keys do not contain the password.
    assert b"p" not in [record.stored_key for record in again.image.scram_credentials.values()]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (added(""), errors.UNACCEPTABLE_CREDENTIAL),
        (added("x", iterations=4095), errors.UNACCEPTABLE_CREDENTIAL),
        (added("x", iterations=16385), errors.UNACCEPTABLE_CREDENTIAL),
        (added("x", 0), errors.UNSUPPORTED_SASL_MECHANISM),
        (added("x", 3), errors.UNSUPPORTED_SASL_MECHANISM),
        (added("x", salted_password=b""), errors.UNKNOWN_SERVER_ERROR),
        (removed("x"), errors.RESOURCE_NOT_FOUND),
        (removed("kept", 2), errors.RESOURCE_NOT_FOUND),
        (removed(""), errors.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_an_invalid_credential_does_not_fail_the_others(change, code):
    cluster = Cluster()
    alter(cluster, (), [added("kept")])
    deletions, upsertions = ([change], []) if "Deletion" in type(change).__name__ else ([], [change])
    assert alter(cluster, deletions, [*upsertions, added("good")]) == {change.name: code, "good": 0}
    assert set(cluster.image.scram_credentials) == {("kept", 1), ("good", 1)}


def test_a_user_that_is_named_twice_does_not_change():
    cluster = Cluster()
    alter(cluster, (), [added("a")])
    assert alter(cluster, [removed("a")], [added("a", 2), added("b"), added("b", 2)]) == {
        "a": errors.DUPLICATE_RESOURCE,
        "b": errors.DUPLICATE_RESOURCE,
    }
    assert alter(cluster, [removed("a"), removed("a")]) == {"a": errors.DUPLICATE_RESOURCE}
    assert set(cluster.image.scram_credentials) == {("a", 1)}


def test_a_request_that_does_not_fit_one_batch_changes_nothing():
    cluster = Cluster()
    salts = [added(f"u{number}", salt=b"s" * 30_000) for number in range(300)]
    assert set(alter(cluster, (), salts).values()) == {errors.POLICY_VIOLATION}
    assert not cluster.image.scram_credentials
    assert record_codec.MAX_RECORDS_PER_CHANGE > 300 and set(alter(cluster, (), salts[:200]).values()) == {0}


def test_a_request_that_is_too_large_makes_no_keys(monkeypatch):
    """The limit is checked before keys are made. Other errors are in the rows of their users all the same."""
    monkeypatch.setattr(record_codec, "MAX_RECORDS_PER_CHANGE", 10)
    made = []
    real = credentials.keys
    monkeypatch.setattr(credentials, "keys", lambda *arguments: made.append(1) or real(*arguments))
    cluster = Cluster()
    users = [added(f"u{number}") for number in range(11)]
    answer = alter(cluster, [removed("nobody")], [*users, added("few", iterations=1)])
    assert answer == {
        **{user.name: errors.POLICY_VIOLATION for user in users},
        "nobody": errors.RESOURCE_NOT_FOUND,
        "few": errors.UNACCEPTABLE_CREDENTIAL,
    }
    assert not made and not cluster.image.scram_credentials
    # A user that is named twice does not count as a change.
    assert set(alter(cluster, (), [*users, users[0]]).values()) == {0, errors.DUPLICATE_RESOURCE}
    assert len(made) == len(cluster.image.scram_credentials) == 10
