"""SCRAM credentials of users: what may be stored, the keys that are stored in place of a password, and who has which
(KIP-554).

A client salts and hashes the password itself; from that the two keys of RFC 5802 are made here, and nothing else is
kept. The image holds one record for each user and mechanism (`image.scram_credentials`). Nobody logs in with them yet.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import record_codec
from pykafkad.metadata.features import LATEST_LEVEL, METADATA_VERSION, SCRAM_SINCE
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.metadata.image import Image

# Mechanism of the wire to its hash.
MECHANISMS = {1: "sha256", 2: "sha512"}
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384

_TOO_LARGE = "Unable to perform excessively large batch operation."


def describe(image: Image, users: Iterable[str] | None) -> list[object]:
    """The result rows of `users`, of everybody who has a credential if there are none: mechanisms and iterations, no
    keys."""
    response = messages.DescribeUserScramCredentialsResponse
    found: dict[str, list[object]] = {}
    for record in image.scram_credentials.values():
        info = response.CredentialInfo(mechanism=record.mechanism, iterations=record.iterations)
        found.setdefault(record.name, []).append(info)
    counts: dict[str, int] = {}
    for name in users or found:
        counts[name] = counts.get(name, 0) + 1
    row = response.DescribeUserScramCredentialsResult
    rows = []
    for name, count in counts.items():
        if count > 1:
            text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
            rows.append(row(user=name, error_code=errors.DUPLICATE_RESOURCE, error_message=text))
        elif name not in found:
            text = f"Attempt to describe a user credential that does not exist: {name}"
            rows.append(row(user=name, error_code=errors.RESOURCE_NOT_FOUND, error_message=text))
        else:
            rows.append(row(user=name, credential_infos=found[name]))
    return rows


def alter(deletions: Iterable[object], upsertions: Iterable[object], image: Image) -> tuple[list[object], object]:
    """The records for a request's deletions and upsertions and the response, one row for each user.

    A user may be named once: a second time spoils the first.
    """
    changes: dict[str, object] = {}
    problems: dict[str, KafkaError] = {}
    for change in (*deletions, *upsertions):
        name = change.name
        if name in problems:
            continue
        try:
            if changes.pop(name, None) is not None:
                raise KafkaError(
                    errors.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
                )
            if image.features.get(METADATA_VERSION, LATEST_LEVEL) < SCRAM_SINCE:
                raise KafkaError(errors.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
            _check(change, image)
            changes[name] = change
        except KafkaError as error:
            # Without the stack that it came up through, which would hold the request's bytes.
            problems[name] = error.with_traceback(None)
    # Counted before the keys are made, which is most of the work.
    fits = len(changes) <= record_codec.MAX_RECORDS_PER_CHANGE
    records = [record_codec.record(_record(change)) for change in changes.values()] if fits else []
    if not fits or not record_codec.encoded_fit_one_batch(records):
        records = []
        problems.update((name, KafkaError(errors.POLICY_VIOLATION, _TOO_LARGE)) for name in changes)
        changes.clear()
    row = messages.AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    rows = [row(user=name, error_message=None) for name in changes]
    rows += [row(user=name, error_code=error.code, error_message=error.text) for name, error in problems.items()]
    return records, messages.AlterUserScramCredentialsResponse(results=rows)


def _check(change: object, image: Image) -> None:
    """Whether a deletion or upsertion may be. Raises `KafkaError`."""
    if not change.name:
        raise KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in MECHANISMS:
        raise KafkaError(errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if not hasattr(change, "iterations"):
        if (change.name, change.mechanism) not in image.scram_credentials:
            raise KafkaError(errors.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return
    if change.iterations < MIN_ITERATIONS:
        raise KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        raise KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not change.salted_password:
        # No hash is empty; Kafka fails on its own key class here.
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)


def _record(change: object) -> object:
    """The record of one deletion or upsertion."""
    if not hasattr(change, "iterations"):
        return messages.RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    stored_key, server_key = keys(change.mechanism, bytes(change.salted_password))
    return messages.UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=bytes(change.salt),
        stored_key=stored_key,
        server_key=server_key,
        iterations=change.iterations,
    )


def keys(mechanism: int, salted_password: bytes) -> tuple[bytes, bytes]:
    """StoredKey and ServerKey of RFC 5802, section 3, of a salted password."""
    import hashlib
    import hmac

    name = MECHANISMS[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    return hashlib.new(name, client_key).digest(), hmac.digest(salted_password, b"Server Key", name)
