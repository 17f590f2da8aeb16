"""Whose turn it is: those that wait, and those of whom there is news."""

from types import SimpleNamespace

from pykafkad.server.buffered_poller import HANDSHAKES_PER_TURN, BufferedPoller
from pykafkad.server.poll_events import READ, WRITE


class Inner:
    """The poller of the system: `news` is what it will tell."""

    def __init__(self):
        self.news = []
        self.timeouts = []
        self.register = self.modify = self.close = None

    def poll(self, timeout, maxevents):
        self.timeouts.append(timeout)
        return self.news

    def unregister(self, fd):
        pass


def transport(fd, interest=READ):
    return SimpleNamespace(fileno=fd, interest=interest)


def test_without_anybody_who_waits_it_is_the_systems():
    inner = Inner()
    poller = BufferedPoller(inner)
    inner.news = [(5, WRITE)]
    assert poller.poll(7.0, 9) == [(5, WRITE)] and inner.timeouts == [7.0]
    poller.keeps(transport(6, WRITE))
    assert poller.poll(7.0, 9) == [(5, WRITE)] and inner.timeouts == [7.0, 7.0]
    poller.keeps(transport(6))
    assert poller.poll(7.0, 9) == [(6, READ), (5, WRITE)] and inner.timeouts == [7.0, 7.0, 0]


def test_turns_come_in_order_and_before_news():
    inner = Inner()
    poller = BufferedPoller(inner)
    for fd in (20, 21, 22, 23, 24, 25):
        poller.take_turns(transport(fd), is_last=True)
    for fd in (10, 11):
        poller.take_turns(transport(fd), is_last=False)
    poller.take_turns(transport(20), is_last=True)
    inner.news = [(5, READ), (10, WRITE)]
    assert poller.poll(None, 9) == [(10, READ | WRITE), (11, READ), (20, READ), (21, READ), (5, READ)]
    poller.unregister(22)
    inner.news = []
    assert poller.poll(None, 9) == [(23, READ), (24, READ), (25, READ)]
    assert poller.poll(None, 9) == [] and inner.timeouts == [0, 0, None]


def test_those_that_have_begun_leave_one_turn_to_the_others():
    poller = BufferedPoller(Inner())
    for fd in range(10, 20):
        poller.take_turns(transport(fd), is_last=False)
    poller.take_turns(transport(30), is_last=True)
    turn = [fd for fd, _ in poller.poll(None, 9)]
    assert turn == [*range(10, 10 + HANDSHAKES_PER_TURN - 1), 30]
    assert len(poller.poll(None, 9)) == HANDSHAKES_PER_TURN
