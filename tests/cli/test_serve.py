"""The options of `pykafkad serve` reach the broker as settings."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from pykafkad.__main__ import main
from pykafkad.cli import serve
from pykafkad.clock import ManualClock
from pykafkad.server import listeners, logs, run as process


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """Records the calls of `run.run`, in place of a broker."""
    calls: list[dict] = []

    def run(settings: object, **named: object) -> int:
        calls.append({"settings": settings, **named})
        return 0

    monkeypatch.setattr(process, "run", run)
    for name in ("PYKAFKAD_LOG_LEVEL", "PYKAFKAD_NUM_PARTITIONS"):
        monkeypatch.delenv(name, raising=False)
    level = logs._OUTPUT.threshold
    yield calls
    logs._OUTPUT.threshold = level


def test_defaults_without_options(started: list[dict]) -> None:
    """The listeners are Kafka's default, the directory is pykafkad's, and no topic is created."""
    assert main(["serve"]) == 0
    (call,) = started
    assert (call["data_directories"], call["topics"], call["ready_file"]) == (("pykafkad-data",), [], None)
    assert call["settings"].listeners == ("PLAINTEXT://:9092",) and "listeners" not in call["settings"].static


def test_a_new_group_begins_at_once_without_a_property_file(started: list[dict], tmp_path: Path) -> None:
    """With a property file the first rebalance waits as long as Kafka's."""
    properties = tmp_path / "server.properties"
    properties.write_text("num.partitions=4\n")
    assert main(["serve"]) == main(["serve", str(properties)]) == 0
    assert [call["settings"].group_initial_rebalance_delay_ms for call in started] == [0, 3000]


def test_all_options_reach_the_broker(started: list[dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of repeated options add up. `--option=value` and `--option value` mean the same."""
    monkeypatch.chdir(tmp_path)
    properties = tmp_path / "server.properties"
    properties.write_text("num.partitions=4\nlog.dirs=/elsewhere\n")
    code = main(
        [
            "serve",
            "--listen",
            "localhost:0",
            str(properties),
            "--listen=[::1]:9093",
            "--data",
            "d",
            "--topic",
            "a:3",
            "--topic=b",
            "--set",
            "delete.topic.enable=false",
            "--ready-file",
            "r",
            "--log-level",
            "error",
        ]
    )
    assert code == 0
    (call,) = started
    assert call["settings"].listeners == ("PLAINTEXT://localhost:0", "PLAINTEXT_2://[::1]:9093")
    assert call["topics"] == [("a", 3), ("b", 4)]
    assert (call["data_directories"], call["ready_file"]) == (("d",), str(tmp_path / "r"))
    assert call["settings"].log_directories == ("d",)
    assert call["settings"].delete_topic_enable is False
    assert logs._OUTPUT.threshold == logs.LEVELS.index("error")


@pytest.mark.parametrize("options", [["--listen", ":0", "--listen", ":1"], ["--listen", ":0", "--tls"]])
def test_a_broker_reaches_its_controllers_as_without_listen(
    started: list[dict], tmp_path: Path, options: list[str]
) -> None:
    """The implied protocol of the controllers' listener belongs to the file, which does not write it down."""
    properties = tmp_path / "server.properties"
    properties.write_text("process.roles=broker\ncontroller.quorum.bootstrap.servers=h:1\n")
    for given in ([], options):
        assert main(["serve", str(properties), "--data", str(tmp_path / "data"), *given]) == 0
        assert listeners.protocol_of(started[-1]["settings"], "CONTROLLER") == "PLAINTEXT"


def test_admin_clients_see_the_options_as_settings(
    started: list[dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options count as settings of a property file and override the file's own."""
    from pykafkad.settings.entries import DEFAULT_CONFIG, STATIC_BROKER_CONFIG, describe_broker

    properties = tmp_path / "server.properties"
    properties.write_text(
        "listeners=A://:1\nlistener.security.protocol.map=A:PLAINTEXT, plaintext:SSL\nlog.dirs=/elsewhere\nnode.id=5\n"
    )

    def shown(*arguments: str) -> dict[str, tuple[str | None, int]]:
        assert main(["serve", *arguments]) == 0
        return {entry.name: (entry.value, entry.source) for entry in describe_broker(started[-1]["settings"])}

    def static(text: str) -> tuple[str, int]:
        return text, STATIC_BROKER_CONFIG

    plain = shown()
    assert plain["listeners"] == ("PLAINTEXT://:9092", DEFAULT_CONFIG) and plain["log.dir"] == static("pykafkad-data")
    assert plain["node.id"] == plain["broker.id"] == static("1") and plain["log.dirs"] == (None, DEFAULT_CONFIG)
    one = shown("--listen", "[::1]:0", "--data", "d")
    assert one["listeners"] == static("PLAINTEXT://[::1]:0") and one["log.dirs"] == static("d")
    assert one["listener.security.protocol.map"] == plain["listener.security.protocol.map"]
    several = shown("--listen", ":1", "--listen", "h:2", "--listen", "*:3")
    assert several["listeners"] == static("PLAINTEXT://:1,PLAINTEXT_2://h:2,PLAINTEXT_3://:3")
    default = plain["listener.security.protocol.map"][0]
    assert several["listener.security.protocol.map"] == static(f"{default},PLAINTEXT_2:PLAINTEXT,PLAINTEXT_3:PLAINTEXT")
    other = shown(str(properties), "--listen", ":1", "--data", "d")
    assert (
        other["listeners"] == static("PLAINTEXT://:1")
        and other["log.dirs"] == static("d")
        and other["broker.id"] == static("5")
    )
    assert other["listener.security.protocol.map"] == static("A:PLAINTEXT,PLAINTEXT:PLAINTEXT")


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("512MB", 512 << 20), ("2g", 2 << 30), ("100k", 100 << 10), ("12345", 12345)]
)
def test_memory_takes_a_size_with_a_unit(started: list[dict], text: str, size_bytes: int) -> None:
    """`--memory` is the setting pykafkad.memory.max.bytes with units."""
    assert main(["serve", "--memory", text]) == 0
    assert started[0]["settings"].pykafkad_memory_max_bytes == size_bytes


@pytest.mark.parametrize("text", ["", "0", "MB", "-1MB", "1.5GB", "2TB", "many"])
def test_an_invalid_memory_size_is_refused(started: list[dict], capsys: pytest.CaptureFixture, text: str) -> None:
    """The error names the option, the value and what is allowed."""
    assert main(["serve", f"--memory={text}"]) == 2
    assert f"--memory {text}: must be a size above 0 such as 512MB or 2GB" in capsys.readouterr().err
    assert started == []


def test_environment_variables_are_settings(started: list[dict], monkeypatch: pytest.MonkeyPatch) -> None:
    """PYKAFKAD_… variables are settings. PYKAFKAD_LOG_LEVEL is the log level."""
    monkeypatch.setenv("PYKAFKAD_NUM_PARTITIONS", "7")
    monkeypatch.setenv("PYKAFKAD_LOG_LEVEL", "debug")
    assert main(["serve"]) == 0
    assert started[0]["settings"].num_partitions == 7
    assert logs._OUTPUT.threshold == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--log-format", "xml"], "--log-format xml: must be text or json"),
        (["--topic", "a:0"], "--topic a:0: must be NAME or NAME:PARTITIONS"),
        (["--topic", "a:x"], "--topic a:x"),
        (["--topic", "a:1", "--topic", "a:2"], "--topic a: given twice"),
        (["--ready-file", "/no/such/place/ready"], "--ready-file .*: there is no directory /no/such/place"),
        (["--set", "num.partitions"], "--set num.partitions: must be name=value"),
        (["--set", "num.partitions=0"], "--set: num.partitions: .*must be at least 1"),
        (["--listen", "localhost"], "'localhost' is not HOST:PORT"),
        (["--log-level", "loud"], "--log-level loud: must be one of debug, info, warning, error"),
        (["absent.properties"], "absent.properties: cannot be read"),
        (["--data"], "argument --data: expected one argument"),
        (["--data", "--topic"], "argument --data: expected one argument"),
        (["--bogus"], "unrecognized arguments: --bogus"),
        (["a", "b"], "unrecognized arguments: b"),
    ],
)
def test_invalid_options_and_settings_are_named(
    arguments: list[str], words: str, started: list[dict], capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, and a sentence names the option and what is allowed. No broker starts."""
    import re

    assert main(["serve", *arguments]) == 2
    assert re.search(words, capsys.readouterr().err)
    assert started == []


def test_warnings_are_logged(started: list[dict]) -> None:
    """A warning names a setting without effect that clients notice before the broker is ready. The others are one line
    in all."""
    lines: list[bytes] = []
    before = logs._OUTPUT.sink
    logs.configure("info", logs.Sink(lambda data: lines.append(data) or len(data), ManualClock()))
    try:
        others = ("--set", "num.io.threads=9", "--set", "num.network.threads=8")
        assert main(["serve", "--set", "ssl.provider=SunJSSE", *others]) == 0
    finally:
        logs._OUTPUT.sink = before
    sentence = b"--set: ssl.provider has no effect in this version of pykafkad"
    assert b'WARNING config setting text="' + sentence + b'"' in lines[0]
    assert b'INFO config settings-without-effect count=2 names="num.io.threads num.network.threads"' in lines[1]
    assert len(lines) == 2


def test_memory_and_a_directory_exclude_each_other(started: list[dict], capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever names a directory believes that something is kept."""
    assert main(["serve", "--memory", "1GB", "--data", "d"]) == 2
    assert "--memory 1GB: nothing would be kept in --data d; give one of them" in capsys.readouterr().err
    assert started == []


def test_listen_leaves_out_the_advertised_listeners_of_the_file(
    tmp_path: Path, started: list[dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They lead to the file's listeners, which are not there. Those of `--set` are meant for this address."""
    properties = tmp_path / "server.properties"
    properties.write_text(
        "node.id=1\nlisteners=A://:7\nadvertised.listeners=A://far:7\nlistener.security.protocol.map=A:PLAINTEXT\n"
    )
    lines: list[bytes] = []
    monkeypatch.setattr(logs._OUTPUT, "sink", logs.Sink(lambda data: lines.append(data) or len(data), ManualClock()))
    assert main(["serve", str(properties), "--listen", ":1"]) == 0
    assert started[0]["settings"].advertised_listeners is None
    assert b"server.properties:3: advertised.listeners=A://far:7 is left out, since --listen says" in lines[0].replace(
        b"\\", b""
    )
    lines.clear()
    assert main(["serve", str(properties)]) == 0
    assert started[1]["settings"].advertised_listeners == ("A://far:7",)
    assert main(["serve", str(properties), "--listen", ":1", "--set", "advertised.listeners=PLAINTEXT://near:1"]) == 0
    assert started[2]["settings"].advertised_listeners == ("PLAINTEXT://near:1",)
    assert lines == []


def test_a_trace_goes_to_a_file_whose_name_tells_the_format(
    tmp_path: Path, started: list[dict], capsys: pytest.CaptureFixture[str]
) -> None:
    """What could not be written at the end is refused at the start."""
    for name in ("t.pcap", "t.jsonl", "t.txt"):
        assert main(["serve", "--trace", str(tmp_path / name)]) == 0
        assert started.pop()["trace_file"] == str(tmp_path / name)
    assert main(["serve", "--trace", str(tmp_path / "t.log")]) == 2
    assert "t.log: the name of a trace ends with one of .pcap, .jsonl, .txt" in capsys.readouterr().err
    assert main(["serve", "--trace", str(tmp_path / "no" / "t.txt")]) == 2
    assert f"there is no directory {tmp_path / 'no'}" in capsys.readouterr().err
    assert main(["serve"]) == 0
    assert started.pop()["trace_file"] is None and started == []


def test_an_audit_is_a_setting(tmp_path: Path, started: list[dict], capsys: pytest.CaptureFixture[str]) -> None:
    """The file's name is made absolute, and a lone dash is none. Without an authorizer there is nothing to tell."""
    path = tmp_path / "audit.jsonl"
    acl = ["--acl", "alice read topic orders"]
    for text, expected in ((str(path), str(path)), ("-", "-"), ("audit.txt", os.path.abspath("audit.txt"))):
        assert main(["serve", "--audit", text, *acl]) == 0
        assert started.pop()["settings"].pykafkad_audit_file == expected
    assert main(["serve", "--audit", str(tmp_path / "no" / "a.txt")]) == 2
    assert f"there is no directory {tmp_path / 'no'}" in capsys.readouterr().err
    assert main(["serve", "--audit", "-"]) == 0
    assert "command line: pykafkad.audit.file has no effect without authorizer.class.name" in (
        started.pop()["settings"].warnings
    )


def test_an_error_of_listeners_names_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error of listeners that are invalid only together names file, line and setting. No broker starts."""
    properties = tmp_path / "server.properties"
    properties.write_text("node.id=1\nlisteners=EXTRA://localhost:0\n")
    assert main(["serve", str(properties), "--data", str(tmp_path / "data")]) == 2
    assert (
        capsys.readouterr().err
        == f"pykafkad: {properties}:2: listeners: EXTRA has no security protocol; add EXTRA:PLAINTEXT to "
        "listener.security.protocol.map\n"
    )


def test_an_error_of_tls_names_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So does the error of a listener's settings, which are read when it is opened."""
    properties = tmp_path / "server.properties"
    properties.write_text(
        "node.id=1\nlisteners=SSL://localhost:0\nlistener.name.ssl.ssl.keystore.type=FLOPPY\n"
        "ssl.keystore.location=/nowhere\n"
    )
    assert main(["serve", str(properties), "--data", str(tmp_path / "data")]) == 2
    assert capsys.readouterr().err.endswith(
        f"pykafkad: {properties}:3: listener.name.ssl.ssl.keystore.type: FLOPPY is not one of PEM, JKS, PKCS12\n"
    )


def test_tls_is_served_where_the_options_say(started: list[dict], tmp_path: Path) -> None:
    """`--tls` gives the addresses of `--listen`, or the default one, the security protocol SSL."""
    assert main(["serve", "--tls", "--listen", "localhost:0", "--listen", ":0", "--data", str(tmp_path)]) == 0
    assert main(["serve", "--tls", "--memory", "1GB"]) == 0
    two, default = (call["settings"] for call in started)
    assert two.listeners == ("SSL://localhost:0", "SSL_2://:0")
    assert two.listener_security_protocol_map.endswith("SSL_2:SSL")
    assert started[0]["ca_file"] == str(tmp_path / "tls-ca.pem") and (tmp_path / "tls-ca.pem").exists()
    assert default.listeners == ("SSL://:9092",)
    assert default.static["ssl.keystore.type"] == "PEM"
    assert not Path(started[1]["ca_file"]).parent.exists(), "what is in memory only leaves nothing behind"


def test_tls_beside_listeners_of_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file says the protocol of its listeners itself."""
    properties = tmp_path / "server.properties"
    properties.write_text("listeners=PLAINTEXT://localhost:0\n")
    assert main(["serve", str(properties), "--tls"]) == 2
    assert f"--tls: {properties}:1 names listeners; say with --listen which get TLS" in capsys.readouterr().err


def test_all_directories_reach_the_broker(started: list[dict]) -> None:
    """Partitions are spread over log.dirs. `--data` replaces all of them."""
    assert main(["serve", "--set", "log.dirs=a,b,c"]) == 0
    assert main(["serve", "--set", "log.dirs=a,b,c", "--data", "d"]) == 0
    assert [tuple(call["data_directories"]) for call in started] == [("a", "b", "c"), ("d",)]


def test_help_and_reader_know_the_same_options() -> None:
    """Both read one table. Every option has an attribute."""
    options = serve.Options()
    assert list(vars(options)) == [
        "properties",
        "listen",
        "brokers",
        "processes",
        "controllers",
        "rack",
        "data",
        "memory",
        "tls",
        "topic",
        "set",
        "user",
        "oauth",
        "oauth_listen",
        "oauth_lifetime",
        "acl",
        "ready_file",
        "container",
        "trace",
        "control",
        "control_token",
        "registry",
        "audit",
        "tenant",
        "tenant_config",
        "act_as",
        "log_level",
        "log_format",
    ]


def test_the_collector_of_garbage_is_in_service_again(started: list[dict], monkeypatch: pytest.MonkeyPatch) -> None:
    """It rests while the modules of the broker are imported."""
    seen: list[str] = []
    monkeypatch.setattr(gc, "disable", lambda: seen.append("disable"))
    monkeypatch.setattr(gc, "enable", lambda: seen.append("enable"))
    assert main(["serve"]) == 0 and seen == ["disable", "enable"] and len(started) == 1
