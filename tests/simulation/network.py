"""Sockets that are objects: what one end sends arrives at the other, at once or over a link that delays and cuts.

Nothing here reads a clock or starts a thread; all that is left to chance comes from the network's seed."""

from __future__ import annotations

import errno
from collections import deque
from heapq import heappop, heappush

from tests.simulation.poller import ERROR, HANGUP, PEER_ENDED, READ, WRITE, Descriptor, Poller, Waker

NO_LIMIT = 1 << 40
FOR_EVER, WHILE_AWAY = "for ever", "while away"
NOBODY, EVERYBODY = "", "*"
"""Whom an action changes; otherwise it is the name of one host."""


class Link:
    """What bytes meet on their way from one host to another. Times are seconds."""

    def __init__(self, *, delay=0.0, jitter=0.0, bytes_per_second=None, window_bytes=NO_LIMIT):
        self.delay = delay
        self.jitter = jitter
        self.bytes_per_second = bytes_per_second
        self.window_bytes = window_bytes
        """How much one end may have sent that the other has not read."""
        self.is_cut = False
        """Nothing arrives until the link is whole again; then what was sent does, in its order."""


class SimulatedSocket(Descriptor):
    """One end of a connection, or, before `connect` came through, of none."""

    def __init__(self, network, host, address):
        self.network = network
        self.host = host
        self.address = address
        self.peer = None
        self.inbox = bytearray()
        self.is_connected = False
        self.has_ended = False
        """The peer sends nothing more, and all that it sent is here."""
        self.error = 0
        self.is_closed = False
        self.lost = None
        """What this end sends does not arrive, and nobody tells it so: `FOR_EVER`, or `WHILE_AWAY`, until the machine
        of the other is there again, which knows nothing of the connection."""
        self.under_way = deque()
        """(arrival, piece) of what the peer sent and this end has not got; a piece of None is the end."""
        self._arrives_at = 0.0
        self._in_flight = 0
        self._fileno = network.new_descriptor(self)

    def __repr__(self):
        return f"SimulatedSocket({self._fileno}, {self.host})"

    # --- what the product calls -----------------------------------------------------------------------------------

    def setblocking(self, flag):
        assert not flag

    def getsockname(self):
        return self.address

    def getpeername(self):
        if not self.is_connected:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        return self.peer.address

    def pending_error(self):
        """The outcome of a connection attempt: 0, or an errno."""
        return self.error

    def recv_into(self, view, asked=NO_LIMIT):
        self._check()
        if not len(view):
            return 0
        if not self.inbox:
            if self.has_ended:
                return 0
            raise BlockingIOError(errno.EAGAIN, "nothing is here")
        size = min(len(view), len(self.inbox), asked)
        view[:size] = self.inbox[:size]
        del self.inbox[:size]
        self.peer.told()
        return size

    def send(self, data, flags=0):
        self._check()
        if self.peer.is_closed and not self.lost:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        size = min(len(data), self.room())
        if size <= 0:
            raise BlockingIOError(errno.EAGAIN, "the window is full")
        self.network.carry(self, bytes(data[:size]))
        return size

    def shutdown(self, how):
        """Send nothing more."""
        self.network.carry(self, None)

    def close(self):
        if self.is_closed:
            return
        self.is_closed = True
        self.network.forget(self)
        if self.is_connected and not self.error:
            self.network.carry(self, None)
            self.peer.told()

    # --- what the network calls -----------------------------------------------------------------------------------

    def room(self):
        """How much may be sent now."""
        peer = self.peer
        return self.network.link(self.host, peer.host).window_bytes - len(peer.inbox) - peer._in_flight

    def events(self, asked=READ | WRITE):
        """The events that hold now, as epoll tells them. Whether there is room to write is looked at if it is asked
        for."""
        if self.error:
            return READ | WRITE | ERROR | HANGUP
        if not self.is_connected:
            return 0
        found = READ if self.inbox or self.has_ended else 0
        if self.has_ended:
            found |= PEER_ENDED
        if asked & WRITE and ((self.peer.is_closed and not self.lost) or self.room() > 0):
            found |= WRITE
        return found

    def reset(self):
        """The connection breaks: both ends hear of it, unless that is lost, and what was under way is lost."""
        for each in (self,) if self.lost else (self, self.peer):
            each.error = errno.ECONNRESET
            each.under_way.clear()
            each.inbox.clear()
            each.told()

    def _check(self):
        if self.is_closed:
            raise OSError(errno.EBADF, "Bad file descriptor")
        if self.error:
            raise ConnectionResetError(self.error, "Connection reset by peer")
        if not self.is_connected:
            raise BlockingIOError(errno.EAGAIN, "not connected yet")


class Listener(Descriptor):
    """What waits for connections at an address."""

    def __init__(self, network, host, address):
        self.network = network
        self.host = host
        self.address = address
        self.waiting = deque()
        self.is_closed = False
        self._fileno = network.new_descriptor(self)

    def getsockname(self):
        return self.address

    def accept(self):
        if not self.waiting:
            raise BlockingIOError(errno.EAGAIN, "nobody waits")
        accepted = self.waiting.popleft()
        return accepted, accepted.getpeername()

    def close(self):
        self.is_closed = True
        self.network.forget(self)
        self.network.listeners.pop(self.address, None)
        while self.waiting:
            self.waiting.popleft().reset()

    def events(self, asked=READ):
        return READ if self.waiting else 0


class Network:
    """Every socket of a world. `random` decides what order leaves open; without one it is that of the descriptors."""

    def __init__(self, clock, random=None):
        self.clock = clock
        self._random = random
        self.descriptors = {}
        self.listeners = {}
        self.away = set()
        """Hosts that have vanished: what is sent to them is lost, and nobody refuses it."""
        self._links = {}
        self._usual = Link()
        self._next_fd = 1000
        self._next_port = 50_000
        self._events = []
        self._sequence = 0
        self.with_news = set()
        """Pollers that may have something to tell."""

    # --- time -----------------------------------------------------------------------------------------------------

    def at(self, when, action, changes=EVERYBODY):
        """Call `action()` at monotonic second `when`; for a socket, deliver what has come to it by then. What is due at
        the same time comes in an order from the seed. `changes` names the host whose runtime the action changes
        otherwise than by news for its poller; `NOBODY` if it only looks, or acts on sockets."""
        self._sequence += 1
        tie = self._random.random() if self._random else 0.0
        heappush(self._events, (when, tie, self._sequence, action, changes))

    def sleep(self, seconds):
        """Nothing is to be done for so long, or until something arrives."""
        until = self.clock.now() + seconds
        at = self.next_at()
        self.clock.advance(max(0.0, (until if at is None else min(at, until)) - self.clock.now()))
        self.arrive()

    def next_at(self):
        """When the next thing happens, or None."""
        return self._events[0][0] if self._events else None

    def arrive(self):
        """Everything that is due by now happens; the names of the hosts that it changes, with `EVERYBODY` among them.
        Bytes that arrive tell pollers, and change nothing else."""
        events, changed = self._events, ()
        if not events:
            return changed
        now = self.clock.now()
        while events and events[0][0] <= now:
            _, _, _, what, changes = heappop(events)
            if type(what) is SimulatedSocket:
                self._deliver(what)
            else:
                what()
                if changes:
                    changed = (*changed, changes)
        return changed

    def shuffle(self, found):
        """Put what is ready in an order from the seed."""
        if self._random and len(found) > 1:
            self._random.shuffle(found)

    # --- links ----------------------------------------------------------------------------------------------------

    def link(self, source, target):
        """What bytes from one host to another meet."""
        return self._links.get((source, target), self._usual)

    def set_link(self, source, target, link):
        """One direction between two hosts."""
        self._links[source, target] = link
        for each in self.descriptors.values():
            # Its window may have room now.
            each.told()

    def set_usual_link(self, link):
        """All directions that have none of their own."""
        self._usual = link

    def cut(self, source, target):
        """Nothing arrives in this direction until `mend`."""
        if (source, target) not in self._links:
            usual = self._usual
            self._links[source, target] = Link(
                delay=usual.delay,
                jitter=usual.jitter,
                bytes_per_second=usual.bytes_per_second,
                window_bytes=usual.window_bytes,
            )
        self._links[source, target].is_cut = True

    def mend(self, source, target):
        """What was sent meanwhile arrives, and what is sent from now on."""
        self.link(source, target).is_cut = False
        for each in list(self.descriptors.values()):
            if isinstance(each, SimulatedSocket) and each.host == target and each.peer and each.peer.host == source:
                self._deliver(each)

    def reset(self, one, other):
        """Every connection between two hosts breaks."""
        for each in list(self.descriptors.values()):
            if isinstance(each, SimulatedSocket) and each.is_connected and not each.error:
                if {each.host, each.peer.host} == {one, other}:
                    each.reset()

    def half_open(self, one, other):
        """Nothing more arrives over the connections that two hosts have, and none of them hears of that."""
        for each in self.descriptors.values():
            if isinstance(each, SimulatedSocket) and each.is_connected and not each.error:
                if {each.host, each.peer.host} == {one, other}:
                    each.lost = each.lost or FOR_EVER

    def vanish(self, host):
        """A machine is gone, and nobody hears of that: its connections stay half open at the other ends."""
        self.away.add(host)
        for each in list(self.descriptors.values()):
            if getattr(each, "host", None) == host:
                if isinstance(each, SimulatedSocket) and each.is_connected:
                    each.lost = each.lost or WHILE_AWAY
                    each.peer.lost = each.peer.lost or WHILE_AWAY
                each.close()

    # --- sockets --------------------------------------------------------------------------------------------------

    def new_descriptor(self, each):
        self._next_fd += 1
        self.descriptors[self._next_fd] = each
        return self._next_fd

    def forget(self, each):
        """Its descriptor is closed."""
        self.descriptors.pop(each.fileno(), None)

    def listen(self, host, port):
        """Wait for connections at (host, port)."""
        self._next_port += not port
        address = (host, port or self._next_port)
        assert address not in self.listeners, f"{address} is taken"
        listener = self.listeners[address] = Listener(self, host, address)
        return listener

    def pair(self, client_address=("127.0.0.1", 50_000), server_address=("127.0.0.1", 9092)):
        """The two ends of a connection that is there already: the client's and the server's."""
        client = SimulatedSocket(self, client_address[0], client_address)
        server = SimulatedSocket(self, server_address[0], server_address)
        client.peer, server.peer = server, client
        client.is_connected = server.is_connected = True
        return client, server

    def connect(self, host, address):
        """A socket of `host` that is on its way to `address`: writable when it is connected, or was refused."""
        self._next_port += 1
        client = SimulatedSocket(self, host, (host, self._next_port))
        self._try(client, address)
        return client

    def _try(self, client, address):
        there, back = self.link(client.host, address[0]), self.link(address[0], client.host)
        if there.is_cut or back.is_cut or address[0] in self.away:
            # The packets of the handshake are lost; the system sends them again.
            self.at(self.clock.now() + 1.0, lambda: client.is_closed or self._try(client, address), NOBODY)
            return
        at = self.clock.now() + self._delay(there) + self._delay(back)
        self.at(at, lambda: client.is_closed or self._connected(client, address), NOBODY)

    def _connected(self, client, address):
        listener = self.listeners.get(address)
        if listener is None:
            client.error = errno.ECONNREFUSED
        else:
            server = SimulatedSocket(self, address[0], address)
            client.peer, server.peer = server, client
            client.is_connected = server.is_connected = True
            listener.waiting.append(server)
            listener.told()
        client.told()

    def _delay(self, link):
        return link.delay + (self._random.random() * link.jitter if self._random else 0.0)

    def carry(self, source, piece):
        """Bytes of one end, or its end (None), are on their way to the other."""
        target = source.peer
        link = self.link(source.host, target.host)
        now = self.clock.now()
        if source.lost:
            if source.lost == WHILE_AWAY and piece and target.host not in self.away:
                self.at(now + self._delay(link), lambda: source.is_closed or source.reset())
            return
        seconds = self._delay(link)
        if link.bytes_per_second:
            seconds += len(piece or b"") / link.bytes_per_second
        # Within a connection nothing is overtaken.
        target._arrives_at = max(target._arrives_at, now + seconds)
        target.under_way.append((target._arrives_at, piece))
        target._in_flight += len(piece or b"")
        if target._arrives_at <= now:
            self._deliver(target)
        else:
            self.at(target._arrives_at, target)

    def _deliver(self, target):
        if target.peer is None or self.link(target.peer.host, target.host).is_cut:
            return
        now = self.clock.now()
        while target.under_way and target.under_way[0][0] <= now:
            _, piece = target.under_way.popleft()
            if piece is None:
                target.has_ended = True
            else:
                target._in_flight -= len(piece)
                if target.is_closed:
                    # Nobody reads it: the system answers with a reset.
                    if not target.peer.error:
                        target.peer.error = errno.ECONNRESET
                        target.peer.told()
                    continue
                target.inbox += piece
            target.told()


class Host:
    """The network as one machine of it sees it: what the product's reactor asks of the operating system."""

    def __init__(self, network, name="127.0.0.1"):
        self.network = network
        self.name = name
        self.poller = Poller(network, name)

    def new_poller(self):
        return self.poller

    def new_waker(self):
        return Waker(self.network)

    def bind_all(self, host, port, send_buffer_bytes, backlog, receive_buffer_bytes=None):
        return [self.network.listen(self.name, port)]

    def refusal(self, fd, connections):
        """Nobody runs out of descriptors."""

    def send_slice(self, connected, chunk, size):
        """A part of a file that may have no descriptor leaves as bytes."""
        chunk.check()
        return connected.send(chunk.file.pread(size, chunk.position))

    def connect(self, host, port):
        return self.network.connect(self.name, (host, port))

    def pair(self):
        return self.network.pair((self.name, 1), (self.name, 2))

    def connect_error(self, connecting):
        return connecting.pending_error()

    def addresses(self, host, port):
        return [host]
