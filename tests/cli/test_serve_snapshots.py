"""`pykafkad snapshot` with what `pykafkad serve --brokers --controllers` serves: all directories go back, or none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pykafkad.disk import Disk
from pykafkad.log import snapshot_store
from pykafkad.server import cluster_settings
from tests.cli.test_serve_processes import WAIT_SECONDS, started

__all__ = ["started"]
FOLDERS = ("broker1", "broker2", "broker3", "controller3000", "controller3001", "controller3002")


def run(*words: str) -> str:
    """What a command prints."""
    done = subprocess.run([sys.executable, "-m", "pykafkad", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def ask(address: str, action: str, name: str = "first") -> None:
    """`pykafkad snapshot`."""
    run("snapshot", action, name, "-b", address)


def write(address: str, value: str) -> None:
    """One record more in the topic t."""
    run("produce", "t", value, "-b", address)


def read(address: str) -> list[str]:
    """The records of the topic t."""
    lines = run("tail", "t", "--from", "start", "--stop-at-end", "--json", "-b", address).splitlines()
    return sorted(json.loads(line)["value"] for line in lines)


def options(data: Path) -> list[str]:
    """Three brokers and three controllers with a topic."""
    words = ["--brokers", "3", "--controllers", "3", "--data", str(data), "--topic", "t:3"]
    return [*words, "--set", "default.replication.factor=3"]


@pytest.mark.long
@pytest.mark.parametrize("is_one_process", [True, False], ids=["one-process", "processes"])
def test_all_nodes_go_back(started: Any, tmp_path: Path, is_one_process: bool) -> None:
    """On the same ports; `fsck` finds nothing in the directories that they leave."""
    parent = started(*options(tmp_path / "data"), is_one_process=is_one_process)
    addresses = parent.addresses()
    write(addresses[0], "a")
    ask(addresses[1], "create")
    write(addresses[0], "b")
    ask(addresses[2], "restore")
    assert [read(address) for address in addresses] == [["a"]] * 3
    write(addresses[0], "c")
    parent.process.terminate()
    assert parent.process.wait(WAIT_SECONDS) == 0
    assert cluster_settings.folders_of_several(Disk(), str(tmp_path / "data")) == list(FOLDERS)
    run("fsck", str(tmp_path / "data"))
    again = started(*options(tmp_path / "data"), is_one_process=is_one_process)
    assert read(again.addresses()[0]) == ["a", "c"]


@pytest.mark.long
@pytest.mark.parametrize("is_one_process", [True, False], ids=["one-process", "processes"])
def test_a_way_back_that_was_interrupted_is_finished(started: Any, tmp_path: Path, is_one_process: bool) -> None:
    """The process was killed when some directories had gone back: the next start brings the others there, too."""
    data = tmp_path / "data"
    parent = started(*options(data), is_one_process=True)
    address = parent.addresses()[0]
    write(address, "a")
    ask(address, "create")
    write(address, "b")
    parent.process.terminate()
    assert parent.process.wait(WAIT_SECONDS) == 0
    disk = Disk()
    paths = [str(data / each) for each in [*FOLDERS[3:], *FOLDERS[:3]]]
    disk.replace(f"{snapshot_store.folder(paths[0])}/restoring", b"first")
    for path in paths[:4]:
        snapshot_store._put_aside(disk, path)
    snapshot_store.materialize(disk, snapshot_store.path_of(paths[0], "first"), paths[0])
    again = started(*options(data), is_one_process=is_one_process)
    assert read(again.addresses()[0]) == ["a"]
