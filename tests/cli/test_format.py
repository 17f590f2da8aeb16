"""`pykafkad format` and `pykafkad storage`: directories, refusals, and nodes that start from them.

What is printed and written beside Kafka's own tool: `compat_tests/test_format.py`."""

from __future__ import annotations

import pytest

from pykafkad import uuids
from pykafkad.cli import format_words
from pykafkad.cli.commands import main
from pykafkad.disk import Disk
from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.log import checkpoints
from pykafkad.metadata import snapshots

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
DIRECTORY_ID = "JEXY6aqzQY-32P5TStzaFg"
SETTINGS = """process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:0,CONTROLLER://localhost:19093
controller.listener.names=CONTROLLER
log.dirs={data}
"""


@pytest.fixture
def node(tmp_path):
    """A file of settings and the directory that it names."""
    path, data = tmp_path / "server.properties", tmp_path / "data"
    path.write_text(SETTINGS.format(data=data))
    return path, data


def formatted(node, *options, cluster_id=CLUSTER_ID):
    return main(["format", "--config", str(node[0]), "--cluster-id", cluster_id, *options])


def meta_of(data):
    return checkpoints.decode_properties((data / "meta.properties").read_bytes())


def test_the_first_voter_of_a_quorum(node, capsys):
    assert formatted(node, "--standalone") == 0
    path, data = node
    meta = meta_of(data)
    assert (meta["version"], meta["cluster.id"], meta["node.id"]) == ("1", CLUSTER_ID, "1")
    records = list(snapshots.read((data / "__cluster_metadata-0" / snapshots.file_name(0, 0)).read_bytes()))
    (voter,) = records[2].value.voters
    assert uuids.to_text(bytes(voter.voter_directory_id)) == meta["directory.id"]
    assert [(each.name, each.host, each.port) for each in voter.endpoints] == [("CONTROLLER", "localhost", 19093)]
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == f"Formatting dynamic metadata voter directory {data} with metadata.version 4.3-IV0."
    assert printed[0].startswith("Bootstrap metadata: ") and path.exists()


def test_a_voter_among_several_has_the_directory_id_that_it_is_given(node):
    voters = f"1@h1:9093:{DIRECTORY_ID},2@h2:9093:MvDxzVmcRsaTz33bUuRU6A"
    assert formatted(node, "--initial-controllers", voters) == 0
    assert meta_of(node[1])["directory.id"] == DIRECTORY_ID


def test_formatting_again(node, capsys):
    assert formatted(node, "--standalone") == 0
    before = meta_of(node[1])
    assert formatted(node, "--standalone") == 1
    assert "is already formatted" in capsys.readouterr().err
    assert formatted(node, "--standalone", "--ignore-formatted") == 0
    assert meta_of(node[1]) == before
    assert formatted(node, "--standalone", "--ignore-formatted", cluster_id="another") == 1
    assert "Invalid cluster.id" in capsys.readouterr().err


def test_what_stops_in_the_middle_is_not_formatted(node, monkeypatch, capsys):
    """`meta.properties` is written last: the next attempt does all of it."""
    replace = Disk.replace

    def failing(disk, path, data, **options):
        if path.endswith("meta.properties"):
            raise StorageFailure("write", path, "no space left")
        replace(disk, path, data, **options)

    monkeypatch.setattr(Disk, "replace", failing)
    assert formatted(node, "--standalone") == 1
    assert "no space left" in capsys.readouterr().err
    monkeypatch.undo()
    assert formatted(node, "--standalone") == 0


def test_settings_that_cannot_be(node, capsys):
    node[0].write_text("process.roles=broker,controller\nnode.id=x\n")
    assert formatted(node) == 2
    assert "node.id" in capsys.readouterr().err
    node[0].write_text(SETTINGS.format(data=node[1]) + "controller.quorum.voters=2@h:9093,3@h:9094\n")
    assert formatted(node) == 1
    assert "node.id 1 is a controller, and none of [2, 3]" in capsys.readouterr().err


def test_the_directory_of_several_brokers_is_none(node, capsys):
    folder = node[1] / "broker1"
    folder.mkdir(parents=True)
    (folder / "meta.properties").write_text("version=1\n")
    assert formatted(node, "--standalone") == 1
    assert "holds the data of several brokers (broker1)" in capsys.readouterr().err
    assert not (node[1] / "meta.properties").exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "No voters given."),
        ("x", "No @ found"),
        ("@h:1:x", "Invalid @ at beginning"),
        ("-1@h:1:x", "Invalid negative node id -1"),
        ("1@", "No hostname found"),
        ("1@[::1:9", "no right bracket"),
        ("1@h:9", "No colon following port"),
        ("1@h:70000:x", "Invalid port 70000"),
        ("1@h:9:x", "Failed to parse directory ID"),
    ],
)
def test_voters_that_cannot_be(text, problem):
    with pytest.raises(ConfigError, match=problem):
        format_words.voters(text, "CONTROLLER")


def test_a_user_with_a_password_of_its_own_salt():
    first, second = (format_words.scram_user("SCRAM-SHA-512=[name=a,password=b]") for _ in range(2))
    assert bytes(first.salt) != bytes(second.salt) and first.iterations == 4096
    assert len(bytes(first.stored_key)) == 64


def test_keys_of_users_are_not_printed(node, capsys):
    assert formatted(node, "--standalone", "-S", "SCRAM-SHA-256=[name=alice,password=secret]") == 0
    printed = capsys.readouterr().out
    assert "name='alice'" in printed and "storedKey=[hidden], serverKey=[hidden]" in printed


def test_no_error_shows_a_part_of_a_password():
    with pytest.raises(ConfigError) as caught:
        format_words.scram_user("SCRAM-SHA-256=[name=alice,password=hunter1,hunter2]")
    assert str(caught.value) == "No equals sign found in SCRAM component: [hidden]"


def test_info(node, capsys):
    assert main(["storage", "info", "-c", str(node[0])]) == 1
    assert capsys.readouterr().out == f"Found problem:\n  {node[1]} does not exist\n\n"
    assert formatted(node, "--standalone") == 0
    capsys.readouterr()
    assert main(["storage", "info", "-c", str(node[0])]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"Found log directory:\n  {node[1]}\n\nFound metadata: {{cluster.id={CLUSTER_ID}, ")
    (node[1] / "meta.properties").write_text("version=1\n")
    assert main(["storage", "info", "-c", str(node[0])]) == 1
    assert "Failed to find node.id" in capsys.readouterr().out


def test_a_random_id(capsys):
    assert main(["storage", "random-uuid"]) == 0
    assert len(uuids.from_text(capsys.readouterr().out.strip())) == 16
