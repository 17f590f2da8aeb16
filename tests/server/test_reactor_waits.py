"""How the loop waits for its sockets."""

from pykafkad.server.reactor import LOOKS, Reactor
from tests.server.test_reactor import EchoNode


class CountingEpoll:
    """Hands out what it is given, one list a call, and notes the timeouts."""

    def __init__(self, clock, answers):
        self.clock = clock
        self.answers = list(answers)
        self.timeouts = []

    def poll(self, timeout, count):
        self.timeouts.append(timeout)
        events, seconds = self.answers.pop(0) if self.answers else ([], 0.0)
        self.clock.advance(seconds)
        return events

    def close(self):
        pass


def test_after_a_short_wait_the_loop_looks_for_a_moment_before_it_sleeps():
    """A client that answers at once is not slept for; one that does not costs at most a fixed number of looks."""
    node = EchoNode()
    node.reactor = Reactor(node, max_frame_bytes=1 << 20, idle_seconds=600, max_connections=50)
    node.reactor._epoll.close()
    short = ([(-1, 1)], 20e-6)
    epoll = node.reactor._epoll = CountingEpoll(node.clock, [short, ([], 0), ([(-1, 1)], 0)])
    node.reactor.turn(1.0)
    assert epoll.timeouts == [1.0], "nothing was known yet: it sleeps"
    node.reactor.turn(1.0)
    assert epoll.timeouts[1:] == [0, 0], "the second look found something: no sleep"
    epoll.timeouts.clear()
    epoll.answers = [([], 0)] * LOOKS + [([], 1.0)]
    node.reactor.turn(1.0)
    assert epoll.timeouts == [0] * LOOKS + [1.0], "the looks are bounded"
    epoll.timeouts.clear()
    node.reactor.turn(1.0)
    assert epoll.timeouts == [1.0], "after a long wait it sleeps at once"
    node.reactor.turn(0)
    assert epoll.timeouts == [1.0, 0], "a turn that may not wait looks once"
    node.reactor.close()
