"""The logins at a listener with SASL: what a broker does with the frames of connections that have not logged in.

The order of requests and the errors are those of Kafka's SaslServerAuthenticator. What the exchanges say stands in
`pykafkad/sasl/`, the stages in `session.py`, the two requests of a login in `handlers/sasl_handshake.py` and
`handlers/sasl_authenticate.py`. A broker without such a listener does not import this module.
"""

from __future__ import annotations

from os import urandom
from struct import Struct

from pykafkad import errors
from pykafkad.config import LISTENER_PREFIX
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.handlers.context import DEFERRED
from pykafkad.metadata import credentials
from pykafkad.sasl.login import Login
from pykafkad.sasl.offer import Offer
from pykafkad.sasl.scram import Credential
from pykafkad.sasl.step import DONE, REFUSED
from pykafkad.server.login_bytes import SMALL_FRAME_BYTES, LoginBytes
from pykafkad.server.session import (
    AUTHENTICATE,
    EXPIRED,
    FAILED,
    HANDSHAKE,
    OTHER_MECHANISM,
    READY,
    TOKENS,
    VERSIONS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from pykafkad.config import Settings
    from pykafkad.metadata.image import Image
    from pykafkad.sasl.jwks import Keys
    from pykafkad.sasl.kerberos import Acceptor
    from pykafkad.sasl.step import Step
    from pykafkad.sasl.token_rules import Endpoint
    from pykafkad.server.connection import Connection
    from pykafkad.server.dispatch import Dispatcher
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logs import Logs
    from pykafkad.server.runtime import Runtime

    class Node(Protocol):
        """Whose listeners they are: a broker, or a controller that is alone."""

        runtime: Runtime
        settings: Settings
        dispatcher: Dispatcher
        logs: Logs

        @property
        def image(self) -> Image: ...


LAST_WORD_SECONDS = 0.02
"""The time from the answer to a refused login to the end of its connection. Clients that find the end together with the
answer tell their users of a lost connection, and not what was wrong."""

LOGIN_SECONDS = 60.0
"""A connection that has not logged in by then is closed, however slowly its bytes come."""

REFUSED_REQUEST_BYTES = 4 * 1024
"""A larger request in place of a login is not answered: to read it and to answer each of its rows takes long."""

_READ = ("sasl.", "connections.max.reauth.ms")
"""How the settings begin that logins read. Others of a listener, as its certificates, change without new logins."""

_SIZE = Struct(">i")
_KEY = Struct(">h")
_SASL_AUTHENTICATE = 36


class Logins:
    """The logins at one listener: `begin` with each connection that it accepted."""

    __slots__ = ("_delay_seconds", "_keys", "bytes_taken", "dispatcher", "offer", "runtime", "tell")

    def __init__(
        self,
        runtime: Runtime,
        dispatcher: Dispatcher,
        settings: Settings,
        listener: str,
        image: Callable[[], Image],
    ) -> None:
        """`image()` holds the users of SCRAM and the delegation tokens. Raises ConfigError for what the settings of
        `listener` lack."""
        self.runtime = runtime
        self.dispatcher = dispatcher
        self.bytes_taken = LoginBytes()
        """What the strangers of the listener have announced of large tokens."""
        self._delay_seconds = settings.connection_failed_authentication_delay_ms / 1000

        def find(mechanism: str, user: str) -> Credential | None:
            record = credentials.find(image(), mechanism, user)
            if record is None:
                return None
            salt, stored_key, server_key = (bytes(each) for each in (record.salt, record.stored_key, record.server_key))
            return Credential(salt, stored_key, server_key, record.iterations)

        def tell(reason: str) -> None:
            runtime.logs.debug("server", "token-refused", listener=listener, reason=reason)

        def warn(problem: str) -> None:
            runtime.logs.warning("server", "sasl-callback", listener=listener, problem=problem)

        self.tell = tell
        """Takes the reason why a token is refused, for the log."""
        self._keys: Keys | None = None

        def open_keys(endpoint: Endpoint) -> Keys:
            from pykafkad.server import jwks_source

            self._keys = jwks_source.open_keys(runtime, endpoint)
            return self._keys

        def open_acceptor(keytab: str | None, principal: str) -> Acceptor:
            from pykafkad.server import kerberos_library

            return kerberos_library.open_acceptor(keytab, principal)

        find_token = None
        if settings.delegation_token_secret_key:
            from pykafkad.server.token_logins import TokenLogins

            find_token = TokenLogins(settings.delegation_token_secret_key, urandom, image).find
        self.offer = Offer(
            settings, listener, find, urandom, lambda: runtime.now_ms, tell, open_keys, find_token, open_acceptor, warn
        )

    def close(self) -> None:
        """Others take their place, before there was a connection."""
        if self._keys is not None:
            self._keys.close()

    def begin(self, connection: Connection) -> None:
        """Serve nothing but a login on the connection."""
        connection.session.begin_login(ConnectionLogin(self, connection))
        # The key of its deadline is the negative of its id: the id itself is the key of the login's expiry.
        self.runtime.timers.set((self, -connection.id), self.runtime.now + LOGIN_SECONDS)

    def end_badly(self, connection: Connection, problem: str, answer: Callable[[], object]) -> None:
        """A moment after the login was refused, call `answer`, and close the connection; nothing is served until
        then."""
        session = connection.session
        session.advance(FAILED)
        assert session.login is not None
        connection.end_reading()
        reason = session.login.refusal = f"login refused: {problem}"
        call_later = self.runtime.call_later

        def end() -> None:
            answer()
            call_later(LAST_WORD_SECONDS, lambda: connection.close(reason))

        call_later(self._delay_seconds, end)

    def expire_later(self, connection: Connection, lifetime_ms: int | None) -> None:
        """The connection's login counts so long from now, or for ever (None), whatever an earlier login had."""
        key = (self, connection.id)
        self.runtime.timers.cancel(key)
        if lifetime_ms:
            self.runtime.timers.set(key, self.runtime.now + lifetime_ms / 1000)
        elif lifetime_ms == 0:
            # Before the requests that came with the last message of the login are served.
            connection.session.advance(EXPIRED)

    def ended(self, connection: Connection) -> None:
        """The connection is gone, and its login need not end or expire."""
        self.runtime.timers.cancel((self, connection.id))
        self.runtime.timers.cancel((self, -connection.id))
        self.bytes_taken.give_back(connection)

    def fired(self, key: int) -> None:
        """The login of a connection has expired, or should have ended. Who logs in again at the moment of the expiry
        will get a new time."""
        connection = self.runtime.reactor.connection(abs(key))
        if connection is None:
            return
        session = connection.session
        if key < 0:
            assert session.login is not None
            if not session.login.has_succeeded and session.stage is not FAILED:
                connection.close(f"no login within {LOGIN_SECONDS:g} s")
        elif session.stage is READY:
            session.advance(EXPIRED)


def prepare(node: Node, listener: Listener, found: dict[Listener, Logins]) -> None:
    """Put the logins of a node's listener, as the settings are now, into `found`. Where live settings cannot be, those
    of before stay. Raises ConfigError or StartFailure."""
    mine = (f"{LISTENER_PREFIX}{listener.name.lower()}.", "sasl.")
    if listener in found and not any(
        name.startswith(mine) and any(f".{each}" in f".{name}" for each in _READ)
        for name in node.settings.dynamic_broker
    ):
        return
    try:
        logins = Logins(node.runtime, node.dispatcher, node.settings, listener.name, lambda: node.image)
    except (ConfigError, StartFailure) as error:
        if listener not in found:
            raise
        node.logs.error("server", "live-settings-ignored", listener=listener.name, reason=error)
        return
    if listener in found:
        found[listener].close()
    found[listener] = logins


class ConnectionLogin:
    """The login of one connection, as its session and the handlers of the login's requests see it."""

    __slots__ = ("_login", "_logins", "_usual", "refusal")

    def __init__(self, logins: Logins, connection: Connection) -> None:
        self.refusal: str | None = None
        """Why it was refused, also where the client ends the connection first; None while it was not."""
        self._logins = logins
        self._login = Login(logins.offer)
        self._usual = connection.max_frame_bytes, connection.pool
        self._guard(connection)

    @property
    def _max_bytes(self) -> int:
        return min(self._logins.offer.max_receive_bytes, self._usual[0])

    def _guard(self, connection: Connection) -> None:
        """Take a stranger's small frames. One who has logged in before may hold what Kafka lets everybody hold."""
        size = self._max_bytes if self.has_succeeded else min(self._max_bytes, SMALL_FRAME_BYTES)
        connection.guard(self.serve, size, self._logins.bytes_taken.buffers)

    def refuse_frame(self, connection: Connection, size: int) -> str | None:
        """What a frame of `size` bytes is above, which is not small; None if it may come. A token is as large as the
        settings allow, and nothing else is."""
        if connection.session.stage not in (AUTHENTICATE, TOKENS):
            return f"the {connection.max_frame_bytes} of a login"
        if not 0 <= size <= self._max_bytes:
            return f"sasl.server.max.receive.size {self._max_bytes}"
        bytes_taken = self._logins.bytes_taken
        bytes_taken.take(connection, size)
        connection.guard(self.serve, size, bytes_taken.buffers)
        return None

    def serve(self, connection: Connection, view: memoryview, start: int, end: int) -> None:
        """Serve the frame `view[start:end]` of a connection that has not logged in, or logs in again."""
        if end - start > SMALL_FRAME_BYTES and not self.has_succeeded:
            self._logins.bytes_taken.give_back(connection)
            self._guard(connection)
        stage = connection.session.stage
        if stage is TOKENS:
            self._take_frame(connection, bytes(view[start:end]))
        elif stage is OTHER_MECHANISM:
            self._logins.end_badly(connection, "a mechanism other than before, on re-authentication", _nothing)
        elif stage is AUTHENTICATE and end - start >= 2 and _KEY.unpack_from(view, start)[0] != _SASL_AUTHENTICATE:
            self._refuse_other(connection, memoryview(bytes(view[start:end])))
        elif stage is not FAILED:
            self._logins.dispatcher.serve(connection, view, start, end)

    def _take_frame(self, connection: Connection, token: bytes) -> None:
        """A token without a header, as it follows SaslHandshake 0; so is the answer."""
        if not self.may_block:
            self._answer_frame(connection, self.step(connection, token))
            return

        def then(step: Step) -> None:
            connection.throttle(False)
            self._answer_frame(connection, step)

        # Nothing else is served meanwhile.
        connection.throttle(True)
        self._step_beside(connection, token, then)

    def _answer_frame(self, connection: Connection, step: Step) -> None:
        if step.is_silent:
            self._cut(connection, step.problem)
        elif step.outcome == REFUSED:
            self._logins.end_badly(connection, step.problem, _nothing)
        elif step.token is not None:
            connection.put([_SIZE.pack(len(step.token)) + step.token])

    def _refuse_other(self, connection: Connection, frame: memoryview) -> None:
        """Another request than SaslAuthenticate: it gets an error, and the connection ends."""
        dispatcher = self._logins.dispatcher
        if len(frame) > REFUSED_REQUEST_BYTES:
            connection.close(f"a request of {len(frame)} bytes during SASL authentication")
            return
        context = dispatcher.begin_refusal(connection, frame)
        if context is not None:
            self._logins.end_badly(
                connection,
                f"{context.row.name} during SASL authentication",
                lambda: dispatcher.finish_with_error(context, errors.ILLEGAL_SASL_STATE),
            )

    @property
    def has_succeeded(self) -> bool:
        """Whether it is known who the client is. The name does not say: a user may be called ANONYMOUS."""
        return self._login.principal is not None

    # --- for the handlers -------------------------------------------------------------------------------------------

    @property
    def mechanisms(self) -> list[str]:
        """What the listener offers."""
        return self._login.mechanisms

    def versions_told(self, connection: Connection) -> None:
        """The client knows the versions now: it is not told again before the login."""
        if connection.session.stage is VERSIONS:
            connection.session.advance(HANDSHAKE)

    def may_begin(self, connection: Connection) -> bool:
        """Whether the connection may name a mechanism now. One whose login has expired is closed if it may not."""
        stage = connection.session.stage
        if stage in (VERSIONS, HANDSHAKE) or self._login.may_begin_again(self._logins.runtime.now):
            return True
        if stage is EXPIRED:
            connection.close("its login has expired")
        return False

    def choose(self, connection: Connection, mechanism: str, is_framed: bool) -> None:
        """Begin an exchange of one of `mechanisms`; its tokens come in requests, or (`is_framed` is false) bare."""
        self._guard(connection)
        goes_on = self._login.choose(mechanism)
        connection.session.advance(OTHER_MECHANISM if not goes_on else AUTHENTICATE if is_framed else TOKENS)

    @property
    def is_by_token(self) -> bool:
        """Whether the client has logged in with a delegation token."""
        return self._login.is_by_token

    @property
    def session_lifetime_ms(self) -> int:
        """How long a login that has succeeded counts, as clients are told: 0 also for one without end."""
        return self._login.session_lifetime_ms or 0

    def takes_tokens(self, connection: Connection) -> bool:
        """Whether an exchange is under way."""
        return connection.session.stage is AUTHENTICATE

    @property
    def may_block(self) -> bool:
        """Whether the next token takes `step_later` in place of `step`."""
        return self._login.may_block

    def step(self, connection: Connection, token: bytes) -> Step:
        """Hand on a token of the client. After the last one everything is served."""
        return self._stepped(connection, self._login.step(token))

    def step_later(
        self, connection: Connection, request: object, token: bytes, answer: Callable[[Step], object]
    ) -> object:
        """Hand on a token of the client beside the loop, and go on with the request (its reply token) by `answer`; what
        the handler returns until then."""
        replies = self._logins.runtime.replies
        self._step_beside(connection, token, lambda step: replies.resume(request, lambda: answer(step)))
        return DEFERRED

    def _step_beside(self, connection: Connection, token: bytes, then: Callable[[Step], object]) -> None:
        runtime = self._logins.runtime

        def took(result: Step | Exception) -> None:
            if runtime.reactor.connection(connection.id) is not connection:
                return
            if isinstance(result, Exception):
                runtime.unexpected(result)
                connection.close("an unexpected error in its login")
            else:
                then(self._stepped(connection, result))

        runtime.cpu_offload.submit(lambda: self._login.step(token), took)

    def _stepped(self, connection: Connection, step: Step) -> Step:
        if step.reason is not None:
            self._logins.tell(step.reason)
        if step.outcome != DONE:
            return step
        session = connection.session
        if self._login.principal is None:
            # Kafka's first look for a name is at the next request, and ends the connection.
            reason = self.refusal = "login refused: the client has no name here"

            def end() -> None:
                connection.close(reason)

            session.advance(FAILED)
            connection.end_reading()
            self._logins.runtime.call_later(LAST_WORD_SECONDS, end)
            return step
        session.identify(self._login.principal)
        session.advance(READY)
        connection.guard(connection.owner.serve, *self._usual)
        self._logins.expire_later(connection, self._login.session_lifetime_ms)
        return step

    def _cut(self, connection: Connection, problem: str | None) -> None:
        self.refusal = f"login refused: {problem}"
        connection.close(self.refusal)

    def refuse(self, connection: Connection, token: object, answer: object, problem: str) -> object:
        """Answer the request of `token` a moment later (None: not at all), and end the connection; what the handler
        returns. Who has logged in before and now names an unknown mechanism gets no answer, as in Kafka."""
        if answer is None or connection.session.stage in (READY, EXPIRED):
            self._cut(connection, problem)
            return None
        self._logins.end_badly(connection, problem, lambda: self._logins.runtime.replies.reply(token, answer))
        return DEFERRED


def _nothing() -> None:
    """The client is told nothing."""
