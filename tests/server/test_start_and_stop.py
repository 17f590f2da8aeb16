"""What a broker does around its serving."""

from __future__ import annotations

import threading
from typing import ClassVar

import pytest

from pykafkad import config, errors
from pykafkad.clock import ManualClock
from pykafkad.errors import ConfigError
from pykafkad.server import run
from pykafkad.server.listeners import Listener
from pykafkad.server.reactor import Reactor
from pykafkad.server.wiring import Process
from pykafkad.wire import messages
from tests.simulation.disk import MemoryDisk
from tests.simulation.network import Host, Network
from tests.simulation.world import NOTHING, World


def another(disk):
    """A second broker on the same directory."""
    return Process(
        config.Settings.from_properties({}),
        [Listener("PLAINTEXT", "localhost", 9092)],
        ["/data"],
        disk=disk,
        reactor=lambda runtime: Reactor(runtime, Host(Network(ManualClock()))),
    )


def test_a_ready_file_of_an_earlier_broker_goes_and_that_of_a_running_one_stays(tmp_path):
    """Who waits for the file must not be told of a broker that is not there, nor miss one that is."""
    disk = MemoryDisk()
    first = World("/data", disk=disk)
    ready = tmp_path / "ready"
    ready.write_bytes(b"localhost:9092\n")
    with pytest.raises(ConfigError, match="another broker"):
        another(disk).start(stale_file=str(ready))
    assert ready.exists()
    first.stop()
    second = another(disk)
    second.start(stale_file=str(ready))
    assert not ready.exists()
    second.runtime.close()


class Ends:
    """The control of a process that ends, by that method of its runtime, in its first turn."""

    words: ClassVar[dict[str, str]] = {}

    def __init__(self, how):
        self.clock = ManualClock()
        self._how = how

    def began(self, process):
        getattr(process.runtime, self._how)("enough")


@pytest.mark.parametrize(("how", "code"), [("stop", 0), ("fail", 1)])
def test_a_process_that_cannot_go_on_says_so_with_its_exit_code(monkeypatch, how, code):
    """As Kafka does: a supervisor starts it again, or tells somebody."""
    monkeypatch.setattr(run, "obey_signals", lambda runtime: [])
    monkeypatch.setattr(run, "_process", lambda *_: another(MemoryDisk()))
    monkeypatch.setattr("gc.freeze", lambda: None)
    asked = {"settings": config.Settings.from_properties({}), "data_directories": ["/data"], "topics": []}
    assert run.run(**asked, ready_file=None, control=Ends(how)) == code


def test_a_failure_of_a_process_that_stops_already_is_none():
    world = World("/data", disk=MemoryDisk())
    world.runtime.stop("a signal")
    world.runtime.fail("the last directory of log.dirs failed")
    assert (world.runtime.stopping, world.runtime.has_failed) == ("a signal", False)
    world.stop()


def test_nobody_reading_the_readiness_line_is_no_reason_not_to_serve(monkeypatch, tmp_path):
    """Standard output may be a pipe whose reader has gone."""

    def broken(*_, **__):
        raise BrokenPipeError(32, "Broken pipe")

    world = World("/data", disk=MemoryDisk())
    monkeypatch.setattr("builtins.print", broken)
    run.tell_ready(["localhost:9092"], str(tmp_path / "ready"), {})
    assert (tmp_path / "ready").read_bytes() == b"localhost:9092\n"
    world.stop()


def test_jobs_off_the_loop_are_finished_before_what_they_wake_is_gone():
    """A job that ends while the broker stops wakes the loop, whose descriptors must still be its own."""
    world = World("/data", disk=MemoryDisk())
    order = []
    reactor = world.runtime.reactor
    reactor.wake = lambda: order.append("woken")
    close = reactor.close
    closed = threading.Event()
    reactor.close = lambda: closed.set() or order.append("closed") or close()
    world.runtime.offload._wake = reactor.wake
    results = []
    world.runtime.offload.submit(lambda: closed.wait(0.05), results.append)
    world.stop()
    assert results == [False]
    assert order[-1] == "closed" and order.count("woken") == 1


def test_a_topic_of_many_partitions_is_there_before_anybody_is_served():
    """`--topic NAME:1000`: the answer to its creation waits for the logs, and no turn of the loop makes them yet."""
    world = World("/data", disk=MemoryDisk())
    run.create_topics(world.process, [("many", 1000)])
    assert len(world.broker.image.topics["many"].partitions) == 1000
    assert not world.broker.partitions.pending


def test_who_waits_in_a_group_is_sent_away_before_the_connections_close():
    """As by a Kafka that stops: the client looks for its coordinator instead of finding its connection gone."""
    world = World("/data", disk=MemoryDisk())
    join = messages.JoinGroupRequest
    protocols = [join.JoinGroupRequestProtocol(name="range", metadata=b"m")]
    fields = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": protocols,
    }
    world.connect().ask(messages.FindCoordinatorRequest(key="g"), 0)
    world.turn()
    assert world.connect().ask(join(**fields), 3).error_code == errors.NONE
    waiting = world.connect()
    assert waiting.ask(join(**fields), 3) is NOTHING
    seen = []
    drain = world.runtime.reactor.drain
    world.runtime.reactor.drain = lambda seconds_left: (
        seen.append(b"".join(waiting.connection.outbox)) or drain(seconds_left)
    )
    world.stop()
    waiting.take(seen[0])
    assert waiting.answers[0].error_code == errors.NOT_COORDINATOR
