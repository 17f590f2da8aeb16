"""What takes the place of `epoll` under the product's reactor.

It keeps the two habits that matter: a descriptor that is waited for with EPOLLET is told of once per piece of news, and
`modify` asks anew."""

from __future__ import annotations

READ, WRITE, ERROR, HANGUP, PEER_ENDED, EDGE = 0x1, 0x4, 0x8, 0x10, 0x2000, 1 << 31


class Descriptor:
    """What a poller may wait for."""

    poller = None
    _fileno = None

    def fileno(self):
        return self._fileno

    def told(self):
        """Something changed that a poller may want to know."""
        if self.poller is not None:
            self.poller.tell(self._fileno)


class Waker(Descriptor):
    """Ends a wait; nobody sleeps here, so it only has to be readable."""

    def __init__(self, network):
        self._fileno = network.new_descriptor(self)
        self._is_awake = False
        self.is_closed = False

    def wake(self):
        self._is_awake = True
        self.told()

    def clear(self):
        self._is_awake = False

    def close(self):
        self.is_closed = True

    def events(self, asked=READ):
        return READ if self._is_awake else 0


class Poller:
    """`select.epoll` over descriptors of the network. A poll that waits moves the clock."""

    def __init__(self, network, host_name):
        self._network = network
        self.host_name = host_name
        self._masks = {}
        self._known = {}
        """(place, descriptor) of each: what is found is in the order in which it was registered."""
        self._registered = 0
        self._news = set()
        """Descriptors that something may be told of. So a poll costs what those with news cost, not what all do."""
        self.is_closed = False

    def register(self, fd, eventmask):
        self._masks[fd] = eventmask
        self._registered += 1
        descriptor = self._network.descriptors[fd]
        self._known[fd] = self._registered, descriptor
        descriptor.poller = self
        self.tell(fd)

    def modify(self, fd, eventmask):
        assert fd in self._masks, f"{fd} is not registered"
        self._masks[fd] = eventmask
        self.tell(fd)

    def tell(self, fd):
        """There may be something new of a descriptor."""
        self._news.add(fd)
        self._network.with_news.add(self)

    def unregister(self, fd):
        del self._masks[fd]
        self._news.discard(fd)
        self._known.pop(fd)[1].poller = None

    def _found(self):
        known, news, masks, found = self._known, self._news, self._masks, []
        for fd in sorted(news, key=known.__getitem__) if len(news) > 1 else list(news):
            mask = masks[fd]
            if events := known[fd][1].events(mask) & (mask | ERROR | HANGUP):
                found.append((fd, events))
            else:
                # Until something changes there is nothing to tell.
                news.discard(fd)
        return found

    def has_events(self):
        """Whether a poll would tell something."""
        known, news, masks = self._known, self._news, self._masks
        for fd in list(news):
            mask = masks[fd]
            if known[fd][1].events(mask) & (mask | ERROR | HANGUP):
                return True
            news.discard(fd)
        return False

    def poll(self, timeout, maxevents):
        found = self._found()
        if not found and timeout:
            # The loop waits: time passes, as far as nothing happens before.
            self._network.sleep(timeout)
            found = self._found()
        self._network.shuffle(found)
        del found[maxevents:]
        for fd, _ in found:
            if self._masks[fd] & EDGE:
                self._news.discard(fd)
        return found

    def close(self):
        self.is_closed = True
