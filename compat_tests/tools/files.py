"""The facts of a log's files from Kafka's DumpLogSegments and from `pykafkad dump-log --json`, in one form."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

from compat_tests.tools.runner import ToolRunner
from pykafkad.__main__ import main

# Internal topic: the option of DumpLogSegments that reads its records.
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}
# Kafka's name of a fact and ours, by the kind of line.
BATCH = {
    "baseOffset": "base_offset", "lastOffset": "last_offset", "count": "record_count", "baseSequence": "base_sequence",
    "producerId": "producer_id", "producerEpoch": "producer_epoch", "partitionLeaderEpoch": "leader_epoch",
    "isTransactional": "is_transactional", "isControl": "is_control", "position": "position", "size": "size_bytes",
    "magic": "magic",
    "compresscodec": "codec", "crc": "crc", "CreateTime": "max_timestamp_ms", "LogAppendTime": "max_timestamp_ms",
}  # fmt: skip
RECORD = {
    "offset": "offset", "CreateTime": "timestamp_ms", "LogAppendTime": "timestamp_ms", "sequence": "sequence",
    "endTxnMarker": "control", "coordinatorEpoch": "coordinator_epoch",
}  # fmt: skip
PRODUCER = {
    "producerId": "producer_id", "producerEpoch": "producer_epoch", "coordinatorEpoch": "coordinator_epoch",
    "currentTxnFirstOffset": "current_transaction_first_offset", "lastTimestamp": "last_timestamp_ms",
    "firstSequence": "first_sequence", "lastSequence": "last_sequence", "lastOffset": "last_offset",
    "offsetDelta": "offset_delta",
}  # fmt: skip
ABORTED = {
    "version": "version", "producerId": "producer_id", "firstOffset": "first_offset", "lastOffset": "last_offset",
    "lastStableOffset": "last_stable_offset",
}  # fmt: skip
TABLES = {
    ".index": {"offset": "offset", "position": "position"},
    ".timeindex": {"timestamp": "timestamp_ms", "offset": "offset"},
    ".txnindex": ABORTED,
    ".snapshot": PRODUCER,
}
FACT = re.compile(r"(\w+): (\S+)")


def kafka_facts(runner: ToolRunner, path: Path) -> list[dict[str, Any]]:
    """The facts that DumpLogSegments prints for a file, line by line, under our names."""
    topic = path.parent.name.rpartition("-")[0]
    decode = [DECODERS[topic]] if topic in DECODERS and path.suffix in (".log", ".checkpoint") else []
    outcome = runner.run("dump-log", ["--files", str(path), "--print-data-log", "--deep-iteration", *decode])
    assert outcome.code == 0 and not outcome.errors, outcome
    return [fact for line in outcome.output.splitlines() if (fact := _kafka_fact(line, path.suffix))]


def _kafka_fact(line: str, suffix: str) -> dict[str, Any] | None:
    names = TABLES.get(suffix)
    if names is None:
        names = BATCH if line.startswith("baseOffset: ") else RECORD if line.startswith("| offset: ") else None
    if names is None or not FACT.match(line.removeprefix("| ")):
        return None
    head, _, payload = line.removeprefix("| ").partition(" payload: ")
    head, _, key = head.partition(" key: ")
    facts = {names[name]: _word(word) for name, word in FACT.findall(head) if name in names and _word(word) is not None}
    if facts.get("sequence") == -1:
        del facts["sequence"]
    for name, text in (("key", key), ("value", payload)):
        if text:
            facts[name] = _kafka_value(text)
    return facts


def _word(word: str) -> Any:
    if found := re.fullmatch(r"OptionalLong\[(\d+)\]", word):
        word = found.group(1)
    words = {"true": True, "false": False, "OptionalLong.empty": None}
    return words[word] if word in words else int(word) if re.fullmatch(r"-?\d+", word) else word.lower()


def _kafka_value(text: str) -> Any:
    """A key or payload: its text, or the decoded record of an internal log; None for a tombstone."""
    if text == "<DELETE>":
        return None
    if not text.startswith("{"):
        return text
    stored = json.loads(text)
    return _snake(stored.get("data", stored)) if isinstance(stored, dict) else text


def _snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower(): _snake(inner) for name, inner in value.items()}
    return [_snake(item) for item in value] if isinstance(value, list) else value


def our_rows(path: Path) -> list[dict[str, Any]]:
    """The output of `pykafkad dump-log --json` for a file, in which it must find no error."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["dump-log", "--json", str(path)]) == 0, printed.getvalue()[-2000:]
    _, *rows = (json.loads(line) for line in printed.getvalue().splitlines())
    return rows


def our_facts(path: Path) -> list[dict[str, Any]]:
    """The facts that `pykafkad dump-log` prints for a file, line by line, in the same form."""
    facts = []
    for row in our_rows(path):
        names = TABLES.get(path.suffix) or {"batch": BATCH, "record": RECORD}[row["kind"]]
        facts.append({name: row[name] for name in names.values() if row.get(name) is not None})
        for name in ("key", "value"):
            if isinstance(row.get(name), dict) and "data" in row[name]:
                facts[-1][name] = row[name]["data"]
            elif isinstance(row.get(name), str):
                facts[-1][name] = row[name]
    return facts


def agrees(expected: Any, answered: Any) -> bool:
    """Whether ours has everything that Kafka's has.

    Ours may have more fields, because Kafka leaves out some defaults. Kafka prints bytes as base64.
    """
    if isinstance(expected, dict) and isinstance(answered, dict):
        answered = answered.get("data", answered)
        return all(agrees(value, answered.get(name)) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(answered, list):
        return len(expected) == len(answered) and all(map(agrees, expected, answered))
    if isinstance(expected, str) and expected != answered:
        content = bytes.fromhex(answered["hex"]) if isinstance(answered, dict) else str(answered).encode()
        return base64.b64encode(content).decode() == expected
    return expected == answered
