"""The settings of brokers and controllers that are processes of their own."""

import random

import pytest

from pykafkad import config, uuids
from pykafkad.errors import ConfigError
from pykafkad.server import cluster_settings, quorum_settings, run
from tests.simulation.disk import MemoryDisk


def of_quorum(ports, *, disk=None, brokers=2, **properties):
    given = {name.replace("_", "."): (str(value), "test") for name, value in properties.items()}
    settings = config.Settings.from_properties({"log.dirs": ("/data", "test"), **given})
    members = cluster_settings.of_brokers(settings, brokers, (), given)
    return cluster_settings.of_quorum(settings, members, ports, disk or MemoryDisk(), random.Random(1))


def test_every_node_names_the_same_voters():
    controllers, brokers = of_quorum([7001, 7002, 7003], listeners="PLAINTEXT://:9092")
    for each in (*controllers, *brokers):
        voters = quorum_settings.static_voters(each)
        assert [(voter.id, voter.endpoints[0].port) for voter in voters] == [(3000, 7001), (3001, 7002), (3002, 7003)]
    assert [each.node_id for each in brokers] == [1, 2]
    assert [each.log_directories for each in controllers] == [(f"/data/controller300{index}",) for index in range(3)]
    listening = [run.parse_listeners(each) for each in (*controllers, *brokers)]
    assert [(each.host, each.port) for (each,) in listening] == [
        *(("127.0.0.1", port) for port in (7001, 7002, 7003)), ("", 9092), ("", 9093),
    ]  # fmt: skip
    assert len({each.pykafkad_cluster_id for each in (*controllers, *brokers)}) == 1


def test_a_controllers_listener_of_a_file_keeps_its_name():
    """As in Kafka's own server.properties: the brokers do not serve it, and it is plain text here."""
    (controller,), brokers = of_quorum(
        [7001],
        listeners="PLAINTEXT://:9092,CTL://:9192",
        advertised_listeners="PLAINTEXT://me:9092,CTL://me:9192",
        controller_listener_names="CTL",
        listener_security_protocol_map="CTL:SSL,PLAINTEXT:PLAINTEXT",
        controller_quorum_bootstrap_servers="elsewhere:9192",
    )
    (listener,) = run.parse_listeners(controller)
    assert (listener.name, listener.port, listener.security_protocol) == ("CTL", 7001, "PLAINTEXT")
    for each in (controller, *brokers):
        assert not each.controller_quorum_bootstrap_servers and quorum_settings.listener_of(each) == "CTL"
    assert [[listener.name for listener in run.parse_listeners(each)] for each in brokers] == [["PLAINTEXT"]] * 2


def test_directories_of_a_cluster_keep_its_id():
    """Whichever of them is left; a setting has the last word."""
    disk = MemoryDisk()
    disk.make_directories("/data/broker2")
    disk.write("/data/broker2/meta.properties", b"version=1\ncluster.id=known\nnode.id=2\n", sync=True)
    controllers, brokers = of_quorum([7001], disk=disk)
    assert {each.pykafkad_cluster_id for each in (*controllers, *brokers)} == {"known"}
    (controller,), _ = of_quorum([7001], disk=disk, pykafkad_cluster_id=uuids.to_text(b"0123456789abcdef"))
    assert controller.pykafkad_cluster_id == uuids.to_text(b"0123456789abcdef")


@pytest.mark.parametrize(
    ("folder", "ports", "problem"),
    [
        ("controller", [1], "its metadata is in controller, and now it would be in controller3000"),
        ("controller3000", [1, 2], "is in controller3000, and now it would be in controller3000, controller3001"),
        ("controller3000", [], "--controllers 0: must be from 1 to 9"),
        (None, [1], "holds the data of a single broker"),
    ],
)
def test_directories_of_another_kind_are_refused(folder, ports, problem):
    disk = MemoryDisk()
    disk.make_directories(f"/data/{folder or ''}")
    if folder is None:
        disk.write("/data/meta.properties", b"version=1\n", sync=True)
    with pytest.raises(ConfigError, match=problem):
        of_quorum(ports, disk=disk)


def test_a_controller_has_no_brokers_id():
    with pytest.raises(ConfigError, match="node.id: 3001 is that of a controller; they have 3000 to 3002"):
        of_quorum([1, 2, 3], brokers=1, node_id=3001)


def test_old_releases_are_acted_as_by_one_broker():
    """Followers of 3.4 and 3.7 fetch in versions that do not carry what followers here say."""
    with pytest.raises(ConfigError, match=r"pykafkad.act.as: Kafka 3.7 is acted as by a single broker"):
        of_quorum([7001], pykafkad_act_as="3.7")
    of_quorum([7001], pykafkad_act_as="3.9")


def test_data_in_memory_does_not_mind_what_a_directory_holds():
    """Its name is the default's, where a single broker may have been served before."""
    disk = MemoryDisk()
    disk.make_directories("/data")
    disk.write("/data/meta.properties", b"version=1\n", sync=True)
    with pytest.raises(ConfigError, match="holds the data of a single broker"):
        of_quorum([1], disk=disk)
    of_quorum([1], disk=disk, pykafkad_memory_max_bytes=1_000_000)
