"""Requests that the controller decides, as values, and what their handlers may touch.

A broker hands such a request over as it is (`ControllerRequest`); the column `is_forwarded` of `table.py` says of which
APIs. The same handlers answer them on a controller's own listener."""

from __future__ import annotations

from pykafkad.handlers import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Protocol

    from pykafkad.config import Settings
    from pykafkad.handlers.services import Logs, TurnClock
    from pykafkad.handlers.table import Api
    from pykafkad.metadata.image import Image
    from pykafkad.metadata.quorum import Quorum

    class Authorizer(Protocol):
        """What decides who may do what."""

        def authorize(
            self, principal: str, client_address: str, operation: str, resource_type: str, resource_name: str | None
        ) -> bool:
            """Whether `principal` may do `operation` on the resource."""

    class Submits(Protocol):
        """The controller's machine."""

        def submit(self, event: object) -> object:
            """Hand over an event of `metadata/events.py`; the answer comes when its records are committed."""

        @property
        def quorum(self) -> Quorum:
            """The metadata quorum."""


class ControllerRequest:
    """A client's request that the controller decides: `message` in `version` of the API `key`, who asks (`principal`,
    from `client_address`, on the listener of that name), and `token`, by which the answer finds its way back."""

    __slots__ = ("client_address", "key", "listener", "message", "principal", "token", "version")

    def __init__(
        self,
        key: int,
        version: int,
        message: Any,
        principal: str,
        client_address: str,
        listener: str,
        token: object,
    ) -> None:
        self.key = key
        self.version = version
        self.message = message
        self.principal = principal
        self.client_address = client_address
        self.listener = listener
        self.token = token


class ControllerServices:
    """What a controller lends to its handlers."""

    __slots__ = ("authorizer", "clock", "cluster_id", "controller", "image", "logs", "node_id", "settings")

    clock: TurnClock
    node_id: int
    cluster_id: str
    settings: Settings
    image: Image
    logs: Logs
    controller: Submits
    authorizer: Authorizer | None

    def __init__(self, **services: object) -> None:
        """Everything by name, but what a start adds: `cluster_id` and `image`."""
        for name, service in services.items():
            setattr(self, name, service)


class ControllerContext:
    """One request's surroundings in the controller. Its names are those of `Context`."""

    __slots__ = ("_request", "_services")

    on_controller: Literal[True] = True
    """Whether the node that answers is a controller."""

    def __init__(self, services: ControllerServices, request: ControllerRequest) -> None:
        self._services = services
        self._request = request

    @property
    def token(self) -> object:
        """The value by which the controller answers this request later."""
        return self._request.token

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
        """Who asks."""
        return self._request.principal

    @property
    def listener(self) -> str:
        """The name of the listener that the request came in on."""
        return self._request.listener

    @property
    def now(self) -> float:
        """Monotonic seconds at the start of this turn."""
        return self._services.clock.now

    @property
    def now_ms(self) -> int:
        """Wall-clock milliseconds at the start of this turn."""
        return self._services.clock.now_ms

    @property
    def node_id(self) -> int:
        """The controller's id."""
        return self._services.node_id

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._services.cluster_id

    @property
    def settings(self) -> Settings:
        """The node's settings."""
        return self._services.settings

    @property
    def metadata(self) -> Image:
        """The current picture of the cluster: read only."""
        return self._services.image

    @property
    def controller(self) -> Submits:
        """The controller's machine, and its quorum."""
        return self._services.controller

    @property
    def log_level(self) -> str:
        """The least level of log lines that are written: debug, info, warning or error."""
        return self._services.logs.level

    def set_log_level(self, level: str) -> None:
        """Change it, for this node and until it ends."""
        self._services.logs.set_level(level)

    def allowed(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
        """Whether the principal may do `operation` on the resource; everybody may where there is no authorizer."""
        authorizer = self._services.authorizer
        if authorizer is None:
            return True
        request = self._request
        return authorizer.authorize(request.principal, request.client_address, operation, resource_type, resource_name)

    def set_client_software(self, name: str, version: str) -> None:
        """A controller has no use for the name and version of the client's software."""
