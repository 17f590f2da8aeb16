"""One member of a classic group."""

from __future__ import annotations

NEVER = float("inf")


class Member:
    """The properties that a member gave when it joined, its assignment, and its delayed requests.

    `protocols` is a tuple of `(name, metadata)` in the member's order of preference. Metadata and `assignment` are
    opaque bytes. `join_token` and `sync_token` are the reply tokens of delayed requests, or None. `session_deadline` is
    the monotonic second at which the member is removed; it is `NEVER` while no heartbeat is expected."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_token",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_deadline",
        "session_timeout_ms",
        "sync_token",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: tuple[tuple[str, bytes], ...],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.join_token: object = None
        self.sync_token: object = None
        self.session_deadline = NEVER
        self.is_new = False

    def metadata(self, protocol_name: str | None) -> bytes:
        """The member's metadata for a protocol. Raises KeyError when the member does not support that protocol."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise KeyError(protocol_name)

    def vote(self, candidates: set[str]) -> str:
        """The member's most preferred protocol among the candidates."""
        return next(name for name, _ in self.protocols if name in candidates)

    def has_satisfied_heartbeat(self) -> bool:
        """Whether the member sends no heartbeats because the broker delays the answer to its request.

        This does not hold for a new member: it does not know its id yet. If its client gave up and joined again under
        another id, the group would keep the first id for ever.
        """
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)
