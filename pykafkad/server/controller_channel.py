"""A broker's way to the active controller of another process: requests with retries, and `submit`, as a controller of
the same process has it.

The metadata source (`metadata_source.py`) says who the active controller is. A request goes there, and again, after a
pause, when nobody is active, the connection fails, or the node asked is no longer active, until its time is over; as in
Kafka it may so be served twice. Requests of clients travel in envelopes (KIP-590). What the broker wants for itself
goes as the request that Kafka has for it."""

from __future__ import annotations

from collections import deque
from functools import partial

from pykafkad import errors
from pykafkad.handlers.context import DEFERRED, ReplyToken
from pykafkad.handlers.controller_context import ControllerRequest
from pykafkad.metadata import events
from pykafkad.server import envelopes, peer_security
from pykafkad.server.peer import Limits, Peer
from pykafkad.server.peer_types import TIMED_OUT, Failure
from pykafkad.server.runtime import RuntimeNode
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.metadata.image import Image
    from pykafkad.server.controller_node import MetadataFollower
    from pykafkad.server.dispatch import ServedContext
    from pykafkad.server.local_links import LocalLinks
    from pykafkad.server.logs import Logs
    from pykafkad.server.metadata_source import ActiveController, MetadataSource
    from pykafkad.server.peer_types import Security
    from pykafkad.server.runtime import Runtime

    Then = Callable[[Any], object]

FORWARD_SECONDS = 60.0
"""How long a request may look for an active controller, as in Kafka."""

MAX_WAITING = 1000
"""Requests that may wait for a controller; those beyond time out at once."""

_PAUSE_SECONDS = 0.1
_ASSIGN_AGAIN_SECONDS = 1.0
_AGAIN = "again"


class _Pending:
    """A request on its way to whoever is active."""

    __slots__ = ("deadline", "request", "then")

    def __init__(self, request: Any, then: Then, deadline: float) -> None:
        self.request = request
        self.then = then
        self.deadline = deadline


class ControllerLink:
    """Requests to the active controller, over a connection of their own."""

    def __init__(
        self,
        runtime: Runtime,
        source: MetadataSource,
        client_id: str,
        request_timeout_ms: int,
        security: Security,
        local: tuple[int, LocalLinks] | None = None,
    ) -> None:
        """`local` is the node id of a controller of this process, and the way to it."""
        self._local = local
        self._runtime = runtime
        self._source = source
        self._client_id = client_id
        # What was not sent goes to whoever is active then, as in Kafka.
        self._limits = Limits(request_timeout_ms=request_timeout_ms, waits_for_connection=False)
        self._security = security
        self._waiting: deque[_Pending] = deque()
        self._peer: Peer | None = None
        self._active: ActiveController | None = None
        self._addresses: list[str] = []
        self._is_looking_up = False
        self._is_closed = False

    @property
    def api_ranges(self) -> Mapping[int, tuple[int, int]]:
        """API key to the versions that the other side has; nothing before it has told them."""
        return {} if self._peer is None else self._peer.api_ranges

    def send(self, request: Any, then: Then, seconds: float = FORWARD_SECONDS) -> None:
        """Send a request; `then` is called once, in a later turn, with the answer, with TIMED_OUT when it has looked
        for an active controller for so long, or with a `Failure` that is final."""
        if self._is_closed or len(self._waiting) >= MAX_WAITING:
            self._runtime.call_later(0.0, lambda: then(TIMED_OUT))
            return
        self._waiting.append(_Pending(request, then, self._runtime.now + seconds))
        self.retry()

    def close(self) -> None:
        """Send nothing more. What waits times out."""
        self._is_closed = True
        self._runtime.timers.cancel((self, _AGAIN))
        if self._peer is not None:
            self._peer.close()
            self._peer = None
        while self._waiting:
            self._waiting.popleft().then(TIMED_OUT)

    def fired(self, _key: str) -> None:
        """A pause is over."""
        now = self._runtime.now
        for _ in range(len(self._waiting)):
            pending = self._waiting.popleft()
            if pending.deadline <= now:
                pending.then(TIMED_OUT)
            else:
                self._waiting.append(pending)
        self.retry()

    def retry(self) -> None:
        """Send what waits to whoever is active now."""
        if self._is_closed or not self._waiting:
            return
        active = self._source.active_controller()
        if active is not None and not active.port:
            active = None
        if active != self._active:
            self._forget_peer()
            self._active, self._addresses = active, []
        if active is None:
            self._try_later()
        elif self._peer is not None:
            self._send_waiting(self._peer)
        else:
            self._connect(active)

    def _try_later(self) -> None:
        self._runtime.timers.set((self, _AGAIN), self._runtime.now + _PAUSE_SECONDS)

    def _forget_peer(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def _connect(self, active: ActiveController) -> None:
        if self._local is not None and self._local[0] == active.node_id:
            node_id, links = self._local
            self._peer = Peer(
                self._runtime, "", node_id, client_id=self._client_id, limits=self._limits, connector=links
            )
            self._send_waiting(self._peer)
        elif self._addresses:
            address = self._addresses.pop(0)
            self._peer = Peer(
                self._runtime,
                address,
                active.port,
                client_id=self._client_id,
                limits=self._limits,
                security=self._security,
                host_name=active.host,
            )
            self._send_waiting(self._peer)
        elif not self._is_looking_up:
            # A name server may take its time.
            self._is_looking_up = True
            addresses = self._runtime.reactor.network.addresses
            self._runtime.cpu_offload.submit(
                lambda: addresses(active.host, active.port), lambda result: self._looked_up(active, result)
            )

    def _looked_up(self, active: ActiveController, result: object) -> None:
        self._is_looking_up = False
        if isinstance(result, list) and result and active == self._active:
            self._addresses = result
            self.retry()
        else:
            self._try_later()

    def _send_waiting(self, peer: Peer) -> None:
        while self._waiting:
            pending = self._waiting.popleft()
            peer.send(pending.request, partial(self._ended, peer, pending))

    def _ended(self, peer: Peer, pending: _Pending, outcome: Any) -> None:
        failed = type(outcome) is Failure
        if outcome.is_final if failed else not _is_not_controller(outcome):
            pending.then(outcome)
            return
        if failed and peer is self._peer:
            # The next address, or the same anew.
            self._forget_peer()
        if self._is_closed or pending.deadline <= self._runtime.now:
            pending.then(TIMED_OUT)
            return
        self._waiting.append(pending)
        self._try_later()


_ROWS = ("topics", "responses", "results", "filter_results", "entries")


def _is_not_controller(answer: Any) -> bool:
    """Whether who answered is not the active controller. Some say so for each topic or resource."""
    rows = [answer]
    if not hasattr(answer, "error_code"):
        rows = next((getattr(answer, each) for each in _ROWS if hasattr(answer, each)), [])
    return any(row.error_code == errors.NOT_CONTROLLER for row in rows)


def _code(failure: Failure) -> int:
    """What is answered for a request that the active controller did not answer."""
    return errors.UNSUPPORTED_VERSION if failure.is_final else errors.REQUEST_TIMED_OUT


class ControllerChannel(RuntimeNode):
    """What a broker asks in place of a controller in its own process. `lifecycle` takes what concerns the broker's
    registration (`broker_lifecycle.py`)."""

    is_busy = False
    """Whether the controller has an event that is not done: nobody here knows, and nobody is held up by it."""

    def __init__(
        self, runtime: Runtime, settings: Settings, source: MetadataSource, local_links: LocalLinks | None = None
    ) -> None:
        """`local_links` lead to the controller of the same process and node id, where it has one."""
        self.source = source
        self._local = None if local_links is None else (settings.node_id, local_links)
        self.lifecycle: Any = None
        self._followers: list[MetadataFollower] = []
        self._runtime = runtime
        self._settings = settings
        self._links: list[ControllerLink] = []
        self._security = peer_security.of_controllers(settings)
        self._link = self.link("to-controller", settings.request_timeout_ms)

    def start(self) -> None:
        """The source has started: look for the active controller."""
        self.source.on_new_controller(self._retry)

    @property
    def api_ranges(self) -> Mapping[int, tuple[int, int]] | None:
        """API key to the versions that the active controller has; None while it is not known."""
        return next((found for each in self._links if (found := each.api_ranges)), None)

    @property
    def image(self) -> Image:
        """The current picture of the cluster."""
        return self.source.image

    @property
    def logs(self) -> Logs:
        """What is told of the metadata."""
        return self.source.logs

    def on_committed(self, follower: MetadataFollower) -> None:
        """Tell `follower` of every change of the image once it was told to `begin`. Before that the image is one of the
        past: what is not in it may be a partition that has come since."""
        self._followers.append(follower)

    def begin(self) -> None:
        """The image has this broker's own registration, and so everything before it."""
        for follower in self._followers:
            self.source.on_committed(follower)
        self._followers.clear()

    def link(self, purpose: str, request_timeout_ms: int) -> ControllerLink:
        """One more connection to whoever is active."""
        client_id = f"broker-{self._settings.node_id}-{purpose}"
        self._links.append(
            ControllerLink(self._runtime, self.source, client_id, request_timeout_ms, self._security, self._local)
        )
        return self._links[-1]

    def _retry(self) -> None:
        for each in self._links:
            each.retry()

    def close(self) -> None:
        """Ask no more."""
        for each in self._links:
            each.close()

    def submit(self, request: object) -> object:
        """Have the active controller decide a request: a client's (`ControllerRequest`), or an event of
        `metadata/events.py` by which a broker wants something. The answer comes by the request's token."""
        if type(request) is ControllerRequest:
            self._forward(request)
            return DEFERRED
        return _SUBMITTED[type(request)](self, request)

    # ---- requests of clients

    def _forward(self, request: ControllerRequest) -> None:
        token = request.token

        def then(outcome: Any) -> None:
            if type(outcome) is Failure:
                final = errors.UNKNOWN_SERVER_ERROR
                self._runtime.replies.refuse(token, final if outcome.is_final else errors.REQUEST_TIMED_OUT)
            elif outcome.error_code == errors.UNSUPPORTED_VERSION:
                # The client connects anew, and learns which versions this controller has.
                self._runtime.replies.abandon(token, "the controller does not know this version")
            elif outcome.error_code:
                self._runtime.logs.warning("server", "envelope-refused", error=errors.name(outcome.error_code))
                self._runtime.replies.refuse(token, errors.UNKNOWN_SERVER_ERROR)
            else:
                answer = envelopes.opened(outcome, request.key, request.version)
                if answer is None:
                    self._runtime.replies.refuse(token, errors.UNKNOWN_SERVER_ERROR)
                else:
                    self._runtime.replies.reply(token, answer)

        self._link.send(envelopes.sealed(request), then)

    def _forward_original(self, event: Any) -> object:
        """Forward the request that a client's event was made from."""
        context = self._context(event.token)
        if context is not None and context.request is not None:
            self._forward(envelopes.of_client(context, context.request))
        return DEFERRED

    def _context(self, token: Any) -> ServedContext | None:
        connection = self._runtime.replies.connection_of(token)
        return None if connection is None else connection.in_service

    def _alter_configs(self, event: events.AlterConfigs) -> object:
        """The resources that this broker has not answered itself go to the controller; its rows take their places."""
        request = envelopes.alter_configs(event)
        merged = _MergedConfigs(self._runtime, event)
        if not event.changes:
            merged.deliver(type(merged.response)())
            return DEFERRED
        context = self._context(event.token)
        if context is None:
            self._ask(request, merged)
            return DEFERRED
        forwarded = envelopes.of_client(context, request)
        forwarded.token = merged
        self._forward(forwarded)
        return DEFERRED

    # ---- what the broker wants

    def _ask(self, request: Any, token: Any) -> None:
        """Send a request of the broker's own; its token gets the answer, or is told that none came."""

        def then(outcome: Any) -> None:
            if type(outcome) is not Failure:
                self._runtime.replies.reply(token, outcome)
            elif type(token) is ReplyToken:
                self._runtime.replies.refuse(token, _code(outcome))
            elif hasattr(token, "abandon"):
                token.abandon(outcome.reason if outcome.is_final else "the active controller was not reached in time")
            elif token is not None:
                failed = messages.response_class(messages.record_type(type(request)))()
                if hasattr(failed, "error_code"):
                    failed.error_code = _code(outcome)
                token.deliver(failed)

        self._link.send(request, then)

    def _allocate_producer_ids(self, event: events.AllocateProducerIds) -> object:
        request = messages.AllocateProducerIdsRequest(broker_id=event.broker_id, broker_epoch=event.broker_epoch)
        self._ask(request, event.token)
        return DEFERRED

    def _alter_partition(self, event: events.AlterPartition) -> object:
        self._ask(event.request, event.token)
        return DEFERRED

    def _assign_replicas(self, event: events.AssignReplicasToDirs) -> object:
        broker = self.image.brokers.get(event.broker_id)
        if broker is None or not event.replicas:
            return None

        def then(outcome: Any) -> None:
            if type(outcome) is Failure or outcome.error_code:
                self._runtime.call_later(_ASSIGN_AGAIN_SECONDS, lambda: self._assign_replicas(event))

        self._link.send(envelopes.assignment(event, broker.epoch), then)
        return None

    def _alter_scram_credentials(self, event: events.AlterUserScramCredentials) -> object:
        request = messages.AlterUserScramCredentialsRequest(deletions=event.deletions, upsertions=event.upsertions)
        self._ask(request, event.token)
        return DEFERRED

    def _create_acls(self, event: events.CreateAcls) -> object:
        self._ask(messages.CreateAclsRequest(creations=event.creations), event.token)
        return DEFERRED

    def _delete_topics(self, event: events.DeleteTopics) -> object:
        request = messages.DeleteTopicsRequest
        topics = [request.DeleteTopicState(name=None, topic_id=topic_id) for topic_id in event.topics]
        self._ask(request(topics=topics, timeout_ms=self._settings.request_timeout_ms), event.token)
        return DEFERRED

    def _create_topics(self, event: events.CreateTopics) -> object:
        request = messages.CreateTopicsRequest(
            topics=event.topics, timeout_ms=self._settings.request_timeout_ms, validate_only=event.validate_only
        )
        self._ask(request, event.token)
        return DEFERRED

    def _auto_create_topics(self, event: events.AutoCreateTopics) -> object:
        from pykafkad.metadata import creation

        image = self.image
        brokers = sum(not broker.fenced for broker in image.brokers.values())
        topics = [
            creation.automatic_topic(name, self._settings, brokers)
            for name in dict.fromkeys(event.names)
            if name not in image.topics
        ]
        if topics:
            self._create_topics(events.CreateTopics(None, topics))
        return None

    def _change_log_dirs(self, event: events.ChangeLogDirs) -> object:
        self.lifecycle.directories_changed(event.online, event.cordoned)
        return None

    def _stop_broker(self, event: events.StopBroker) -> object:
        """The lifecycle has told the controller before."""
        return None


class _MergedConfigs:
    """The token of settings that partly this broker and partly the controller has decided."""

    __slots__ = ("_event", "_runtime", "request_token", "response")

    def __init__(self, runtime: Runtime, event: events.AlterConfigs) -> None:
        self._runtime = runtime
        self._event = event
        self.request_token = event.token
        cls = messages.IncrementalAlterConfigsResponse if event.incremental else messages.AlterConfigsResponse
        self.response: Any = cls()

    def deliver(self, answer: Any) -> None:
        """The controller's rows, in the order in which it was asked."""
        rows = list(answer.responses)
        for position in sorted(self._event.refused):
            rows.insert(position, self._event.refused[position])
        self.response.responses = rows
        self._runtime.replies.reply(self._event.token, self.response)


_SUBMITTED: dict[type, Callable[[ControllerChannel, Any], object]] = {
    events.AllocateProducerIds: ControllerChannel._allocate_producer_ids,
    events.AlterConfigs: ControllerChannel._alter_configs,
    events.AlterPartition: ControllerChannel._alter_partition,
    events.AlterUserScramCredentials: ControllerChannel._alter_scram_credentials,
    events.AssignReplicasToDirs: ControllerChannel._assign_replicas,
    events.AutoCreateTopics: ControllerChannel._auto_create_topics,
    events.ChangeLogDirs: ControllerChannel._change_log_dirs,
    events.CreateAcls: ControllerChannel._create_acls,
    events.CreateDelegationToken: ControllerChannel._forward_original,
    events.CreateTopics: ControllerChannel._create_topics,
    events.DeleteTopics: ControllerChannel._delete_topics,
    events.ExpireDelegationToken: ControllerChannel._forward_original,
    events.RenewDelegationToken: ControllerChannel._forward_original,
    events.StopBroker: ControllerChannel._stop_broker,
}
