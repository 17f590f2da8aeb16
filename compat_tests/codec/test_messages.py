"""Passes every request, response, header and stored record in every version between Kafka's own classes and ours, both
ways.

Values are random, with edge values likely. The seed is printed. A failure names the message and the command that
repeats it: `python -m pytest compat_tests/codec --codec-seed SEED --codec-messages NAME`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.codec.java_json import difference
from compat_tests.codec.oracle import MessageOracle
from pykafkad.errors import ProtocolError
from pykafkad.handlers import table
from pykafkad.wire import messages
from tests.seeds import seed_of_the_code
from tests.wire.values import EdgeValues, every_version

# Message classes in the jars that are no message of the protocol or an internal log: other files have their own
# readers.
OTHER_FORMATS = {
    "ProducerSnapshot": "the .snapshot file, which Kafka writes with the schema of this class, and "
    "`pykafkad.log.producers` reads",
    "QuorumStateData": "the quorum-state file, which is JSON",
}
EXAMPLES = 50


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> str:
    """The seed of this run: the one given by the option, or one derived from the code."""
    return pytestconfig.getoption("--codec-seed") or f"{seed_of_the_code():x}"


@pytest.fixture
def versions(pytestconfig: pytest.Config) -> list[tuple[str, int]]:
    """The messages and versions that the option asks for; without the option all of them."""
    names = pytestconfig.getoption("--codec-messages")
    return [(name, version) for name, version in every_version() if not names or name in names.split(",")]


@pytest.fixture
def oracle(kafka_jars: Path, tmp_path: Path) -> MessageOracle:
    """Kafka's message classes."""
    return MessageOracle(kafka_jars, tmp_path)


def _repeat(seed: str, name: str, version: int) -> str:
    return (
        f"{name} v{version}; repeat with: python -m pytest compat_tests/codec --codec-seed {seed} --codec-messages "
        f"{name}"
    )


def test_every_message_class_of_kafka_has_a_schema(oracle: MessageOracle) -> None:
    """The jars have no message that we lack; versions and numbers are the same."""
    theirs = {}
    for line in oracle.ask(["list"]):
        if line != ".":
            name, key, first, last = line.split()
            theirs[name] = int(key), range(int(first), int(last) + 1)
    assert set(theirs) - set(OTHER_FORMATS) == set(messages.all_names())
    for name, (key, versions) in theirs.items():
        if name not in OTHER_FORMATS:
            cls = messages.stored_class(name)
            assert messages.valid_versions(cls) == versions, name
            assert (messages.schema(cls).key if messages.schema(cls).key is not None else -1) == key, name


def test_the_table_has_every_api_key_of_kafka(oracle: MessageOracle) -> None:
    """Numbers, names and versions of all API keys agree; a row serves clients only if Kafka's broker listener does."""
    theirs = {}
    for line in oracle.ask(["apis"]):
        if line != ".":
            key, name, versions, listeners = line.split()
            first, _, last = versions.partition("-")
            kept = set(listeners.split(","))
            answered = kept & {"broker"} or kept & {"controller"} or {table.REMOVED}
            theirs[int(key)] = name, first if first == last else versions, *answered
    assert len(theirs) == 93
    served = {table.OFFERED: "broker"}
    assert {
        row.key: (row.name, row.kafka_versions, served.get(row.state, row.state)) for row in table.every_row()
    } == theirs


def _answers(oracle: MessageOracle, questions: list[str]) -> Iterator[list[str]]:
    for line in oracle.ask(questions):
        if line != ".":
            yield line.split(" ", 2)


def _bytes(text: str) -> bytes:
    return b"" if text == "-" else bytes.fromhex(text)


@pytest.mark.timeout(600)
def test_bytes_of_kafkas_classes_are_read_and_written_again(
    oracle: MessageOracle, versions: list[tuple[str, int]], seed: str
) -> None:
    """We read what Java writes as the values that Java prints, and write the same bytes again. We skip unknown tagged
    fields.
    """
    print(f"codec seed {seed}")
    answers = _answers(oracle, [f"random {name} {version} {seed} {EXAMPLES}" for name, version in versions])
    for name, version in versions:
        cls = messages.stored_class(name)
        for _ in range(EXAMPLES):
            whole, clean, printed = next(answers)
            try:
                message = messages.decode(cls, version, _bytes(whole))
                again = messages.encode(message, version)
            except ProtocolError as error:
                raise AssertionError(f"{error}: {_repeat(seed, name, version)}") from error
            found = difference(message, json.loads(printed), version)
            assert found is None, f"{found} in {_repeat(seed, name, version)}"
            assert again == _bytes(clean), f"written differently: {_repeat(seed, name, version)}"
    assert next(answers, None) is None


@pytest.mark.timeout(600)
def test_our_bytes_are_read_and_written_again_by_kafkas_classes(
    oracle: MessageOracle, versions: list[tuple[str, int]], seed: str
) -> None:
    """Java reads what we write as our values, and writes the same bytes again."""
    print(f"codec seed {seed}")
    sent: list[tuple[str, int, int, bytes]] = []
    for name, version in versions:
        cls = messages.stored_class(name)
        for index in range(EXAMPLES):
            message = EdgeValues((seed, name, version, index)).message(cls, version)
            sent.append((name, version, index, bytes(messages.encode(message, version))))
    answers = _answers(oracle, [f"echo {name} {version} {data.hex() or '-'}" for name, version, _, data in sent])
    for name, version, index, data in sent:
        answer = next(answers)
        assert answer[0] != "error", f"{' '.join(answer)}: {_repeat(seed, name, version)}"
        message = EdgeValues((seed, name, version, index)).message(messages.stored_class(name), version)
        found = difference(message, json.loads(" ".join(answer[1:])), version)
        assert found is None, f"{found} in {_repeat(seed, name, version)}"
        assert _bytes(answer[0]) == data, f"written differently: {_repeat(seed, name, version)}"
    assert next(answers, None) is None


def test_the_comparison_sees_every_difference(oracle: MessageOracle) -> None:
    """The comparison itself is tested: it reports a field that is missing, changed or too many."""
    message = messages.OffsetCommitValue(
        offset=5, leader_epoch=2, metadata="m", commit_timestamp=7, topic_id=bytes(range(16))
    )
    (answer,) = _answers(oracle, [f"echo OffsetCommitValue 4 {messages.encode(message, 4).hex()}"])
    printed = json.loads(answer[1])
    assert len(printed) == 5 and difference(message, printed, 4) is None
    for name in printed:
        assert difference(message, {key: value for key, value in printed.items() if key != name}, 4) is not None
        assert difference(message, {**printed, name: None}, 4) is not None
        assert difference(message, {**printed, name: "other"}, 4) is not None
    assert difference(message, {**printed, "more": 1}, 4) is not None
