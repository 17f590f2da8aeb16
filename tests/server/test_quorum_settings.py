"""What the settings say of a quorum: who votes, who else is there, and who must have been formatted."""

import pytest

from pykafkad import config
from pykafkad.errors import ConfigError
from pykafkad.server import quorum_settings
from pykafkad.server.combined_process import CombinedProcess
from pykafkad.server.listeners import Listener
from pykafkad.server.wiring import Process
from tests.simulation.controllers import DIRECTORY
from tests.simulation.disk import MemoryDisk


def settings_of(**values):
    return config.Settings.from_properties({key.replace("_", "."): (value, "test") for key, value in values.items()})


def test_a_broker_is_none_of_several_voters():
    settings = settings_of(controller_quorum_voters="1@h:1,2@h:2")
    process = Process(settings, [Listener("PLAINTEXT", "h", 9092)], [DIRECTORY], disk=MemoryDisk())
    with pytest.raises(ConfigError, match="is a process of its own"):
        process.controller.start()


def test_a_combined_node_needs_a_listener_for_the_others():
    settings = settings_of(controller_quorum_voters="1@h:1,2@h:2", listeners="PLAINTEXT://h:9092")
    with pytest.raises(ConfigError, match=r"listeners: .* needs a listener of controller.listener.names"):
        CombinedProcess(settings, [Listener("PLAINTEXT", "h", 9092)], [DIRECTORY], disk=MemoryDisk())


OWN = "PLAINTEXT://:9092,CONTROLLER://:9093"


@pytest.mark.parametrize(
    ("values", "listens", "needs_format", "begins_alone"),
    [
        ({}, False, False, True),
        ({"listeners": OWN}, True, False, True),
        ({"listeners": OWN, "controller_quorum_bootstrap_servers": "localhost:9093"}, True, False, True),
        ({"listeners": OWN, "controller_quorum_bootstrap_servers": "127.0.0.1:9093"}, True, False, True),
        ({"listeners": OWN, "controller_quorum_bootstrap_servers": "localhost:9094"}, True, True, False),
        ({"listeners": OWN, "controller_quorum_bootstrap_servers": "other:9093"}, True, True, False),
        (
            {
                "listeners": OWN,
                "advertised_listeners": "PLAINTEXT://k1:9092,CONTROLLER://k1:9093",
                "controller_quorum_bootstrap_servers": "k1:9093",
            },
            True,
            False,
            True,
        ),
        ({"listeners": OWN, "controller_quorum_bootstrap_servers": "k1:9093,k2:9093"}, True, True, False),
        ({"listeners": OWN, "controller_quorum_voters": "1@k1:9093"}, True, False, False),
        ({"listeners": OWN, "controller_quorum_voters": "1@k1:9093,2@k2:9093"}, True, True, False),
        ({"listeners": "PLAINTEXT://:9092,QUORUM://:9093", "controller_listener_names": "QUORUM"}, True, False, True),
    ],
)
def test_which_combined_nodes_are_there_for_others(values, listens, needs_format, begins_alone):
    settings = settings_of(**values)
    assert quorum_settings.listens_for_nodes(settings) is listens
    assert quorum_settings.needs_format(settings) is needs_format
    assert quorum_settings.begins_alone(settings) is begins_alone


@pytest.mark.parametrize("text", ["1", "a@h:1", "1@h", "1@h:1,1@g:2", "1@h:99999"])
def test_voters_that_cannot_be(text):
    with pytest.raises(ConfigError, match="controller.quorum.voters"):
        quorum_settings.static_voters(settings_of(controller_quorum_voters=text))


@pytest.mark.parametrize(
    ("values", "has_others", "needs_format"),
    [
        ({}, False, False),
        ({"controller_quorum_voters": "1@h:1"}, False, False),
        ({"controller_quorum_bootstrap_servers": "h:1"}, False, False),
        ({"controller_quorum_voters": "1@h:1,2@h:2"}, True, True),
        ({"process_roles": "controller"}, True, False),
        ({"process_roles": "controller", "controller_quorum_voters": "1@h:1"}, True, False),
        ({"process_roles": "controller", "controller_quorum_bootstrap_servers": "h:1"}, True, True),
    ],
)
def test_which_quorums_have_other_members(values, has_others, needs_format):
    settings = settings_of(**values)
    assert quorum_settings.has_others(settings) is has_others
    assert quorum_settings.needs_format(settings) is needs_format
