"""What goes on when nothing more can be opened: modules that are imported when they are first needed cannot be."""

import errno
import gc
import os
import resource
import sys

import pytest

from pykafkad.disk import Disk
from pykafkad.server.offload import Offload
from tests.server.echo import EchoNode, connect, turns
from tests.simulation.world import World


@pytest.fixture
def out_of_descriptors(monkeypatch):
    """A function: from its call on no module can be imported that is not there yet; those it is given are not."""

    class Unimportable:
        def find_spec(self, name, path=None, target=None):
            raise OSError(errno.EMFILE, "Too many open files")

    def begin(*names):
        for name in names:
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setattr(sys, "meta_path", [Unimportable()])

    return begin


@pytest.fixture
def node():
    """A node that listens, around a reactor of its own."""
    node = EchoNode()
    node.open(max_connections=1 << 20)
    node.listen()
    yield node
    node.close()


def test_a_timer_that_fails_ends_nothing(tmp_path, out_of_descriptors):
    """The module that prints tracebacks is imported with the first bug."""

    class Owner:
        def fired(self, key):
            raise OSError(errno.EMFILE, "Too many open files")

    world = World(tmp_path / "data")
    world.runtime.timers.set((Owner(), "job"), world.runtime.now)
    out_of_descriptors("traceback")
    world.turn()
    assert world.runtime.metrics.unexpected_errors == 1


def test_jobs_run_on_the_loop_when_no_thread_can_be_had(out_of_descriptors):
    """Late is better than never: a group commit's answers wait for its job."""
    results = []
    offload = Offload(lambda: None, results.append)
    out_of_descriptors("threading")
    offload.submit(lambda: 7, results.append)
    offload.submit(lambda: [].pop(), results.append)
    offload.finished()
    assert results[0] == 7 and isinstance(results[1], IndexError)
    offload.close()


def test_connections_leave_descriptors_for_files(node, tmp_path):
    """Clients that come and stay do not keep logs from being opened."""
    gc.collect()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Others of this process may have some open still, and not the lowest.
    limit = 2 * (max(map(int, os.listdir("/proc/self/fd"))) + 40)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    clients = []
    try:
        for _ in range(limit // 2):
            if node.metrics.connections_refused:
                break
            clients.append(connect(node))
        assert node.metrics.connections_refused == 1
        # The clients' own sockets are this process's too.
        assert len(node.connections) > 10
        clients.pop().close()
        files = [Disk().open(f"{tmp_path}/{number}", create=True) for number in range(limit // 8)]
        assert Disk().read(f"{tmp_path}/0") == b""
        turns(node)
        assert len(node.connections) == len(clients), "those that were there stay"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for each in clients:
            each.close()
    del files
