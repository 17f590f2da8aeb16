"""`pykafkad dump-log` over files written with our own wire and log libraries, whole and damaged."""

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
    """Every line but those that name the files."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line["kind"] != "file"]


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_batches_and_records(codec: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every batch with its header, every record in it, whatever the compression."""
    path = _log(tmp_path, _batch(codec=codec) + _batch(2, codec=codec))
    assert main(["dump-log", str(path), "--json"]) == 0
    batch, first, second, *rest = _dumped(capsys)
    assert (batch["kind"], batch["base_offset"], batch["last_offset"], batch["record_count"]) == ("batch", 0, 1, 2)
    assert batch["codec"] == ("none", "gzip", "snappy", "lz4", "zstd")[codec]
    assert (first["offset"], first["key"], first["value"], first["headers"]) == (0, "k", "v", [["h", "1"]])
    assert (second["offset"], second["key"], second["value"]) == (1, None, {"hex": "ff"})
    assert [line["kind"] for line in rest] == ["batch", "record", "record"]


def test_text_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file's name, a line per batch, indented lines for the records; --batches leaves them out."""
    path = _log(tmp_path, _batch())
    assert main(["dump-log", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"# {path}"
    assert lines[1].startswith("batch base_offset=0 last_offset=1 record_count=2 ")
    assert lines[2] == "  record offset=0 timestamp_ms=1000 key=k value=v headers=h=1"
    assert main(["dump-log", "--batches", str(path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_nulls_and_bytes_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A null is the word, bytes that are no text are hex."""
    assert main(["dump-log", str(_log(tmp_path, _batch()))]) == 0
    assert capsys.readouterr().out.endswith("record offset=1 timestamp_ms=1000 key=null value=0xff\n")


def test_json_names_the_file_of_what_follows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file begins with an object of kind `file`."""
    paths = [_log(tmp_path, _batch(), directory) for directory in ("t-0", "t-1")]
    assert main(["dump-log", "--json", "--batches", *map(str, paths)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("path", line["kind"]) for line in lines] == [str(paths[0]), "batch", str(paths[1]), "batch"]


def test_a_reader_that_leaves_is_no_error_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed pipe reaches the command line, which ends quietly."""

    def leave(*words: object, **named: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(dump_log, "print", leave, raising=False)
    parser = argparse.ArgumentParser()
    dump_log.add_arguments(parser)
    with pytest.raises(BrokenPipeError):
        dump_log.run(parser.parse_args([str(_log(tmp_path, _batch()))]))


def test_the_bootstrap_checkpoint_is_metadata(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `kafka-storage format` leaves beside the logs is batches of metadata records, not text."""
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


def test_what_is_no_file_of_a_log_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1 for bytes that are neither text nor named as one of Kafka's files."""
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\xff")
    assert main(["dump-log", "--json", str(path)]) == 1
    assert "no text, and not named as a file of a log" in _dumped(capsys)[0]["reason"]


def _damages() -> list[tuple[str, bytes]]:
    whole = _batch()
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    old = bytearray(whole)
    old[16] = 1
    return [
        ("too few for a batch", whole[:5]),
        ("bytes are left, too few", whole + b"\0\0\0\1"),
        ("the batch should have", whole[:-3]),
        ("the checksum does not match", bytes(flipped)),
        ("record format 1", bytes(old)),
        ("cannot be", pack(">qi", 0, 5) + whole[12:]),
        ("cannot be", pack(">qi", 0, -1) + whole[12:]),
    ]


@pytest.mark.parametrize(("words", "data"), _damages())
def test_damage_is_said(words: str, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, what is wrong and where; what comes before it is printed."""
    assert main(["dump-log", str(_log(tmp_path, data)), "--json"]) == 1
    last = _dumped(capsys)[-1]
    assert last["kind"] == "damaged" and words in last["reason"]


def test_a_preallocated_end_is_no_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kafka fills files with zeros when it is told to preallocate."""
    assert main(["dump-log", "--batches", str(_log(tmp_path, _batch() + bytes(100))), "--json"]) == 0
    assert len(_dumped(capsys)) == 1


def test_group_offsets_are_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In __consumer_offsets keys and values are shown as what they are, unless --decoder none is asked."""
    key, value = group_records.encode(group_records.group_tombstone("my-group"))
    data = bytes(build_batch([(key, value, [])], base_offset=0, timestamp_ms=1))
    path = _log(tmp_path, data, "__consumer_offsets-3")
    assert main(["dump-log", str(path), "--json"]) == 0
    record = _dumped(capsys)[1]
    assert record["key"] == {"type": "GroupMetadataKey", "version": 0, "data": {"group": "my-group"}}
    assert record["value"] is None
    assert main(["dump-log", "--decoder", "none", str(path), "--json"]) == 0
    assert _dumped(capsys)[1]["key"] == key.decode()


def test_what_cannot_be_decoded_is_shown_as_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A record that is no group record does not end the dump."""
    assert main(["dump-log", "--decoder", "offsets", str(_log(tmp_path, _batch())), "--json"]) == 0
    assert [line["kind"] for line in _dumped(capsys)] == ["batch", "record", "record"]


def test_indexes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Relative offsets become absolute by the file's name; the zeros of a preallocated index end it."""
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


def test_producer_snapshots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a producer; a snapshot whose checksum is wrong is damage."""
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


def test_checkpoints_are_text_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Printed as they are; a directory is all files in it."""
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert main(["dump-log", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"# {tmp_path}/leader-epoch-checkpoint\n0\n1\n0 0\n"


TEXTS = [
    ("leader-epoch-checkpoint", "0\n1\n3 40\n", [{"kind": "entry", "leader_epoch": 3, "start_offset": 40}]),
    ("cleaner-offset-checkpoint", "0\n1\nt 2 7\n", [{"kind": "entry", "topic": "t", "partition": 2, "first_dirty_offset": 7}]),
    ("recovery-point-offset-checkpoint", "0\n0\n", []),
    ("log-start-offset-checkpoint", "", []),
    ("partition.metadata", "version: 0\ntopic_id: x", [{"kind": "property", "name": "version", "value": "0"}, {"kind": "property", "name": "topic_id", "value": "x"}]),
    ("meta.properties", "#\nnode.id=1\n", [{"kind": "property", "name": "node.id", "value": "1"}]),
    ("quorum-state", '{"leaderId":1}', [{"kind": "content", "content": {"leaderId": 1}}]),
    (".kafka_cleanshutdown", "", []),
    ("notes", "hello\n", [{"kind": "text", "text": "hello\n"}]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "expected"), TEXTS)
def test_texts_as_json(
    name: str, text: str, expected: list, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every text file of Kafka's is read to what it says; any other is its text."""
    (tmp_path / name).write_text(text)
    assert main(["dump-log", "--json", str(tmp_path / name)]) == 0
    assert _dumped(capsys) == expected


DAMAGED_TEXTS = [
    ("leader-epoch-checkpoint", "1\n0\n", "begins with its version"),
    ("leader-epoch-checkpoint", "0\n", "begins with its version"),
    ("leader-epoch-checkpoint", "0\n2\n0 0\n", "2 rows are promised, 1 are there"),
    ("leader-epoch-checkpoint", "0\n1\n0 0 0\n", "a row of 3 words"),
    ("cleaner-offset-checkpoint", "0\n1\nt 0 x\n", "invalid literal"),
    ("meta.properties", "node.id\n", "no '='"),
    ("quorum-state", "{", "Expecting"),
]


@pytest.mark.parametrize(("name", "text", "words"), DAMAGED_TEXTS)
def test_damaged_texts(name: str, text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1, the text as it is, and what is wrong with it."""
    (tmp_path / name).write_text(text)
    assert main(["dump-log", str(tmp_path / name)]) == 1
    printed = capsys.readouterr().out
    assert text in printed and printed.splitlines()[-1].startswith("damaged ") and words in printed


def test_consumers_are_shown_by_what_they_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a classic group of consumers, subscriptions and assignments are opened; bytes that are none stay bytes."""
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


def test_transactions_are_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In __transaction_state keys and values are the coordinator's records, in the version that they say."""
    key = b"\0\0" + messages.encode(messages.TransactionLogKey(transactional_id="pay"), 0)
    value = messages.TransactionLogValue(
        producer_id=5, producer_epoch=1, transaction_timeout_ms=60_000, transaction_status=4
    )
    batch = bytes(build_batch([(key, b"\0\1" + messages.encode(value, 1), [])], base_offset=0, timestamp_ms=1))
    assert main(["dump-log", "--json", str(_log(tmp_path, batch, "__transaction_state-7"))]) == 0
    record = _dumped(capsys)[1]
    assert record["key"]["data"] == {"transactional_id": "pay"}
    assert (record["value"]["version"], record["value"]["data"]["transaction_status"]) == (1, 4)


def test_markers_tell_their_coordinator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A control record of a transaction is its outcome and the epoch of who decided it."""
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
def test_a_file_on_its_way_is_read_like_itself(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the cleaner and deletions hang onto a name does not hide what it is."""
    path = tmp_path / f"00000000000000000000.{ending}"
    path.write_bytes(_batch())
    assert main(["dump-log", "--json", "--batches", str(path)]) == 0
    assert [line["kind"] for line in _dumped(capsys)] == ["batch"]


def test_an_absent_file_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1, the path and the system's reason."""
    assert main(["dump-log", str(tmp_path / "x.log")]) == 1
    assert "x.log: No such file" in capsys.readouterr().err
