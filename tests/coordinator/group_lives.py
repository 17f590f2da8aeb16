"""What random lives of groups have in common: clients that come and go, and answers that are lost."""

from __future__ import annotations


class Client:
    """A client that is a member now and then. `member` is None while it is not running, `lives` says how often it was
    one."""

    def __init__(self, number):
        self.number = number
        self.member = None
        self.lives = 0


class GroupLife:
    """`random`, `world`, `clients` and `actions` are the subclass's, which has `check` too. An action gets a client."""

    def run(self, steps):
        for _ in range(steps):
            self.random.choice(self.actions)(self.random.choice(self.clients))
            self.check()

    # What clients do.

    def lost_answer(self, client):
        """The request arrives, its answer does not."""
        if client.member is not None:
            client.member.waiting = None
            self.world.beat(client.member.request())

    def repeated(self, client):
        """A request arrives twice, and the first answer is lost."""
        if client.member is not None:
            client.member.waiting = None
            request = client.member.request()
            self.world.beat(request)
            client.member.take(self.world.beat(request))

    def kill(self, client):
        if self.random.random() < 0.3:
            client.member = None

    # What happens around them.

    def wait(self, client):
        self.world.advance(self.random.choice((0.3, 1.5, 20, 50)))

    def reload(self, client):
        if self.random.random() < 0.3:
            self.world.restart()
