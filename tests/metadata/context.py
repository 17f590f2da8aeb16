"""A handler's context around a `Cluster` in memory."""

from __future__ import annotations

from types import GeneratorType

from pykafkad.handlers.context import DEFERRED
from pykafkad.wire import messages
from tests.metadata.cluster import CLUSTER_ID, NODE_ID, Cluster


class Controller:
    """`ctx.controller`, which performs effects at once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.quorum = cluster.quorum

    def submit(self, event: object) -> object:
        self._cluster.submit(event)
        return DEFERRED

    def ask_quorum(self, token, request):
        """The quorum has no other members."""
        return None

    def describe_quorum(self, version):
        """Nor is there anything of them to tell."""
        return None


class FakeContext:
    """`denied` is a set of `(operation, resource type, name)` that the caller is not allowed."""

    token = "token"
    on_controller = False
    mutations = None
    listener = "PLAINTEXT"
    principal = "User:ANONYMOUS"
    client_id = "test"
    node_id = NODE_ID
    cluster_id = CLUSTER_ID

    def __init__(self, cluster: Cluster, version: int, denied: set[tuple[str, str, str]]) -> None:
        self._denied = denied
        self.version = version
        self.metadata = cluster.image
        self.settings = cluster.settings
        self.controller = Controller(cluster)
        self.log_level = "info"

    def allowed(self, operation: str, resource_type: str, name: str) -> bool:
        return (operation, resource_type, name) not in self._denied

    could = allowed

    def refused(self, rule: object, name: str) -> None:
        """Nobody audits it."""

    def check_live_settings(self, live: dict[str, str]) -> None:
        """No listener minds."""

    def advertised(self, broker_id: int) -> tuple[str, int]:
        return "localhost", 9092

    def set_log_level(self, level: str) -> None:
        self.log_level = level


def finished(result: object) -> object:
    """The result of a handler, also of one that is a generator."""
    while isinstance(result, GeneratorType):
        try:
            next(result)
        except StopIteration as stop:
            result = stop.value
    return result


def ask(
    cluster: Cluster, handler: object, request: object, version: int, *, denied: set | None = None, ctx: object = None
) -> object:
    """The handler's response, at once or delayed, as a client of `version` decodes it."""
    ctx = ctx or FakeContext(cluster, version, denied or set())
    api = type(request)
    decoded, _ = messages.decoder(api, version)(_encode(request, version), 0)
    count = len(cluster.replies)
    answer = finished(handler.handle(ctx, decoded))
    if answer is DEFERRED:
        assert len(cluster.replies) == count + 1
        token, answer = cluster.replies[-1]
        assert token == ctx.token
    return messages.decoder(type(answer), version)(_encode(answer, version), 0)[0]


def _encode(message: object, version: int) -> bytes:
    chunks = [bytearray()]
    messages.encoder(type(message), version)(message, chunks)
    return bytes(chunks[0])
