"""A node that echoes: it listens on its host, and answers SaslAuthenticate with the bytes of the request."""

from types import SimpleNamespace

from pykafkad.server.listeners import Listener
from pykafkad.server.logs import process_logs
from pykafkad.server.metrics import Metrics
from pykafkad.server.session import Sessions
from pykafkad.server.socket_server import SocketServer
from pykafkad.wire import frames, messages

KEY, VERSION = 36, 2
PORT = 9092


class EchoNode:
    """`answers` False: requests stay in service until `answer_all`. `raw`: every answer's bytes, whatever was asked."""

    def __init__(self, cluster, host, *, answers=True, raw=None):
        self.cluster = cluster
        self.host = host
        self.answers = answers
        self.raw = raw
        self.heard = []
        self._waiting = []
        self.metrics = Metrics()
        self.logs = process_logs()
        self.sessions = Sessions({}, None)
        self.runtime = cluster.runtimes[host]
        self.socket_server = SocketServer(
            self, self.runtime.reactor, max_frame_bytes=1 << 20, idle_seconds=600, max_connections=100
        )
        self.socket_server.listen(host, PORT, Listener("PLAINTEXT", host, PORT), send_buffer_bytes=None, backlog=50)

    def serve(self, connection, view, start, end):
        frame = memoryview(bytes(view[start:end]))
        key, version, correlation_id, _, position = frames.read_request_header(frame, {KEY: VERSION})
        assert (key, version) == (KEY, VERSION)
        request, _ = messages.decoder(messages.SaslAuthenticateRequest, VERSION)(frame, position)
        self.heard.append(request.auth_bytes)
        self.cluster.note(self.host, "heard", request.auth_bytes)
        if self.answers:
            connection.put(self._answer(correlation_id, request.auth_bytes))
        else:
            connection.begin_service(self)
            connection.defer()
            self._waiting.append((connection, correlation_id, request.auth_bytes))

    def _answer(self, correlation_id, data):
        if self.raw is not None:
            return [len(self.raw).to_bytes(4, "big") + self.raw]
        chunks = [frames.start_response(correlation_id, True)]
        answer = messages.SaslAuthenticateResponse(auth_bytes=data)
        messages.encoder(messages.SaslAuthenticateResponse, VERSION)(answer, chunks)
        frames.finish_frame(chunks)
        return chunks

    def answer_all(self):
        """Answer what waits, and from now on everything."""
        self.answers = True
        for connection, correlation_id, data in self._waiting:
            connection.put(self._answer(correlation_id, data))
            connection.end_service()

    route = SimpleNamespace(row=SimpleNamespace(waits_for_others=True))
    """It takes the place of a request's context, too: a peer that ends is not answered any more."""

    def end_early(self, connection):
        """Nothing waits for a maximum of time."""

    def connection_lost(self, connection):
        self.cluster.note(self.host, "lost", connection.peer, connection.close_reason)
