"""Saved states of several brokers: all of them and their controllers as they were at one moment."""

from __future__ import annotations

import gc
import warnings

import pytest

from pykafkad.__main__ import main
from pykafkad.differential import links
from pykafkad.log import snapshot_store
from pykafkad.server import data_snapshots
from pykafkad.testing import Broker, NewRecord, Refused
from pykafkad.testing.waits import until
from pykafkad.testing.wire_client import WireClient
from pykafkad.wire import messages

LONG = 60
# kafka-python reads its schemas with what Python 3.11 warns of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]


@pytest.fixture(
    params=[
        pytest.param((1, False), id="thread"),
        pytest.param((1, True), id="process", marks=pytest.mark.long),
        pytest.param((3, False), id="controllers", marks=pytest.mark.long),
    ]
)
def broker(request):
    controllers, own_process = request.param
    with Broker(
        brokers=3, controllers=controllers, topics={"orders": 6}, settings={"default.replication.factor": 3},
        own_process=own_process,
    ) as broker:  # fmt: skip
        yield broker
        if not own_process:
            assert broker._running._process.runtime.metrics.unexpected_errors == 0


def values(broker, topic="orders"):
    return sorted(each.value for each in broker.records(topic))


def rows(broker, topic="orders"):
    """The partitions of a topic as the brokers say."""
    return broker._asked._metadata(topic).topics[0].partitions


def in_sync(broker, topic="orders"):
    """The partitions of a topic once every replica is in sync."""
    return until(
        lambda: rows(broker, topic),
        lambda found: all(len(each.isr_nodes) == 3 and each.leader_id > 0 for each in found),
        "all replicas in sync",
        LONG,
    )


def write(broker, *texts, topic="orders"):
    for number, text in enumerate(texts):
        broker.produce(topic, NewRecord(text, partition=number % 6))


@pytest.mark.long
def test_everything_goes_back_at_every_broker(broker):
    """Records of all leaders, groups, topics and settings; afterwards all replicas are in sync and take records."""
    write(broker, *"abcdefghijkl")
    broker.commit("billing", {("orders", 0): 1})
    before = in_sync(broker)
    broker.save("first")
    write(broker, *"mnopqr")
    broker.create_topic("later", 2)
    broker.commit("billing", {("orders", 0): 2})
    broker.delete_topic("orders")
    broker.rewind("first")
    assert values(broker) == [each.encode() for each in "abcdefghijkl"]
    assert sorted(broker.topics()) == ["orders"] and broker.group("billing").offsets == {("orders", 0): 1}
    after = in_sync(broker)
    assert [sorted(each.replica_nodes) for each in after] == [sorted(each.replica_nodes) for each in before]
    write(broker, *"stuvwx")
    assert len(values(broker)) == 18


@pytest.mark.long
def test_replicas_agree_after_the_way_back(broker):
    """Whoever leads has everything that was acknowledged, and nothing of what was written later."""
    write(broker, *"abcdef")
    in_sync(broker)
    broker.save("first")
    write(broker, *"ghijkl")
    broker.rewind("first")
    in_sync(broker)
    for node_id in (1, 2):
        broker.stop_broker(node_id)
        until(
            lambda: rows(broker),
            lambda found, gone=node_id: all(each.leader_id > gone for each in found),
            "leaders that serve",
            LONG,
        )
        assert values(broker) == [each.encode() for each in "abcdef"]


@pytest.mark.long
def test_it_goes_back_again_and_again(broker):
    """Also to a state of another time, and to one that was made after a way back."""
    write(broker, "a")
    broker.save("one")
    write(broker, "b")
    broker.save("two")
    for name, expected in (("one", [b"a"]), ("two", [b"a", b"b"]), ("one", [b"a"])):
        broker.rewind(name)
        assert values(broker) == expected
    write(broker, "c")
    broker.save("three")
    broker.rewind("two")
    broker.rewind("three")
    assert values(broker) == [b"a", b"c"]
    broker.delete_saved("one")
    with pytest.raises(Refused, match="there is no snapshot one; there are: three, two"):
        broker.rewind("one")


def test_a_reset_follows_a_way_back(broker):
    write(broker, "a")
    broker.save("first")
    broker.rewind("first")
    broker.reset()
    assert values(broker) == []


def test_the_broker_that_is_asked_answers(monkeypatch):
    """Also when the snapshot takes many turns."""
    monkeypatch.setattr(data_snapshots, "BUDGET_SECONDS", 0.0)
    with Broker(brokers=3, topics={"orders": 6}) as broker:
        for node_id, address in enumerate(broker.bootstrap.split(","), 1):
            client = WireClient(*links.address(address))
            request = messages.IncrementalAlterConfigsRequest
            change = request.AlterableConfig(name="pykafkad.snapshot.create", config_operation=0, value=f"of-{node_id}")
            asked = request.AlterConfigsResource(resource_type=4, resource_name=str(node_id), configs=[change])
            (row,) = client.ask("IncrementalAlterConfigs", resources=[asked]).responses
            assert (row.error_code, row.resource_name) == (0, str(node_id))
            client.close()
        process = broker._running._process
        for path in process.snapshot_paths:
            assert snapshot_store.names(process.runtime.disk, path) == ["of-1", "of-2", "of-3"]
        assert len(process.snapshot_paths) == 4


@pytest.mark.long
def test_from_a_command_line(broker, capsys):
    """Every broker's address does; a topic alone does not go back."""
    write(broker, "a")
    address = broker.bootstrap.split(",")[1]
    assert main(["snapshot", "create", "first", "-b", address]) == 0
    write(broker, "b")
    assert main(["snapshot", "list", "-b", address]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "first"
    assert main(["snapshot", "restore", "first", "-b", address]) == 0
    assert values(broker) == [b"a"]
    assert main(["snapshot", "delete", "first", "-b", address]) == 0
    with warnings.catch_warnings():
        # kafka-python leaves sockets to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_what_cannot_be_is_said(broker):
    broker.save("first")
    with pytest.raises(Refused, match="there is a snapshot first already"):
        broker.save("first")
    with pytest.raises(Refused, match="a single topic .orders. does not go back alone; go back with everything: first"):
        broker.rewind("first", "orders")
    broker.stop_broker(3)
    for call in (broker.save, broker.rewind, broker.delete_saved):
        name = "first" if call != broker.save else "second"
        with pytest.raises(Refused, match="needs every broker( and controller)?, and broker 3 does not serve"):
            call(name)
    broker.start_broker(3)
    broker.rewind("first")
