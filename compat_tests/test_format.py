"""`pykafkad format` and `pykafkad storage` beside Kafka's own storage tool: the same lines, exit codes and directories,
and the same refusals. A Kafka starts from a directory that pykafkad has formatted."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import free_port
from compat_tests.brokers.kafka_process import CLUSTER_ID
from compat_tests.brokers.settings import as_properties, kafka_properties
from compat_tests.quorum.combined import CombinedKafka
from compat_tests.tools.runner import ToolRunner
from pykafkad.cli.commands import main
from pykafkad.metadata import snapshots
from pykafkad.wire.messages import VotersRecord

DIRECTORY_ID = "JEXY6aqzQY-32P5TStzaFg"
OTHER_ID = "MvDxzVmcRsaTz33bUuRU6A"
COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "{root}/one,{root}/two",
}
STATIC = {**COMBINED, "controller.quorum.voters": "1@localhost:9093"}
del STATIC["controller.quorum.bootstrap.servers"]
BROKER = {**COMBINED, "process.roles": "broker", "node.id": "2", "listeners": "PLAINTEXT://:9092"}
ELSEWHERE = {**COMBINED, "metadata.log.dir": "{root}/metadata"}
NAMED = {**COMBINED, "controller.listener.names": "QUORUM", "listeners": "PLAINTEXT://:9092,QUORUM://k1:9093"} | {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,QUORUM:PLAINTEXT"
}
SALTED = 'SCRAM-SHA-256=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]'
FROM_PASSWORD = 'SCRAM-SHA-512=[name=bob,password="its=secret",salt="MWtvYXJ5Y2Q="]'
VOTERS = f"1@k1:9093:{DIRECTORY_ID},2@[::1]:9094:{OTHER_ID}"

FORMATS: dict[str, tuple[dict[str, str], list[str]]] = {
    "static voters": (STATIC, []),
    "the begin of a quorum": (COMBINED, ["--standalone"]),
    "a listener with another name": (NAMED, ["-s"]),
    "a metadata directory of its own": (ELSEWHERE, ["--standalone"]),
    "several voters": (COMBINED, ["--initial-controllers", VOTERS]),
    "none of the voters": ({**COMBINED, "node.id": "5"}, ["-I", VOTERS]),
    "who joins": (COMBINED, ["--no-initial-controllers"]),
    "a broker": (BROKER, []),
    "3.9": (STATIC, ["--release-version", "3.9"]),
    "4.0.1": (STATIC, ["-r", "4.0.1"]),
    "4.1-IV0": (STATIC, ["-r", "4.1-IV0"]),
    "a level of metadata.version": (STATIC, ["-f", "metadata.version=17"]),
    "levels of features": (STATIC, ["-f", "group.version=0", "--feature", "transaction.version=1"]),
    "an early preview": (STATIC, ["-r", "4.0", "-f", "eligible.leader.replicas.version=1"]),
    "kraft.version 1": (COMBINED, ["-s", "-f", "kraft.version=1"]),
    "users": (STATIC, ["-S", SALTED, "--add-scram", FROM_PASSWORD]),
}

REFUSED: dict[str, tuple[dict[str, str], list[str]]] = {
    "no voters": (COMBINED, []),
    "static voters and others": (STATIC, ["--standalone"]),
    "static voters and named ones": (STATIC, ["-I", VOTERS]),
    "a broker begins no quorum": (BROKER, ["--standalone"]),
    "an unknown release": (STATIC, ["-r", "9.9"]),
    "an unstable release": (STATIC, ["-r", "4.4-IV0"]),
    "no release": (STATIC, ["-r", "3"]),
    "release and level": (STATIC, ["-r", "3.9", "-f", "metadata.version=20"]),
    "an unknown level": (STATIC, ["-f", "metadata.version=99"]),
    "an unstable level": (STATIC, ["-f", "metadata.version=31"]),
    "an unknown feature": (STATIC, ["-f", "foo=1"]),
    "an unknown level of a feature": (STATIC, ["-f", "group.version=7"]),
    "no level": (STATIC, ["-f", "group.version"]),
    "a level that is no number": (STATIC, ["-f", "group.version=x"]),
    "a level that is too large": (STATIC, ["-f", "group.version=70000"]),
    "a feature that depends on another": (STATIC, ["-r", "3.8", "-f", "eligible.leader.replicas.version=1"]),
    "kraft.version 1 with static voters": (STATIC, ["-f", "kraft.version=1"]),
    "kraft.version 0 without static voters": (COMBINED, ["-s", "-f", "kraft.version=0"]),
    "users of an old release": (STATIC, ["-r", "3.4", "-S", SALTED]),
    **{
        f"user {text}": (STATIC, ["-S", text])
        for text in (
            "SCRAM-SHA-256",
            "SCRAM=[name=a]",
            "SCRAM-SHA-256=name=a",
            "SCRAM-SHA-256=[name=a",
            "SCRAM-SHA-256=[]",
            "SCRAM-SHA-256=[password=a]",
            "SCRAM-SHA-256=[name=a]",
            "SCRAM-SHA-256=[name=a,saltedpassword=YCE=]",
            "SCRAM-SHA-256=[name=a,password=b,salt=*]",
            "SCRAM-SHA-256=[name=a,password=b,iterations=many]",
            "SCRAM-SHA-256=[name=a,password=b,iterations=10]",
            "SCRAM-SHA-512=[name=a,password=b,iterations=20000]",
            "SCRAM-SHA-256=[name=a,password=b,color=red]",
        )
    },
    **{
        f"voter {text}": (COMBINED, ["-I", text])
        for text in (
            "x",
            "a@h:1:x",
            "1@",
            "1@h",
            "1@[::1:9:x",
            "1@[::1]9:x",
            "1@h:9",
            "1@h:x:y",
            "1@h:99999:y",
            "1@h:9:notuuid",
            f"1@h:9:{DIRECTORY_ID},1@h:10:{OTHER_ID}",
            ",",
        )
    },
}
OTHERS = [
    ["version-mapping"],
    ["version-mapping", "-r", "3.3"],
    ["version-mapping", "-r", "3.9.2"],
    ["version-mapping", "--release-version", "4.0-IV1"],
    ["version-mapping", "-r", "4.4-IV0"],
    ["version-mapping", "-r", "4.4"],
    ["version-mapping", "-r", "2.8"],
    ["feature-dependencies", "-f", "kraft.version=1", "-f", "eligible.leader.replicas.version=1"],
    ["feature-dependencies", "--feature", "metadata.version=17"],
    ["feature-dependencies", "-f", "metadata.version=99"],
    ["feature-dependencies", "-f", "foo=1"],
    ["feature-dependencies", "-f", "group.version=9"],
    ["feature-dependencies", "-f", "group.version"],
    ["feature-dependencies", "-f", "group.version=x"],
]


class Outcome:
    """An exit code, what was printed, and the sentence of an error; without what differs from one run to the next."""

    def __init__(self, code: int, output: str, errors: str, root: Path) -> None:
        self.code = code
        self.lines = sorted(_plain(line, root) for line in output.splitlines() if line.strip())
        # A Java program that did not expect it prints the exception's name and where it was; we print the sentence.
        told = [
            line for line in errors.splitlines() if line.strip() and not re.match(r"\s+at |Caused by|\s+\.\.\.", line)
        ]
        text = re.sub(r'^Exception in thread "\w+" ([\w.]+: )?', "", told[0]) if code and told else ""
        self.error = _plain(re.sub(r"^[\w.]+(Exception|Failure): ", "", text).removeprefix("pykafkad: "), root)

    def __repr__(self) -> str:
        return f"Outcome({self.code}, {self.lines}, {self.error!r})"

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)

    __hash__ = None  # type: ignore[assignment]


def _plain(line: str, root: Path) -> str:
    line = re.sub(r"(storedKey|serverKey)=\[[-\d, ]*\]", r"\1=[hidden]", line.replace(str(root), "ROOT"))
    # Of several directories that are formatted already Kafka names one or another.
    line = re.sub(r"ROOT/\w+ is already formatted", "ROOT/one is already formatted", line)
    return re.sub(r"directory\.id=[\w-]{22}", "directory.id=ID", line)


class Side:
    """One of the two, with directories of its own."""

    def __init__(self, root: Path, runner: ToolRunner | None) -> None:
        root.mkdir()
        self.root = root
        self._runner = runner

    def run(self, *arguments: str) -> Outcome:
        if self._runner is not None:
            found = self._runner.run("storage", arguments)
            return Outcome(found.code, found.output, found.errors, self.root)
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            code = main(["storage", *arguments])
        return Outcome(code, output.getvalue(), errors.getvalue(), self.root)

    def config(self, settings: dict[str, str]) -> str:
        path = self.root / "server.properties"
        path.write_text(as_properties(settings).replace("{root}", str(self.root)))
        return str(path)

    def format(self, settings: dict[str, str], options: list[str], cluster_id: str = CLUSTER_ID) -> Outcome:
        return self.run("format", "-t", cluster_id, "-c", self.config(settings), *options)

    def content(self, random_ids: bool) -> dict[str, object]:
        """What is in each file, without times and what chance has chosen: the voters' directories too, if so told."""
        found: dict[str, object] = {}
        for path in sorted(self.root.rglob("*")):
            if path.is_dir() or path.name == "server.properties":
                continue
            name = str(path.relative_to(self.root))
            if path.suffix == ".checkpoint":
                found[name] = (path.stat().st_size, _records(path, random_ids))
            else:
                lines = path.read_text().splitlines()
                found[name] = sorted(_plain(line, self.root) for line in lines if line and line[0] != "#")
        return found


def _records(path: Path, random_ids: bool) -> list[str]:
    values = [each.value for each in snapshots.read(path.read_bytes())]
    for voters in (each for each in values if random_ids and isinstance(each, VotersRecord)):
        for voter in voters.voters:
            voter.voter_directory_id = bytes(16)
    return [re.sub(r"last_contained_log_timestamp=\d+", "", repr(value)) for value in values]


@pytest.fixture
def sides(tmp_path: Path, runner: ToolRunner) -> tuple[Side, Side]:
    """Kafka's tool, and ours."""
    return Side(tmp_path / "kafka", runner), Side(tmp_path / "pykafkad", None)


@pytest.mark.parametrize("name", FORMATS)
def test_formats(sides: tuple[Side, Side], name: str) -> None:
    """What is printed, every file, and what is said when it is tried again."""
    settings, options = FORMATS[name]
    kafka, ours = (side.format(settings, options) for side in sides)
    assert kafka.code == 0, kafka
    assert ours == kafka
    random_ids = "-s" in options or "--standalone" in options
    kafka_content, content = (side.content(random_ids) for side in sides)
    assert content == kafka_content and "one/meta.properties" in content
    kafka, ours = (side.format(settings, options) for side in sides)
    assert ours == kafka and kafka.code == 1
    for path in ("one", "two"):
        shutil.rmtree(sides[0].root / path)
        shutil.rmtree(sides[1].root / path)
        kafka, ours = (side.format(settings, [*options, "--ignore-formatted"]) for side in sides)
        assert ours == kafka and kafka.code == 0
    kafka, ours = (side.run("info", "-c", side.config(settings)) for side in sides)
    assert ours == kafka and kafka.code == 0


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(sides: tuple[Side, Side], name: str) -> None:
    """With the same sentence, and nothing is written."""
    settings, options = REFUSED[name]
    kafka, ours = (side.format(settings, options) for side in sides)
    assert kafka.code == 1 and kafka.error
    assert ours == kafka
    assert sides[1].content(False) == sides[0].content(False) == {}


def test_directories_that_are_not_as_they_must_be(sides: tuple[Side, Side]) -> None:
    """Those of another cluster or node, copies of one another, files, damaged ones; and what `info` says of them."""

    def both(settings: dict[str, str], options: list[str], cluster_id: str = CLUSTER_ID) -> Outcome:
        found, mine = (side.format(settings, options, cluster_id) for side in sides)
        assert mine == found
        found_info, mine_info = (side.run("info", "-c", side.config(settings)) for side in sides)
        assert mine_info == found_info
        return found

    assert both(STATIC, []).code == 0
    assert "Invalid cluster.id" in both(STATIC, ["-g"], "another").error
    seven = {**STATIC, "node.id": "7", "controller.quorum.voters": "7@localhost:9093"}
    assert "Stored node id 1 doesn't match" in both(seven, ["-g"]).error
    for side in sides:
        shutil.rmtree(side.root / "two")
        shutil.copytree(side.root / "one", side.root / "two")
    for side in sides:
        assert "Duplicate directory ID" in side.format(STATIC, ["-g"]).error
    for side in sides:
        shutil.rmtree(side.root / "two")
        (side.root / "two").write_text("a file")
    assert "already formatted" in both(STATIC, []).error
    for side in sides:
        shutil.rmtree(side.root / "one")
        (side.root / "one").write_text("a file")
    assert both(STATIC, []).error == "No available log directories to format."
    for text in ("version=1\ncluster.id=x\n", "version=9\nnode.id=1\n", "version=1\nnode.id=a\n"):
        for side in sides:
            if not (side.root / "one").is_dir():
                (side.root / "one").unlink()
                (side.root / "one").mkdir()
            (side.root / "one" / "meta.properties").write_text(text)
        found, mine = (side.format(STATIC, []) for side in sides)
        assert mine == found and found.code == 1


@pytest.mark.parametrize("arguments", OTHERS, ids=" ".join)
def test_other_actions(sides: tuple[Side, Side], arguments: list[str]) -> None:
    kafka, ours = (side.run(*arguments) for side in sides)
    assert ours == kafka


def test_random_ids(sides: tuple[Side, Side]) -> None:
    for side in sides:
        (line,) = side.run("random-uuid").lines
        assert re.fullmatch(r"[\w-]{22}", line)


def test_a_kafka_starts_from_a_directory_of_ours(kafka_jars: Path, tmp_path: Path) -> None:
    """It has the features, and the user, that the directory was formatted with, and serves."""
    port = free_port()
    settings = kafka_properties(port, free_port(), str(tmp_path / "kafka" / "data"), "localhost")
    kafka = CombinedKafka(kafka_jars, tmp_path / "kafka", settings, port)
    path = str(tmp_path / "kafka" / "server.properties")
    user = "SCRAM-SHA-256=[name=alice,password=alice-secret]"
    arguments = ["format", "-c", path, "-t", CLUSTER_ID, "--standalone", "-r", "4.0", "--add-scram", user]
    assert main(arguments) == 0
    try:
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic("t", 1, 1)])["t"].result(60)
        assert admin.describe_cluster().result(60).cluster_id == CLUSTER_ID
        described = admin.describe_user_scram_credentials(["alice"])["alice"].result(60)
        assert [each.iterations for each in described.scram_credential_infos] == [4096]
    finally:
        kafka.close()
