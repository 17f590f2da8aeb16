"""What goes on when nothing more can be opened: modules that are imported when they are first needed cannot be."""

import errno
import sys

import pytest

from pykafkad.server.offload import Offload
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


def test_a_timer_that_fails_ends_nothing(tmp_path, out_of_descriptors):
    """The module that prints tracebacks is imported with the first bug."""

    class Owner:
        def fired(self, key):
            raise OSError(errno.EMFILE, "Too many open files")

    world = World(tmp_path / "data")
    world.node.timers.set((Owner(), "job"), world.node.now)
    out_of_descriptors("traceback")
    world.turn()
    assert world.node.metrics.unexpected_errors == 1


def test_jobs_run_on_the_loop_when_no_thread_can_be_had(out_of_descriptors):
    """Late is better than never: a group commit's answers wait for its job."""
    results = []
    offload = Offload(lambda: None)
    out_of_descriptors("threading")
    offload.submit(lambda: 7, results.append)
    offload.submit(lambda: [].pop(), results.append)
    offload.finished()
    assert results[0] == 7 and isinstance(results[1], IndexError)
    offload.close()
