"""A node that echoes: it listens on its host, tells which versions it knows, and answers SaslAuthenticate with the
bytes of the request."""

from types import SimpleNamespace

from pykafkad.server.listeners import Listener
from pykafkad.server.logs import process_logs
from pykafkad.server.metrics import Metrics
from pykafkad.server.session import Sessions
from pykafkad.server.socket_server import SocketServer
from pykafkad.wire import frames, messages

KEY, VERSION = 36, 2
VERSIONS_KEY = 18
PORT = 9092


class EchoNode:
    """`answers` False: requests stay in service until `answer_all`. `raw`: every answer's bytes, whatever was asked.
    `ranges` are the versions of each API that it tells of, and `knows` the newest ApiVersions that it understands."""

    def __init__(self, cluster, host, *, answers=True, raw=None, ranges=None, knows=4):
        self.cluster = cluster
        self.host = host
        self.answers = answers
        self.raw = raw
        self.ranges = {VERSIONS_KEY: (0, knows), KEY: (0, VERSION)} if ranges is None else ranges
        self.knows = knows
        self.heard = []
        self.asked_in = []
        """The versions of all requests for the versions."""
        self.heard_in = []
        """Those of the others."""
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
        key, version, correlation_id, _, position = frames.read_request_header(frame, {KEY: 2, VERSIONS_KEY: 3})
        if key == VERSIONS_KEY:
            self.asked_in.append(version)
            connection.put(self._tell_versions(correlation_id, version))
            return
        assert key == KEY
        request, _ = messages.decoder(messages.SaslAuthenticateRequest, version)(frame, position)
        self.heard.append(request.auth_bytes)
        self.heard_in.append(version)
        self.cluster.note(self.host, "heard", request.auth_bytes)
        if self.answers:
            connection.put(self._answer(correlation_id, request.auth_bytes, version))
        else:
            connection.begin_service(self)
            connection.defer()
            self._waiting.append((connection, correlation_id, request.auth_bytes, version))

    def _tell_versions(self, correlation_id, version):
        row = messages.ApiVersionsResponse.ApiVersion
        answer = messages.ApiVersionsResponse(
            api_keys=[row(api_key=key, min_version=low, max_version=high) for key, (low, high) in self.ranges.items()]
        )
        if version > self.knows:
            version, answer.error_code = 0, 35
        return _encoded(answer, version, frames.start_response(correlation_id, False))

    def _answer(self, correlation_id, data, version):
        if self.raw is not None:
            return [len(self.raw).to_bytes(4, "big") + self.raw]
        answer = messages.SaslAuthenticateResponse(auth_bytes=data)
        return _encoded(answer, version, frames.start_response(correlation_id, version >= 2))

    def answer_all(self):
        """Answer what waits, and from now on everything."""
        self.answers = True
        for connection, correlation_id, data, version in self._waiting:
            connection.put(self._answer(correlation_id, data, version))
            connection.end_service()

    route = SimpleNamespace(row=SimpleNamespace(waits_for_others=True))
    """It takes the place of a request's context, too: a peer that ends is not answered any more."""

    def end_early(self, connection):
        """Nothing waits for a maximum of time."""

    def connection_lost(self, connection):
        self.cluster.note(self.host, "lost", connection.peer, connection.close_reason)


def _encoded(answer, version, start):
    chunks = [start]
    messages.encoder(type(answer), version)(answer, chunks)
    frames.finish_frame(chunks)
    return chunks
