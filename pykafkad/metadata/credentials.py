"""SCRAM credentials of users: their checks, their records and their description (KIP-554).

The client sends a salted and hashed password. The controller derives the two keys of RFC 5802 from it and stores only
these. The image holds one record per user and mechanism (`image.scram_credentials`).
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

    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.image import Image

    Deletion = messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion
    Upsertion = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    DescribedRow = messages.DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    CredentialInfo = messages.DescribeUserScramCredentialsResponse.CredentialInfo

# Number of the mechanism in requests to the name of its hash function.
MECHANISMS = {1: "sha256", 2: "sha512"}
# Name of the mechanism to its number.
NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384

_TOO_LARGE = "Unable to perform excessively large batch operation."


def find(image: Image, mechanism: str, user: str) -> messages.UserScramCredentialRecord | None:
    """The record of a user's credential for SCRAM-SHA-256 or SCRAM-SHA-512."""
    return image.scram_credentials.get((user, NUMBERS[mechanism]))


def describe(image: Image, users: Iterable[str] | None) -> list[DescribedRow]:
    """The rows of `users`, or of all users with a credential if `users` is empty or None. They show mechanisms and
    iterations, but no keys."""
    response = messages.DescribeUserScramCredentialsResponse
    found: dict[str, list[CredentialInfo]] = {}
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


def alter(
    deletions: Iterable[Deletion], upsertions: Iterable[Upsertion], image: Image
) -> tuple[list[StoredRecord], messages.AlterUserScramCredentialsResponse]:
    """The records for the deletions and upsertions of a request, and the response with one row per user.

    A user that is named twice gets an error, and nothing of it changes.
    """
    changes: dict[str, Deletion | Upsertion] = {}
    problems: dict[str, KafkaError] = {}
    requested: tuple[Deletion | Upsertion, ...] = (*deletions, *upsertions)
    for change in requested:
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
            # The traceback would keep the bytes of the request in memory.
            problems[name] = error.with_traceback(None)
    # The limit is checked before the keys are made, which is most of the work.
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


def _check(change: Deletion | Upsertion, image: Image) -> None:
    """Raises `KafkaError` for a deletion or upsertion that is not allowed."""
    if not change.name:
        raise KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in MECHANISMS:
        raise KafkaError(errors.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion):
        if (change.name, change.mechanism) not in image.scram_credentials:
            raise KafkaError(errors.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return
    if change.iterations < MIN_ITERATIONS:
        raise KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        raise KafkaError(errors.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not change.salted_password:
        # No hash is empty. Kafka fails with the same unspecific error, since it cannot make a key of it.
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)


def _record(change: Deletion | Upsertion) -> messages.Struct:
    """The record of one deletion or upsertion."""
    if isinstance(change, messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion):
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
    """StoredKey and ServerKey of RFC 5802, section 3, for a salted password."""
    import hashlib
    import hmac

    name = MECHANISMS[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    return hashlib.new(name, client_key).digest(), hmac.digest(salted_password, b"Server Key", name)
