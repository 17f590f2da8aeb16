"""Which quota counts for a user and a client id (KIP-55, KIP-257).

The most specific entity that has one decides: the user with the client id, the user with the default client id, the
user, the default user with the client id, the default user with the default client id, the default user, the client id,
the default client id. It also decides who shares: a user's clients share the quota of the user; the quota of a client
id is shared by all users who have no other; with any of the entities that have both, each pair has the quota for
itself.
"""

from __future__ import annotations

DEFAULT = ""
"""The name that stands for the default user or client id."""

_INFINITE = float("inf")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Entity = tuple[str | None, str | None]
    """A user and a client id, either of them None if the entity has no such part."""

    Sharers = tuple[str, str]
    """The user and the client id that have a quota together; an empty one stands for all."""


class Limits:
    """The limits of one quota key."""

    __slots__ = ("_limits", "_users")

    def __init__(self, limits: Mapping[Entity, float]) -> None:
        self._limits = dict(limits)
        self._users = {user for user, _ in limits}

    def __bool__(self) -> bool:
        """Whether there is any limit."""
        return bool(self._limits)

    def concerns(self, user: str) -> bool:
        """Whether any client id of the user may have a limit."""
        users = self._users
        return user in users or None in users or DEFAULT in users

    def sharers(self, user: str, client_id: str) -> Sharers:
        """Who has a quota together with this user and client id."""
        limits = self._limits
        if (user, client_id) in limits or (user, DEFAULT) in limits:
            return user, client_id
        if (user, None) in limits:
            return user, ""
        if (DEFAULT, client_id) in limits or (DEFAULT, DEFAULT) in limits:
            return user, client_id
        if (DEFAULT, None) in limits:
            return user, ""
        return "", client_id

    def of(self, sharers: Sharers) -> float | None:
        """The limit of those who share; None if they have none. As in Kafka, a client without an id has no part in the
        quotas of pairs, only in that of its user."""
        user, client_id = sharers
        entities: tuple[Entity, ...]
        if user and client_id:
            entities = ((user, client_id), (user, DEFAULT), (DEFAULT, client_id), (DEFAULT, DEFAULT))
        elif user:
            entities = ((user, None), (DEFAULT, None))
        elif client_id:
            entities = ((None, client_id), (None, DEFAULT))
        else:
            return None
        for entity in entities:
            limit = self._limits.get(entity)
            if limit is not None:
                return limit if limit < _INFINITE else None
        return None
