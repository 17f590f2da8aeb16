"""Requests that the controller decides, as values, and the surroundings of their handlers.

A broker hands such a request to the controller as it is (`ControllerRequest`). The column `is_forwarded` of `table.py`
says for which APIs. The same handlers answer requests on a controller's own listener.
"""

from __future__ import annotations

from pykafkad.handlers import table
from pykafkad.handlers.context import NodeContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Protocol

    from pykafkad.config import Settings
    from pykafkad.handlers.authorization import Rule
    from pykafkad.handlers.context import Connection
    from pykafkad.handlers.login_protocol import Login
    from pykafkad.handlers.services import Logs, TurnClock
    from pykafkad.handlers.table import Api
    from pykafkad.metadata.events import MutationQuota
    from pykafkad.metadata.image import Image
    from pykafkad.metadata.quorum import Quorum
    from pykafkad.wire.messages import DescribeQuorumResponse

    class Authorizer(Protocol):
        """Decides which principal may do what."""

        def authorize(
            self, principal: str, client_address: str, operation: str, resource_type: str, resource_name: str | None
        ) -> bool:
            """Whether `principal` may do `operation` on the resource."""

    class Audit(Protocol):
        """Tells who may do what."""

        tells_allowed: bool

        def tell(
            self, is_allowed: bool, caller: tuple[str, str], action: tuple[str, str, str | None], request: str
        ) -> None:
            """One decision: of a principal at an address, on an operation, a type of resource and a name."""

    class Submits(Protocol):
        """The controller's machine."""

        def submit(self, event: object) -> object:
            """Hand over an event of `metadata/events.py`; the answer comes when its records are committed."""

        @property
        def quorum(self) -> Quorum:
            """The metadata quorum."""

        def ask_quorum(self, token: object, request: Any) -> object:
            """Have the node's replica of the metadata log answer; None in a quorum that has no other members."""

        def describe_quorum(self, version: int) -> DescribeQuorumResponse | None:
            """The answer of a quorum with several members in a version; None of one that has no others."""


class ControllerRequest:
    """A client's request that the controller decides.

    `message` is a request in `version` of the API `key`. `principal`, `client_address` and `listener` (its name)
    describe the caller, `client_id` is what it calls itself; `may_ask_for_tokens` says whether it has a login of its
    own. The controller answers with `token`. `mutations` counts the partitions that it changes; None where no quota
    counts. `connection` is the caller's, where that is one of the controller's own listener.
    """

    __slots__ = (
        "client_address",
        "client_id",
        "connection",
        "key",
        "listener",
        "may_ask_for_tokens",
        "message",
        "mutations",
        "principal",
        "token",
        "version",
    )

    def __init__(
        self,
        key: int,
        version: int,
        message: Any,
        principal: str,
        client_address: str,
        listener: str,
        token: object,
        mutations: MutationQuota | None = None,
        may_ask_for_tokens: bool = False,
        client_id: str = "",
    ) -> None:
        self.key = key
        self.version = version
        self.message = message
        self.principal = principal
        self.client_address = client_address
        self.listener = listener
        self.token = token
        self.mutations = mutations
        self.may_ask_for_tokens = may_ask_for_tokens
        self.client_id = client_id
        self.connection: Connection | None = None


class ControllerServices:
    """The parts of a controller that its handlers may use."""

    __slots__ = (
        "audit",
        "authorizer",
        "clock",
        "cluster_id",
        "controller",
        "image",
        "logs",
        "node_id",
        "reply",
        "settings",
    )

    clock: TurnClock
    node_id: int
    cluster_id: str
    settings: Settings
    image: Image
    logs: Logs
    controller: Submits
    authorizer: Authorizer | None
    audit: Audit | None
    reply: Callable[[Any, object], None]

    def __init__(self, **services: object) -> None:
        """Takes the services by name. The start of the node adds `cluster_id` and `image`; an audit sets `audit`."""
        self.audit = None
        for name, service in services.items():
            setattr(self, name, service)


class ControllerContext(NodeContext):
    """The surroundings of one request in the controller, with the names of `Context`."""

    __slots__ = ("_request",)

    _services: ControllerServices

    on_controller: Literal[True] = True
    """Whether the node that answers is a controller."""

    def __init__(self, services: ControllerServices, request: ControllerRequest) -> None:
        self._services = services
        self._request = request

    @property
    def connection(self) -> Connection:
        """The caller's connection to the controller's own listener: only a login looks at it."""
        connection = self._request.connection
        assert connection is not None, "who has a login has a connection"
        return connection

    @property
    def is_local(self) -> bool:
        """Whether the caller is the broker of this process, which may do everything."""
        connection = self._request.connection
        return connection is not None and connection.session.is_local

    @property
    def login(self) -> Login | None:
        """The login by SASL at the controller's own listener; None for every other request."""
        connection = self._request.connection
        return None if connection is None else connection.session.login

    @property
    def token(self) -> object:
        """The value with which the controller answers this request later."""
        return self._request.token

    @property
    def reply(self) -> Callable[[Any, object], None]:
        """`reply(token, message)` answers a request whose answer comes later."""
        return self._services.reply

    @property
    def mutations(self) -> MutationQuota | None:
        """Counts the partitions that the request creates or deletes; None where no quota counts."""
        return self._request.mutations

    @property
    def version(self) -> int:
        """The request's version."""
        return self._request.version

    @property
    def row(self) -> Api:
        """The row of the request's API."""
        row = table.by_key(self._request.key)
        assert row is not None
        return row

    @property
    def principal(self) -> str:
        """The caller's principal."""
        return self._request.principal

    @property
    def client_id(self) -> str:
        """What the caller calls itself."""
        return self._request.client_id

    @property
    def client_host(self) -> str:
        """The caller's address, after a slash."""
        return f"/{self._request.client_address}"

    @property
    def may_ask_for_tokens(self) -> bool:
        """Whether the caller is authenticated by SASL or by a TLS certificate, and not by a delegation token."""
        return self._request.may_ask_for_tokens

    @property
    def listener(self) -> str:
        """The name of the listener that received the request."""
        return self._request.listener

    @property
    def node_id(self) -> int:
        """The controller's id."""
        return self._services.node_id

    @property
    def settings(self) -> Settings:
        """The node's settings."""
        return self._services.settings

    @property
    def controller(self) -> Submits:
        """The controller's machine, and its quorum."""
        return self._services.controller

    def could(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
        """Whether the principal may do `operation` on the resource; everybody may where there is no authorizer.

        The authorizer is asked each time, while a broker's session remembers its decisions: the request is a value that
        may have come from another process, so there is no session to keep them in, and requests that the controller
        decides are rare. So a changed ACL also holds from the next request on."""
        authorizer, request = self._services.authorizer, self._request
        if authorizer is None or self.is_local:
            return True
        return authorizer.authorize(request.principal, request.client_address, operation, resource_type, resource_name)

    def allowed(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
        """The same, where the principal does it if he may: an audit tells of that."""
        decision = self.could(operation, resource_type, resource_name)
        audit = self._services.audit
        if decision and audit is not None and audit.tells_allowed:
            self._tell(audit, True, (operation, resource_type, resource_name))
        return decision

    def refused(self, rule: Rule, resource_name: str | None) -> None:
        """What the request asks for on the resource is refused by the rule."""
        audit = self._services.audit
        if audit is not None:
            self._tell(audit, False, (rule.operation, rule.resource_type, resource_name))

    def _tell(self, audit: Audit, is_allowed: bool, action: tuple[str, str, str | None]) -> None:
        request = self._request
        audit.tell(is_allowed, (request.principal, request.client_address), action, self.row.name)

    def set_client_software(self, name: str, version: str) -> None:
        """Does nothing: a controller does not need the name and version of the client's software."""
