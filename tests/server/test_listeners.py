"""Listeners and what is advertised to whom."""

import pytest

from pykafkad.errors import ConfigError
from pykafkad.server.listeners import Listener, endpoints, parse, parse_address


def test_nothing_advertised_answers_with_the_way_the_caller_came():
    assert Listener("PLAINTEXT", "", 0).advertised(("172.17.0.2", 40001)) == ("172.17.0.2", 40001)
    assert Listener("PLAINTEXT", "0.0.0.0", 0).advertised(("::ffff:10.0.0.7", 9092)) == ("10.0.0.7", 9092)
    assert Listener("PLAINTEXT", "", 9092).advertised(("127.0.0.1", 9092)) == ("localhost", 9092)


def test_a_listener_on_a_name_answers_with_the_name():
    """Some clients compare the text of the host that they are told with the one they were given."""
    assert Listener("PLAINTEXT", "localhost", 0).advertised(("127.0.0.1", 41234)) == ("localhost", 41234)


def test_advertised_listeners_win():
    (listener,) = parse(["PLAINTEXT://0.0.0.0:9092"], ["PLAINTEXT://kafka.test:19092"], ["PLAINTEXT:PLAINTEXT"], [])
    assert listener.advertised(("127.0.0.1", 9092)) == ("kafka.test", 19092)


def test_a_properties_file_of_a_combined_kafka_node_gives_its_broker_listeners():
    listeners = parse(
        ["PLAINTEXT://:9092", "INTERNAL://localhost:9093", "CONTROLLER://localhost:9094"],
        ["PLAINTEXT://localhost:9092", "INTERNAL://localhost:9093"],
        ["INTERNAL:PLAINTEXT", "CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT"],
        ["CONTROLLER"],
    )
    assert [(each.name, each.host, each.port) for each in listeners] == [
        ("PLAINTEXT", "", 9092),
        ("INTERNAL", "localhost", 9093),
    ]


@pytest.mark.parametrize(
    ("listeners", "advertised", "said"),
    [
        (["localhost:9092"], [], "NAME://HOST:PORT"),
        (["PLAINTEXT://localhost:99999"], [], "port from 0 to 65535"),
        (["PLAINTEXT://::1:9092"], [], "brackets"),
        (["EXTRA://localhost:9092"], [], "add EXTRA:PLAINTEXT to listener.security.protocol.map"),
        (["PLAINTEXT://a:1", "PLAINTEXT://b:2"], [], "stands twice"),
        (["PLAINTEXT://a:1"], ["OTHER://b:2"], "OTHER is not among listeners"),
        (["PLAINTEXT://:1"], ["PLAINTEXT://0.0.0.0:1"], "no client can connect to"),
        ([], [], "at least one"),
    ],
)
def test_impossible_listeners_say_what_is_allowed(listeners, advertised, said):
    with pytest.raises(ConfigError, match=said.replace(".", r"\.")):
        parse(listeners, advertised, ["PLAINTEXT:PLAINTEXT"], [])


def test_a_node_registers_the_security_protocol_of_each_listener():
    found = parse(
        ["PLAINTEXT://localhost:9092", "OUTSIDE://localhost:9093"], [], ["PLAINTEXT:PLAINTEXT", "OUTSIDE:ssl"], []
    )
    assert [(each.name, each.port, each.security_protocol) for each in endpoints(found)] == [
        ("PLAINTEXT", 9092, 0),
        ("OUTSIDE", 9093, 1),
    ]


@pytest.mark.parametrize("entry", ["EXTRA", "EXTRA:", ":PLAINTEXT", "EXTRA:TLS", ""])
def test_impossible_security_protocols_say_what_is_allowed(entry):
    with pytest.raises(
        ConfigError, match="listener.security.protocol.map: .* is not NAME:PROTOCOL with one of PLAINTEXT, SSL"
    ):
        parse(["PLAINTEXT://localhost:9092"], [], ["PLAINTEXT:PLAINTEXT", entry], [])


@pytest.mark.parametrize(
    ("text", "address"),
    [("localhost:1", ("localhost", 1)), (":9092", ("", 9092)), ("*:9092", ("", 9092)), ("[::1]:0", ("::1", 0))],
)
def test_addresses(text, address):
    assert parse_address(text, "--listen") == address


@pytest.mark.parametrize(
    "text", ["localhost", "localhost:", "localhost:-1", "localhost:65536", "localhost:\N{SUPERSCRIPT TWO}"]
)
def test_what_is_no_address(text):
    with pytest.raises(ConfigError, match="--listen: .* is not HOST:PORT with a port from 0 to 65535"):
        parse_address(text, "--listen")
