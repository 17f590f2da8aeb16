"""Delegation tokens: who gets one, renews it and ends it, how it is described, and when it expires (KIP-48, KIP-373).

A token is an id and its HMAC, which only the holder of `delegation.token.secret.key` can compute. The HMAC is stored
nowhere: the log and the image (`image.delegation_tokens`) hold one record per id, and everybody with the secret
computes the rest. The rules are those of Kafka's DelegationTokenControlManager and DelegationTokenManager.
"""

from __future__ import annotations

from hmac import digest

from pykafkad import errors, uuids
from pykafkad.metadata import record_codec
from pykafkad.metadata.features import LATEST_LEVEL, METADATA_VERSION, TOKENS_SINCE
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator
    from random import Random

    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata import events
    from pykafkad.metadata.image import Image

    Token = messages.DelegationTokenRecord
    Described = messages.DescribeDelegationTokenResponse.DescribedDelegationToken

MAX_EXPIRED_PER_CHANGE = 1000
"""As many expired tokens are removed by one change."""

USER = "User"
"""The only type of principal that may renew tokens."""

_MAX_TIME_MS = 2**63 - 1


def hmac_of(secret: str, token_id: str) -> bytes:
    """The 64 bytes that prove that their holder got the token from somebody with `secret`; in base64 they are the
    token's password."""
    return digest(secret.encode("utf-8", "surrogateescape"), token_id.encode(), "sha512")


def parts(principal: str) -> tuple[str, str]:
    """Type and name of a principal such as `User:alice`."""
    kind, _, name = principal.partition(":")
    return kind, name


def is_expired(token: Token, now_ms: int) -> bool:
    """Whether the token can no longer be renewed; it is removed soon."""
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


class TokensByHmac:
    """Finds the tokens of an image by their HMACs. A token's HMAC is computed once: when somebody asks for the first
    time after it came."""

    __slots__ = ("_hmacs", "_ids", "_image", "_secret")

    def __init__(self, image: Image, secret: str) -> None:
        self._image = image
        self._secret = secret
        self._hmacs: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}
        image.changed_tokens = dict.fromkeys(image.delegation_tokens)

    def follow(self) -> Generator[None, None, None]:
        """Learn of the tokens that came and went; yields after each."""
        changed = self._image.changed_tokens
        while changed:
            token_id, _ = changed.popitem()
            if token_id not in self._image.delegation_tokens:
                self._ids.pop(self._hmacs.pop(token_id, b""), None)
            elif token_id not in self._hmacs:
                hmac = self._hmacs[token_id] = hmac_of(self._secret, token_id)
                self._ids[hmac] = token_id
            yield

    def find(self, hmac: bytes) -> Token | None:
        """The token with this HMAC."""
        for _ in self.follow():
            pass
        token_id = self._ids.get(hmac)
        return None if token_id is None else self._image.delegation_tokens[token_id]


def refusal(image: Image, settings: Settings) -> int:
    """The error for everybody where the settings or the cluster's metadata.version know no tokens; NONE otherwise."""
    if not settings.delegation_token_secret_key:
        return errors.DELEGATION_TOKEN_AUTH_DISABLED
    if image.features.get(METADATA_VERSION, LATEST_LEVEL) < TOKENS_SINCE:
        return errors.UNSUPPORTED_VERSION
    return errors.NONE


def create(
    event: events.CreateDelegationToken, image: Image, settings: Settings, random: Random
) -> tuple[list[StoredRecord], messages.CreateDelegationTokenResponse]:
    """The record of a new token, and the response with its HMAC."""
    answer = messages.CreateDelegationTokenResponse(principal_type=event.owner[0], principal_name=event.owner[1])
    if event.names_requester:
        requester = parts(event.requester)
        answer.token_requester_principal_type, answer.token_requester_principal_name = requester
    answer.error_code = refusal(image, settings)
    if answer.error_code == errors.NONE and any(kind != USER for kind, _ in event.renewers):
        answer.error_code = errors.INVALID_PRINCIPAL_TYPE
    if answer.error_code == errors.NONE and _are_too_many(":".join(event.owner), image, settings):
        answer.error_code = errors.POLICY_VIOLATION
    if answer.error_code != errors.NONE:
        return [], answer
    life_ms = settings.delegation_token_max_lifetime_ms
    if event.max_lifetime_ms > 0:
        life_ms = min(life_ms, event.max_lifetime_ms)
    max_timestamp = _later(event.now_ms, life_ms)
    token = messages.DelegationTokenRecord(
        owner=":".join(event.owner),
        requester=event.requester,
        renewers=[":".join(renewer) for renewer in event.renewers],
        issue_timestamp=event.now_ms,
        max_timestamp=max_timestamp,
        expiration_timestamp=min(max_timestamp, _later(event.now_ms, settings.delegation_token_expiry_time_ms)),
        token_id=uuids.to_text(uuids.random_uuid(random)),
    )
    records = [record_codec.record(token)]
    if not record_codec.encoded_fit_one_batch(records):
        answer.error_code = errors.POLICY_VIOLATION
        return [], answer
    assert settings.delegation_token_secret_key is not None
    answer.issue_timestamp_ms = token.issue_timestamp
    answer.expiry_timestamp_ms = token.expiration_timestamp
    answer.max_timestamp_ms = token.max_timestamp
    answer.token_id = token.token_id
    answer.hmac = hmac_of(settings.delegation_token_secret_key, token.token_id)
    return records, answer


def _are_too_many(owner: str, image: Image, settings: Settings) -> bool:
    """Whether there are as many tokens, of the owner or in all, as there may be. Kafka has no such limits; its clients
    know the error from policies."""
    return (
        len(image.delegation_tokens) >= settings.pykafkad_delegation_tokens_max
        or image.delegation_token_counts.get(owner, 0) >= settings.pykafkad_delegation_tokens_max_per_owner
    )


def renew(
    event: events.RenewDelegationToken, image: Image, settings: Settings, tokens: TokensByHmac
) -> tuple[list[StoredRecord], messages.RenewDelegationTokenResponse]:
    """The record of a token with its next time of expiry, which is never after its longest life."""
    token, code = _found(event, image, settings, tokens)
    if token is not None and is_expired(token, event.now_ms):
        code = errors.DELEGATION_TOKEN_EXPIRED
    elif token is not None and not _may_renew(token, event.requester):
        code = errors.DELEGATION_TOKEN_OWNER_MISMATCH
    if token is None or code != errors.NONE:
        return [], messages.RenewDelegationTokenResponse(error_code=code)
    period_ms = settings.delegation_token_expiry_time_ms
    if event.period_ms > 0:
        period_ms = min(period_ms, event.period_ms)
    renewed = _expiring_at(token, _later(event.now_ms, period_ms))
    answer = messages.RenewDelegationTokenResponse(expiry_timestamp_ms=renewed.expiration_timestamp)
    return [record_codec.record(renewed)], answer


def expire(
    event: events.ExpireDelegationToken, image: Image, settings: Settings, tokens: TokensByHmac
) -> tuple[list[StoredRecord], messages.ExpireDelegationTokenResponse]:
    """The record of a token that expires after `period_ms` from now, or of its end where that is negative."""
    token, code = _found(event, image, settings, tokens)
    if token is not None and not _may_renew(token, event.requester):
        code = errors.DELEGATION_TOKEN_OWNER_MISMATCH
    elif token is not None and event.period_ms >= 0 and is_expired(token, event.now_ms):
        code = errors.DELEGATION_TOKEN_EXPIRED
    if token is None or code != errors.NONE:
        return [], messages.ExpireDelegationTokenResponse(error_code=code)
    if event.period_ms < 0:
        removed = messages.RemoveDelegationTokenRecord(token_id=token.token_id)
        return [record_codec.record(removed)], messages.ExpireDelegationTokenResponse(expiry_timestamp_ms=event.now_ms)
    changed = _expiring_at(token, _later(event.now_ms, event.period_ms))
    answer = messages.ExpireDelegationTokenResponse(expiry_timestamp_ms=changed.expiration_timestamp)
    return [record_codec.record(changed)], answer


def remove_expired(image: Image, now_ms: int) -> list[StoredRecord]:
    """The ends of tokens that have expired: of the first `MAX_EXPIRED_PER_CHANGE`."""
    expired = (each.token_id for each in image.delegation_tokens.values() if is_expired(each, now_ms))
    return [
        record_codec.record(messages.RemoveDelegationTokenRecord(token_id=token_id))
        for _, token_id in zip(range(MAX_EXPIRED_PER_CHANGE), expired, strict=False)
    ]


def describe(
    image: Image,
    secret: str,
    asking: str,
    owners: Collection[str] | None,
    may_see: Callable[[Token], bool],
    names_requester: bool,
) -> Generator[None, None, list[Described]]:
    """The tokens that concern one of `owners` (None: all), as far as `asking` may know of them: those that it owns, has
    asked for or may renew, and others where `may_see` says so. Yields after each token that there is."""
    found = []
    for token_id in list(image.delegation_tokens):
        token = image.delegation_tokens.get(token_id)
        if token is None:
            # It has ended meanwhile.
            continue
        concerned = {token.owner, token.requester, *token.renewers}
        if (owners is None or not concerned.isdisjoint(owners)) and (asking in concerned or may_see(token)):
            found.append(_described(token, hmac_of(secret, token.token_id), names_requester))
        yield
    return found


def _described(token: Token, hmac: bytes, names_requester: bool) -> Described:
    response = messages.DescribeDelegationTokenResponse
    kind, name = parts(token.owner)
    described = response.DescribedDelegationToken(
        principal_type=kind,
        principal_name=name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=hmac,
    )
    for kind, name in map(parts, token.renewers):
        described.renewers.append(response.DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name))
    if names_requester:
        kind, name = parts(token.requester)
        described.token_requester_principal_type, described.token_requester_principal_name = kind, name
    return described


def _found(
    event: events.RenewDelegationToken | events.ExpireDelegationToken,
    image: Image,
    settings: Settings,
    tokens: TokensByHmac,
) -> tuple[Token | None, int]:
    """The token that an event means, or None and the error."""
    code = refusal(image, settings)
    token = tokens.find(event.hmac) if code == errors.NONE else None
    if token is None and code == errors.NONE:
        code = errors.DELEGATION_TOKEN_NOT_FOUND
    return token, code


def _may_renew(token: Token, principal: str) -> bool:
    """Whoever has asked for somebody else's token is neither its owner nor a renewer."""
    return principal == token.owner or principal in token.renewers


def _expiring_at(token: Token, time_ms: int) -> Token:
    return messages.DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=min(token.max_timestamp, time_ms),
        token_id=token.token_id,
    )


def _later(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, _MAX_TIME_MS)
