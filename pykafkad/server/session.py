"""Who asks: a connection's session, from its acceptance to its end.

A session knows the listener, the principal and the stage of its login. It answers whether the principal may do an
operation on a resource, and lends its connection the functions that serve whole small frames without a message (the
fast paths). Those look at no authorization. So a session that an authorizer watches has the ones of its caller
(`watched_fast_paths.py`), from when it may first read or write a topic.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad.handlers import table
from pykafkad.handlers.context import ANONYMOUS, host_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from pykafkad.handlers.authorization import Rule
    from pykafkad.server.audit import Audit
    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Connection
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logins import ConnectionLogin
    from pykafkad.server.quotas import Quotas
    from pykafkad.server.watched_fast_paths import WatchedFastPaths

    FastPath = Callable[[Connection, memoryview, int, int, int, int], bool]
    """`serve(connection, view, start, end, version, correlation_id)`: whether the frame `view[start:end]` was
    served."""
    FastPathsOf = Callable[[dict[int, FastPath]], dict[int, FastPath]]

    class Authorizer(Protocol):
        """What decides who may do what."""

        def authorize(
            self, principal: str, client_address: str, operation: str, resource_type: str, resource_name: str | None
        ) -> bool:
            """Whether `principal` ("User:alice"), calling from `client_address` ("127.0.0.1", or "0:0:0:0:0:0:0:1" as
            Java writes it), may do `operation` ("Read") on the resource of that type ("Topic") and name; without a
            name, on any resource of that type."""


Stage = namedtuple("Stage", ("name", "api_keys"))
Stage.__doc__ = """A step of the login: its name, and the keys of the APIs that are answered in it (None: all)."""


def _login_stage(name: str) -> Stage:
    return Stage(name, frozenset(row.key for row in table.ROWS if name in row.login_stages))


VERSIONS = _login_stage(table.VERSIONS_STAGE)
HANDSHAKE = _login_stage(table.HANDSHAKE_STAGE)
AUTHENTICATE = _login_stage(table.AUTHENTICATE_STAGE)
EXPIRED = _login_stage(table.EXPIRED_STAGE)
TOKENS = Stage("tokens", frozenset())
OTHER_MECHANISM = Stage("other mechanism", frozenset())
FAILED = Stage("failed", frozenset())
READY = Stage("ready", None)

_AFTER_HANDSHAKE = (AUTHENTICATE, TOKENS, FAILED)
STAGES = {
    VERSIONS: (HANDSHAKE, *_AFTER_HANDSHAKE),
    HANDSHAKE: _AFTER_HANDSHAKE,
    AUTHENTICATE: (AUTHENTICATE, READY, FAILED),
    TOKENS: (READY, FAILED),
    READY: (EXPIRED, OTHER_MECHANISM, *_AFTER_HANDSHAKE),
    EXPIRED: (OTHER_MECHANISM, *_AFTER_HANDSHAKE),
    OTHER_MECHANISM: (FAILED,),
    FAILED: (),
}
"""The stages of a login, each with those that may follow. A session of a listener without SASL begins, and stays, in
READY, any other begins in VERSIONS: the client may ask for versions, once. HANDSHAKE: it must name a mechanism.
AUTHENTICATE: it sends tokens in requests; TOKENS: in frames without a header, after SaslHandshake 0. Who is READY may
log in again (KIP-368), and must when the login is EXPIRED. OTHER_MECHANISM: it named another mechanism than before,
which it learns with its first token. FAILED: the connection ends soon, and nothing is served."""

_OF_FAST_PATHS = (("Read", "Topic"), ("Write", "Topic"))

MAX_DECISIONS = 10_000
"""How many decisions of the authorizer a session remembers; then it asks anew."""


MAX_REMEMBERED_NAME = 249
"""Decisions on longer names are not remembered: no topic has one, and a name may have 32 KB."""


class Session:
    """One connection's session. Made by `Sessions.open`."""

    __slots__ = (
        "_address",
        "_decisions",
        "_generation",
        "_lent",
        "_sessions",
        "fast_paths",
        "listener",
        "login",
        "principal",
        "stage",
    )

    is_local = False
    """Whether the caller is this process itself (`local_links.py`), which may do everything."""

    def __init__(self, sessions: Sessions, listener: Listener, peer: str) -> None:
        self._sessions = sessions
        self._address = peer
        self._decisions: dict[tuple[str, str, str | None], bool] | None = None
        self._generation = 0
        self.listener = listener
        self.principal = ANONYMOUS
        self.stage = READY
        self.login: ConnectionLogin | None = None
        """The login by SASL; None on a listener without it."""
        self.fast_paths: dict[int, FastPath] = {}
        """What serves a frame without a message, by the frame's first four bytes (API key and version)."""
        self.lend(sessions.fast_paths)

    def lend(self, fast_paths: dict[int, FastPath]) -> None:
        """Serve frames by these functions from now on, as far as the client quotas allow it."""
        self._lent = fast_paths
        quotas, traced = self._sessions.quotas, self._sessions.traced
        if quotas is not None:
            fast_paths = quotas.fast_paths(self.principal, fast_paths)
        self.fast_paths = fast_paths if traced is None else traced(fast_paths)

    def lend_again(self) -> None:
        """The client quotas changed, or a trace begins or ends."""
        self.lend(self._lent)

    def identify(self, principal: str) -> None:
        """It is known who asks: the client quotas of the principal count, and what was decided of another does not."""
        self.principal = principal
        self.lend_again()
        self._decisions = None

    def begin_login(self, login: ConnectionLogin) -> None:
        """From now on only a login by SASL is served."""
        self.login = login
        self.stage = VERSIONS
        self.lend({})

    def advance(self, stage: Stage) -> None:
        """Go on to the next stage of the login; raises ValueError for one that may not follow. Fast paths look at no
        stage, so only one who is ready has them."""
        if stage not in STAGES[self.stage]:
            raise ValueError(f"stage {stage.name} does not follow {self.stage.name}")
        self.stage = stage
        self.lend(self._sessions.fast_paths if stage is READY else {})

    def could(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
        """Whether the principal may do `operation` on the resource, or without a name on any resource of the type. The
        decision is remembered until the ACLs change."""
        sessions = self._sessions
        if sessions.authorizer is None:
            return True
        decisions = self._decisions
        if decisions is None or self._generation != sessions.generation or len(decisions) >= MAX_DECISIONS:
            decisions = self._decisions = {}
            self._generation = sessions.generation
        key = (operation, resource_type, resource_name)
        if resource_name is not None and len(resource_name) > MAX_REMEMBERED_NAME:
            decisions = {}
        decision = decisions.get(key)
        if decision is None:
            address = host_of(self._address)[1:]
            decision = decisions[key] = sessions.authorizer.authorize(
                self.principal, address, operation, resource_type, resource_name
            )
            watched = sessions.watched_fast_paths
            if watched is not None and decision and key[:2] in _OF_FAST_PATHS and self.stage is READY:
                self.lend(watched.of(self.principal, address))
        return decision

    allowed = could
    """The same, where the principal does it if he may: an audit tells of that, and not of `could`."""

    def refused(self, rule: Rule, resource_name: str | None, request: str = "") -> None:
        """A request for what `rule` needs is refused; `request` names its API. An audit tells of it."""

    @property
    def may_describe(self) -> Callable[[str], bool] | None:
        """Says of a topic whether the principal may know of it; None where nobody asks."""
        return None if self._sessions.authorizer is None else self._may_describe

    def _may_describe(self, topic: str) -> bool:
        return self.could("Describe", "Topic", topic)


class Sessions:
    """Opens the sessions of a node's connections."""

    __slots__ = (
        "audit",
        "authorizer",
        "fast_paths",
        "generation",
        "quotas",
        "session_class",
        "traced",
        "watched_fast_paths",
    )

    def __init__(self, fast_paths: dict[int, FastPath], authorizer: Authorizer | None) -> None:
        """`fast_paths` are for sessions that no authorizer watches; without an authorizer everybody may do
        everything."""
        self.authorizer = authorizer
        self.fast_paths = fast_paths if authorizer is None else {}
        self.watched_fast_paths: WatchedFastPaths | None = None
        """Those of sessions that the authorizer watches; None where they have none."""
        self.generation = 0
        self.audit: Audit | None = None
        """What tells of decisions; None where nothing does."""
        self.session_class = Session
        self.quotas: Quotas | None = None
        """The client quotas; None before there are any."""
        self.traced: FastPathsOf | None = None
        """Makes fast paths that a trace records; None without one. Outside of the quotas, it sees what they refuse."""

    def open(self, listener: Listener, peer: str) -> Session:
        """The session of a connection that `listener` accepted from `peer` ("host:port")."""
        return self.session_class(self, listener, peer)

    def acls_changed(self) -> None:
        """What the sessions remember of the authorizer's decisions may be wrong now."""
        self.generation += 1

    def quotas_changed(self, broker: Broker) -> None:
        """The image of the broker has other client quotas. Who has none does not load what enforces them."""
        if self.quotas is None:
            if not broker.image.client_quotas:
                return
            from pykafkad.server.quotas import Quotas

            self.quotas = Quotas(broker)
        self.quotas.follow()
