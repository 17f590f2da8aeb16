"""A broker in a process of its own does what one on a thread does, and ends with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from pykafkad import errors
from pykafkad.errors import StartFailure
from pykafkad.testing import Broker, BrokerEnded, Refused
from pykafkad.testing.wire_client import WireClient
from tests.testing.test_broker import connects

PARENT = """
import sys, time
from pykafkad.testing import Broker
broker = Broker(own_process=True).start()
print(broker.bootstrap, broker._running._process.pid, flush=True)
time.sleep(60)
"""


def test_a_process_of_its_own(tmp_path):
    """Seeds, faults, reset and what is kept, all by the same methods; and a start that fails says why."""
    with Broker(own_process=True, topics={"orders": 1}, records={"orders": ["a"]}) as own:
        assert own._running._process.pid != os.getpid() and own.is_running
        with own.faults.close_before("Produce", times=None, topic="orders") as fault:
            assert fault.count == 0 and fault.passed == 0
        own.produce("orders", "b")
        own.keep(tmp_path / "kept")
        own.reset()
        assert [each.value for each in own.records("orders")] == [b"a"]
        with pytest.raises(StartFailure, match="cannot listen on"):
            Broker(own_process=True, port=int(own.bootstrap.split(":")[1])).start()
        own._running._process.kill()
        with pytest.raises(BrokerEnded, match="ended: -9"):
            own.reset()
    assert (tmp_path / "kept" / "orders-0").is_dir()


@pytest.mark.parametrize("own_process", [False, True])
def test_a_topic_that_a_reset_cannot_create_is_refused_with_its_code(own_process):
    """The broker has not ended, and goes on."""
    with Broker(own_process=own_process, topics={"orders": 2}) as own:
        with pytest.raises(Refused, match="topic orders: INVALID_PARTITIONS") as refused:
            own._running.reset({"orders": (0, {})})
        assert refused.value.code == errors.INVALID_PARTITIONS
        own.reset()
        assert own.topics() == {"orders": 2}


@pytest.mark.long
@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_killed_one_goes_on_with_its_clock_and_its_trace(tmp_path, is_stopped):
    with Broker(own_process=True, data=str(tmp_path / "data")) as own:
        own.clock.advance(86_400)
        traced = own.trace()
        if is_stopped:
            traced.stop()
        own.restart(is_killed=True)
        host, port = own.bootstrap.split(":")
        client = WireClient(host, int(port), client_id="app")
        client.ask("ListGroups")
        client.close()
        assert [each["api"] for each in traced.requests()] == ([] if is_stopped else ["ListGroups"])
        own.clock.advance(1)
        assert own.clock.ahead_seconds == pytest.approx(86_401)


@pytest.mark.long
def test_it_ends_with_its_parent():
    """Even if that is killed."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    bootstrap, child = parent.stdout.readline().split()
    assert connects(bootstrap)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while connects(bootstrap):
        assert time.monotonic() < deadline, f"process {child} outlives its parent"
        time.sleep(0.01)
