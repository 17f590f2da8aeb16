"""`pykafkad dump-log` prints files that the wire and log packages wrote, intact and damaged."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from struct import pack

import pytest

from pykafkad.__main__ import main
from pykafkad.cli import dump_log
from pykafkad.coordinator import record_codec as group_records
from pykafkad.log.producers import ProducerStates
from pykafkad.metadata import record_codec as metadata_records
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch, parse_header
from pykafkad.wire.records import Record


def _batch(base_offset: int = 0, **named: object) -> bytes:
    records = [
        Record(base_offset, 1000, b"k", b"v", [("h", b"1")]),
        Record(base_offset + 1, 1001, None, b"\xff", []),
    ]
    return bytes(
        build_batch(
            [(record.key, record.value, record.headers) for record in records],
            base_offset=base_offset,
            timestamp_ms=1000,
            **named,
        )
    )


def _log(tmp_path: Path, data: bytes, directory: str = "t-0") -> Path:
    path = tmp_path / directory / "00000000000000000000.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def _dumped(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    """The printed lines without those that name files."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line["kind"] != "file"]


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_batches_and_records_of_every_codec(codec: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every batch is printed with its header, and every record in it, for every compression codec."""
    path = _log(tmp_path, _batch(codec=codec) + _batch(2, codec=codec))
    assert main(["dump-log", str(path), "--json"]) == 0
    batch, first, second, *rest = _dumped(capsys)
    assert (batch["kind"], batch["base_offset"], batch["last_offset"], batch["record_count"]) == ("batch", 0, 1, 2)
    assert batch["codec"] == ("none", "gzip", "snappy", "lz4", "zstd")[codec]
    assert (first["offset"], first["key"], first["value"], first["headers"]) == (0, "k", "v", [["h", "1"]])
    assert (second["offset"], second["key"], second["value"]) == (1, None, {"hex": "ff"})
    assert [line["kind"] for line in rest] == ["batch", "record", "record"]


def test_the_text_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output has the file's name, a line per batch and an indented line per record.

    `--batches` hides the records.
    """
    path = _log(tmp_path, _batch())
    assert main(["dump-log", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"# {path}"
    assert lines[1].startswith("batch base_offset=0 last_offset=1 record_count=2 ")
    assert lines[2] == "  record offset=0 timestamp_ms=1000 key=k value=v headers=h=1"
    assert main(["dump-log", "--batches", str(path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_nulls_and_bytes_in_the_text_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A null is printed as null, bytes that are not text as hex."""
    assert main(["dump-log", str(_log(tmp_path, _batch()))]) == 0
    assert capsys.readouterr().out.endswith("record offset=1 timestamp_ms=1000 key=null value=0xff\n")


def test_json_names_each_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lines of each file begin with an object of kind `file`."""
    paths = [_log(tmp_path, _batch(), directory) for directory in ("t-0", "t-1")]
    assert main(["dump-log", "--json", "--batches", *map(str, paths)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("path", line["kind"]) for line in lines] == [str(paths[0]), "batch", str(paths[1]), "batch"]


def test_a_closed_pipe_is_not_reported_as_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exception of a closed pipe reaches the command line, which ends quietly."""

    def leave(*words: object, **named: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(dump_log, "print", leave, raising=False)
    parser = argparse.ArgumentParser()
    dump_log.add_arguments(parser)
    with pytest.raises(BrokenPipeError):
        dump_log.run(parser.parse_args([str(_log(tmp_path, _batch()))]))


def test_the_bootstrap_checkpoint_is_decoded_as_metadata(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`kafka-storage format` writes this file as batches of metadata records, unlike other checkpoints."""
    feature = messages.FeatureLevelRecord(name="metadata.version", feature_level=29)
    key, value = metadata_records.encode(metadata_records.record(feature))
    path = tmp_path / "bootstrap.checkpoint"
    path.write_bytes(bytes(build_batch([(key, value, [])], base_offset=0, timestamp_ms=1)))
    assert main(["dump-log", "--json", str(path)]) == 0
    data = {"name": "metadata.version", "feature_level": 29}
    assert _dumped(capsys)[1]["value"] == {"type": "FeatureLevelRecord", "version": 0, "data": data}
    assert main(["dump-log", str(path)]) == 0
    assert capsys.readouterr().out.endswith(
        'value=FeatureLevelRecord/0{"name":"metadata.version","feature_level":29}\n'
    )


def test_a_file_that_is_not_of_a_log_is_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1 for bytes that are neither text nor named like one of Kafka's files."""
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\xff")
    assert main(["dump-log", "--json", str(path)]) == 1
    assert "neither text nor named like a file of a log" in _dumped(capsys)[0]["reason"]


def _damages() -> list[tuple[str, bytes]]:
    whole = _batch()
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    old = bytearray(whole)
    old[16] = 1
    return [
        ("too few for a batch", whole[:5]),
        ("bytes are too few", whole + b"\0\0\0\1"),
        ("the batch should have", whole[:-3]),
        ("the checksum does not match", bytes(flipped)),
        ("record format 1", bytes(old)),
        ("is impossible", pack(">qi", 0, 5) + whole[12:]),
        ("is impossible", pack(">qi", 0, -1) + whole[12:]),
    ]


@pytest.mark.parametrize(("words", "data"), _damages())
def test_damage_is_reported_with_its_position(
    words: str, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1. Batches before the damage are printed."""
    assert main(["dump-log", str(_log(tmp_path, data)), "--json"]) == 1
    last = _dumped(capsys)[-1]
    assert last["kind"] == "damaged" and words in last["reason"]


def test_zeros_after_the_last_batch_are_not_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kafka preallocates files with zeros when log.preallocate is set."""
    assert main(["dump-log", "--batches", str(_log(tmp_path, _batch() + bytes(100))), "--json"]) == 0
    assert len(_dumped(capsys)) == 1


def test_records_of_consumer_offsets_are_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys and values of __consumer_offsets are decoded, unless `--decoder none` is given."""
    key, value = group_records.encode(group_records.group_tombstone("my-group"))
    data = bytes(build_batch([(key, value, [])], base_offset=0, timestamp_ms=1))
    path = _log(tmp_path, data, "__consumer_offsets-3")
    assert main(["dump-log", str(path), "--json"]) == 0
    record = _dumped(capsys)[1]
    assert record["key"] == {"type": "GroupMetadataKey", "version": 0, "data": {"group": "my-group"}}
    assert record["value"] is None
    assert main(["dump-log", "--decoder", "none", str(path), "--json"]) == 0
    assert _dumped(capsys)[1]["key"] == key.decode()


def test_a_record_that_cannot_be_decoded_is_shown_as_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The dump continues after such a record."""
    assert main(["dump-log", "--decoder", "offsets", str(_log(tmp_path, _batch())), "--json"]) == 0
    assert [line["kind"] for line in _dumped(capsys)] == ["batch", "record", "record"]


def test_indexes_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file's name turns relative offsets into absolute ones. The zeros of a preallocated index end it."""
    index = tmp_path / "00000000000000000100.index"
    index.write_bytes(pack(">iiii", 5, 4096, 9, 8200) + bytes(80))
    times = tmp_path / "00000000000000000100.timeindex"
    times.write_bytes(pack(">qi", 1234, 7))
    assert main(["dump-log", "--json", str(index), str(times)]) == 0
    assert _dumped(capsys) == [
        {"kind": "entry", "offset": 105, "position": 4096},
        {"kind": "entry", "offset": 109, "position": 8200},
        {"kind": "entry", "timestamp_ms": 1234, "offset": 107},
    ]


def test_producer_snapshots_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each producer has a line. A wrong checksum is damage."""
    states = ProducerStates()
    states.track(parse_header(_batch(producer_id=7, producer_epoch=2, base_sequence=0)), bytes)
    path = tmp_path / "00000000000000000002.snapshot"
    path.write_bytes(states.to_snapshot())
    assert main(["dump-log", str(path), "--json"]) == 0
    (producer,) = _dumped(capsys)
    assert (
        producer["producer_id"],
        producer["producer_epoch"],
        producer["last_sequence"],
        producer["last_offset"],
    ) == (7, 2, 1, 1)
    assert (producer["first_sequence"], producer["offset_delta"], producer["current_transaction_first_offset"]) == (
        0,
        1,
        None,
    )
    path.write_bytes(states.to_snapshot()[:-1] + b"\1")
    assert main(["dump-log", str(path), "--json"]) == 1


def test_checkpoints_are_printed_unchanged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory stands for all files in it."""
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert main(["dump-log", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"# {tmp_path}/leader-epoch-checkpoint\n0\n1\n0 0\n"


TEXTS = [
    ("leader-epoch-checkpoint", "0\n1\n3 40\n", [{"kind": "entry", "leader_epoch": 3, "start_offset": 40}]),
    (
        "cleaner-offset-checkpoint",
        "0\n1\nt 2 7\n",
        [{"kind": "entry", "topic": "t", "partition": 2, "first_dirty_offset": 7}],
    ),
    ("recovery-point-offset-checkpoint", "0\n0\n", []),
    ("log-start-offset-checkpoint", "", []),
    (
        "partition.metadata",
        "version: 0\ntopic_id: x",
        [{"kind": "property", "name": "version", "value": "0"}, {"kind": "property", "name": "topic_id", "value": "x"}],
    ),
    ("meta.properties", "#\nnode.id=1\n", [{"kind": "property", "name": "node.id", "value": "1"}]),
    ("quorum-state", '{"leaderId":1}', [{"kind": "content", "content": {"leaderId": 1}}]),
    (".kafka_cleanshutdown", "", []),
    ("notes", "hello\n", [{"kind": "text", "text": "hello\n"}]),
]


@pytest.mark.parametrize(("name", "text", "expected"), TEXTS)
def test_json_of_text_files(
    name: str, text: str, expected: list, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka's text files are parsed. Any other file is printed as its text."""
    (tmp_path / name).write_text(text)
    assert main(["dump-log", "--json", str(tmp_path / name)]) == 0
    assert _dumped(capsys) == expected


DAMAGED_TEXTS = [
    ("leader-epoch-checkpoint", "1\n0\n", "begins with version"),
    ("leader-epoch-checkpoint", "0\n", "begins with version"),
    ("leader-epoch-checkpoint", "0\n2\n0 0\n", "the file says 2 rows but has 1"),
    ("leader-epoch-checkpoint", "0\n1\n0 0 0\n", "a row has 3 columns instead of 2"),
    ("cleaner-offset-checkpoint", "0\n1\nt 0 x\n", "invalid literal"),
    ("meta.properties", "node.id\n", "no '='"),
    ("quorum-state", "{", "Expecting"),
]


@pytest.mark.parametrize(("name", "text", "words"), DAMAGED_TEXTS)
def test_damaged_text_files(
    name: str, text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1. The text is printed, and the reason after it."""
    (tmp_path / name).write_text(text)
    assert main(["dump-log", str(tmp_path / name)]) == 1
    printed = capsys.readouterr().out
    assert text in printed and printed.splitlines()[-1].startswith("damaged ") and words in printed


def test_subscriptions_and_assignments_are_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are decoded for classic consumer groups. Bytes that do not decode stay bytes."""
    subscription = b"\0\1" + messages.encode(messages.ConsumerProtocolSubscription(topics=["t"]), 1)
    member = messages.GroupMetadataValue.MemberMetadata(member_id="m", subscription=subscription, assignment=b"\xff")
    value = messages.GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m", members=[member]
    )
    key = b"\0\2" + messages.encode(messages.GroupMetadataKey(group="g"), 0)
    batch = bytes(build_batch([(key, b"\0\3" + messages.encode(value, 3), [])], base_offset=0, timestamp_ms=1))
    assert main(["dump-log", "--json", str(_log(tmp_path, batch, "__consumer_offsets-7"))]) == 0
    (shown,) = _dumped(capsys)[1]["value"]["data"]["members"]
    assert shown["subscription"]["data"] == {"topics": ["t"], "user_data": None, "owned_partitions": []}
    assert shown["assignment"] == {"hex": "ff"}


def test_records_of_transaction_state_are_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys and values of __transaction_state are decoded in the versions that they name."""
    key = b"\0\0" + messages.encode(messages.TransactionLogKey(transactional_id="pay"), 0)
    value = messages.TransactionLogValue(
        producer_id=5, producer_epoch=1, transaction_timeout_ms=60_000, transaction_status=4
    )
    batch = bytes(build_batch([(key, b"\0\1" + messages.encode(value, 1), [])], base_offset=0, timestamp_ms=1))
    assert main(["dump-log", "--json", str(_log(tmp_path, batch, "__transaction_state-7"))]) == 0
    record = _dumped(capsys)[1]
    assert record["key"]["data"] == {"transactional_id": "pay"}
    assert (record["value"]["version"], record["value"]["data"]["transaction_status"]) == (1, 4)


def test_control_records_are_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A control record shows the transaction's outcome and the coordinator's epoch."""
    marker = (b"\0\0\0\1", b"\0\0" + pack(">i", 9), [])
    batch = bytes(
        build_batch(
            [marker],
            base_offset=0,
            timestamp_ms=1,
            producer_id=7,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
    )
    assert main(["dump-log", "--json", str(_log(tmp_path, batch))]) == 0
    assert {"control": "commit", "coordinator_epoch": 9}.items() <= _dumped(capsys)[1].items()


@pytest.mark.parametrize("ending", ["log.deleted", "log.cleaned", "log.swap"])
def test_temporary_endings_of_a_name_are_ignored(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cleaner and deletions append an ending to a file's name. The file is read as without it."""
    path = tmp_path / f"00000000000000000000.{ending}"
    path.write_bytes(_batch())
    assert main(["dump-log", "--json", "--batches", str(path)]) == 0
    assert [line["kind"] for line in _dumped(capsys)] == ["batch"]


def test_a_missing_file_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1, and the message has the path and the system's reason."""
    assert main(["dump-log", str(tmp_path / "x.log")]) == 1
    assert "x.log: No such file" in capsys.readouterr().err
