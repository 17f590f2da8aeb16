"""Every field of every request at its extreme values, sent to a real Kafka and to pykafkad: see
`compat_tests/bad_fields/`.

Both brokers are new, so that they have the same content. Share groups and streams groups are off. A sample of the
versions is asked; `--every-version` asks all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from compat_tests.bad_fields.compare import not_allowed
from compat_tests.bad_fields.differences import ALLOWED, Difference, allowing
from compat_tests.bad_fields.encoding import body
from compat_tests.bad_fields.run import Answer, Run, bases_missing
from compat_tests.bad_fields.switched_on import (
    ALLOWED_SWITCHED_ON,
    BASES_SWITCHED_ON,
    SETTINGS as SETTINGS_SWITCHED_ON,
    UNANSWERED_SWITCHED_ON,
    SwitchedOnCluster,
)
from compat_tests.bad_fields.variants import variants
from compat_tests.brokers.broker import Broker
from compat_tests.brokers.choose import KafkaSource
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged
from compat_tests.scenarios.exchange import Exchange, part
from pykafkad.handlers import table
from pykafkad.wire import messages, notation
from tests.wire.values import Values

# Otherwise the answer says how much time has passed since the group's last assignment.
SETTINGS = {
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}
# Kafka's share groups leave many requests with extreme values unanswered. Raw scenarios compare their bad input,
# and that of streams groups.
SWITCHED_OFF = ("streams.version", "share.version")
SAFE_DOWNGRADE = 2
SHOWN_DIFFERENCES = 40
UNANSWERED_SECONDS = 3.0


def switch_off(broker: Broker) -> None:
    """Set the features to level 0 whose APIs are to be refused."""
    exchange = Exchange(broker.bootstrap, "features")
    try:
        updates = [
            part("UpdateFeatures", "FeatureUpdateKey", feature=name, max_version_level=0, upgrade_type=SAFE_DOWNGRADE)
            for name in SWITCHED_OFF
        ]
        answer = exchange.quietly("UpdateFeatures", 2, timeout_ms=10_000, feature_updates=updates)
        assert answer.error_code == 0, answer
    finally:
        exchange.close()


def answers_of(
    name: str, source: KafkaSource, directory: Path, settings: dict[str, str], ask: Callable[[Broker], list[Answer]]
) -> list[Answer]:
    """All requests to a new broker, with their answers."""
    directory.mkdir()
    broker = source.broker(directory, settings) if name == "kafka" else PykafkadProcess(directory, settings)
    try:
        broker.start()
        answers = ask(broker)
        if name == "pykafkad":
            assert_no_bug_logged(broker)
        return answers
    finally:
        if name == "kafka":
            broker.kill()  # A Kafka whose registration was removed takes long to stop.
        broker.close()


def answers_of_both(
    pytestconfig: pytest.Config,
    source: KafkaSource,
    directory: Path,
    settings: dict[str, str],
    ask: Callable[[Broker], list[Answer]],
) -> list[list[Answer]]:
    """The answers of a real Kafka and of a pykafkad, or with `--against` of two of one kind."""
    brokers = AGAINST[pytestconfig.getoption("--against")]
    brokers = brokers if len(brokers) == 2 else brokers * 2
    with ThreadPoolExecutor() as threads:
        return list(
            threads.map(
                lambda number: answers_of(brokers[number], source, directory / f"{number}", settings, ask),
                range(len(brokers)),
            )
        )


def asked_of(run: Run) -> list[Answer]:
    """All answers of a run."""
    try:
        return list(run.answers())
    finally:
        run.close()


def compare(runs: list[list[Answer]], rows: tuple[Difference, ...]) -> None:
    """Fail if the answers differ in something else than the table of differences says."""
    asked = Counter(answer.api for answer in runs[0])
    print(f"\n{sum(asked.values())} requests with a field changed, of {len(asked)} APIs")
    lines = not_allowed(*runs, rows)
    if lines:
        kinds = Counter(line.split()[0] for line in lines)
        counts = "\n".join(f"{api}: {asked[api]} requests, {count} kinds of difference" for api, count in kinds.items())
        more = f"\n… and {len(lines) - SHOWN_DIFFERENCES} more" if len(lines) > SHOWN_DIFFERENCES else ""
        pytest.fail(f"{counts}\n" + "\n".join(lines[:SHOWN_DIFFERENCES]) + more, pytrace=False)


def test_every_answered_api_has_a_base() -> None:
    """Every API that the table answers has a base request."""
    assert bases_missing() == []


@pytest.mark.timeout(1200)
def test_every_field_at_its_extremes(pytestconfig: pytest.Config, kafka_source: KafkaSource, tmp_path: Path) -> None:
    """Both brokers answer alike, field by field, except for the differences in `bad_fields/differences.py`.

    With `--against` one broker is asked twice and compared with itself, which shows whether the comparison depends on
    chance.
    """
    whole = pytestconfig.getoption("--every-version")

    def ask(broker: Broker) -> list[Answer]:
        switch_off(broker)
        return asked_of(Run(broker.bootstrap, whole=whole))

    compare(answers_of_both(pytestconfig, kafka_source, tmp_path, SETTINGS, ask), ALLOWED)


@pytest.mark.timeout(1200)
def test_every_field_with_the_features_switched_on(
    pytestconfig: pytest.Config, kafka_source: KafkaSource, tmp_path: Path
) -> None:
    """The same for transactions, share groups and streams groups: producers, members and groups are there."""
    whole = pytestconfig.getoption("--every-version")

    def ask(broker: Broker) -> list[Answer]:
        chosen = {
            "bases": BASES_SWITCHED_ON,
            "cluster": SwitchedOnCluster,
            "patience_seconds": UNANSWERED_SECONDS,
            "unanswered": UNANSWERED_SWITCHED_ON,
        }
        return asked_of(Run(broker.bootstrap, whole=whole, **chosen))

    compare(answers_of_both(pytestconfig, kafka_source, tmp_path, SETTINGS_SWITCHED_ON, ask), ALLOWED_SWITCHED_ON)


def plain_of(value: Any, fields: list[notation.Field], version: int) -> dict[str, Any]:
    """A message as plain dicts."""
    plain = {}
    for field in fields:
        if field.alive(version):
            inner = getattr(value, field.name)
            if field.struct is not None and inner is not None:
                below = field.struct.fields
                inner = (
                    [plain_of(each, below, version) for each in inner]
                    if field.is_array
                    else plain_of(inner, below, version)
                )
            plain[field.name] = inner
    return plain


@pytest.mark.parametrize("row", table.ROWS, ids=lambda row: row.name)
def test_what_is_sent_is_what_the_codec_would_send(row: table.Api) -> None:
    """The encoder of these tests, which refuses nothing, writes valid values like our own, and changes every field."""
    cls = messages.request_class(row.key)
    fields = messages.schema(cls).root.fields
    values = Values(row.name)
    for version in range(row.min_version, row.max_version + 1):
        for _ in range(20):
            message = values.message(cls, version)
            plain = plain_of(message, fields, version)
            assert body(cls, version, plain) == bytes(messages.encode(message, version))
            changed = {variant.path for variant in variants(cls, version, plain)}
            # A missing struct has no fields to change.
            assert {
                field.name
                for field in fields
                if field.name in plain and (plain[field.name] is not None or field.struct is None or field.is_array)
            } <= changed


def test_the_table_of_differences() -> None:
    """Every difference has a reason, and the patterns match the intended cases."""
    assert all(row.reason.endswith(".") for row in ALLOWED)
    assert allowing(Answer("CreateTopics", 7, "topics.name", "longest", None), "topics.0.error_code")
    assert not allowing(Answer("CreateTopics", 7, "topics.name", "empty", None), "topics.0.error_code")
