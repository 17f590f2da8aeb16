"""The client's side of TLS connections, on bytes in memory, and listeners for it."""

import ssl

from pykafkad.config import Settings
from pykafkad.server import tls_settings
from pykafkad.server.listeners import Listener
from tests import certificates
from tests.server.echo import connect, frame
from tests.simulation.world import Peer


def endpoint(protocol="SSL", **more):
    settings = Settings.from_properties({name: (text, "test") for name, text in certificates.settings(**more).items()})
    return tls_settings.endpoint(settings, Listener("TLS", "localhost", 0, security_protocol=protocol))


def client_context(version=None, certificate=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=certificates.authority().pem)
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if certificate is not None:
        with tls_settings._InMemory(certificate.pem + certificate.key_pem) as path:
            context.load_cert_chain(path)
    return context


class Client:
    """The client's side of one connection. `draw` cuts what it sends and takes."""

    def __init__(self, node, context=None, *, draw=None, session=None):
        self.node = node
        self.draw = draw
        self.socket = connect(node)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = context or client_context()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost", session=session)
        self.left = b""
        self.received = bytearray()
        self.is_open = self.is_ended = False
        self.heard_the_end = False
        """Whether the broker said in TLS that it ends, and did not just close."""

    def put(self, data):
        """`data` is to be sent, once there is TLS."""
        view = memoryview(data)
        while view:
            view = view[self.tls.write(view) :]

    def step(self):
        """Send and take what is there; whether anything went."""
        if not self.is_open:
            try:
                self.tls.do_handshake()
                self.is_open = True
            except ssl.SSLWantReadError:
                pass
        self.left += self.outgoing.read()
        went = False
        if self.left:
            size = len(self.left) if self.draw is None else self.draw.choice((1, 5, 100, 20_000))
            try:
                sent = self.socket.send(self.left[:size])
                self.left = self.left[sent:]
                went = sent > 0
            except BlockingIOError:
                pass
        try:
            data = self.socket.recv(65536 if self.draw is None else self.draw.choice((1, 7, 3000, 65536)))
            if data:
                self.incoming.write(data)
            else:
                self.incoming.write_eof()
            went = went or bool(data)
        except BlockingIOError:
            pass
        if self.is_open:
            self._read()
        return went

    def _read(self):
        try:
            while not self.is_ended:
                data = self.tls.read(1 << 20)
                self.is_ended = self.heard_the_end = data == b""
                self.received += data
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.is_ended = self.heard_the_end = True
        except ssl.SSLEOFError:
            self.is_ended = True

    def until(self, holds):
        for _ in range(60_000):
            if holds():
                return self
            if self.is_ended:
                raise ConnectionAbortedError("ended by the broker")
            if not self.step() or self.draw is None or self.draw.random() < 0.3:
                self.node.reactor.turn(0.001)
        raise AssertionError("that never came")

    def open(self):
        return self.until(lambda: self.is_open and not self.left)

    def ask(self, payload, size=None):
        """Send a frame; what comes back, `size` bytes."""
        self.put(frame(payload))
        size = len(payload) + 4 if size is None else size
        self.until(lambda: len(self.received) >= size)
        answer = bytes(self.received[:size])
        del self.received[:size]
        return answer

    def close(self):
        self.socket.close()


class TlsPeer(Peer):
    """A client of the last listener of a world, which shows a certificate there."""

    def __init__(self, world, certificate):
        client, server = world.network.pair()
        super().__init__(world, client, world.node.socket_server.adopt(server, world.node.listeners[-1]))
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = client_context(certificate=certificate)
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.is_open = False
        world.peers.append(self)
        for _ in range(5):
            if not self.is_open:
                self._shake_hands()

    def _shake_hands(self):
        try:
            self.tls.do_handshake()
            self.is_open = True
        except ssl.SSLWantReadError:
            pass
        self.socket.send(self.outgoing.read())
        self.world.turn()

    def put_on_the_wire(self, data):
        """The broker reads them in its next turn, encrypted."""
        self.tls.write(data)
        self.socket.send(self.outgoing.read())

    def take_what_came(self):
        """What the broker has sent since, decoded into `answers`."""
        self.incoming.write(bytes(self.socket.inbox))
        self.socket.inbox.clear()
        try:
            while self.is_open:
                self.take(self.tls.read(1 << 20))
        except ssl.SSLWantReadError:
            pass
