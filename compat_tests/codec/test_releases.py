"""Passes requests and responses of other releases through the message classes of each: Java reads what we write as our
values, and writes the same bytes again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat_tests.codec.java_json import difference
from compat_tests.codec.oracle import ECHO, MessageOracle
from compat_tests.setup.kafka_jars import OTHER_BROKERS, fetch_other_broker
from pykafkad.handlers import table
from pykafkad.settings.release import of
from pykafkad.wire import messages
from tests.seeds import seed_of_the_code
from tests.wire.values import EdgeValues

# The others are compared with --whole-suites.
IN_EVERY_RUN = ("3.9", "4.4")
# Messages of a version that 4.3.1 lacks, and of any other.
EXAMPLES, FEWER_EXAMPLES = 30, 2
# Messages and fields that a release has under another name than we: its name by ours, and ours by (message, its name).
OTHER_NAMES = {"ListConfigResources": "ListClientMetricsResources"}
RENAMED = {
    ("TxnOffsetCommitRequest", "generationIdOrMemberEpoch"): "generationId",
    ("OffsetCommitRequest", "generationId"): "generationIdOrMemberEpoch",
    ("ListConfigResourcesResponse", "clientMetricsResources"): "configResources",
    ("ListConfigResourcesResponse", "name"): "resourceName",
    ("StreamsGroupHeartbeatResponse", "acceptableRecoveryLagLegacy"): "acceptableRecoveryLag",
    ("StreamsGroupHeartbeatResponse", "acceptableRecoveryLag"): "acceptableRecoveryLagOffsets",
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("release", OTHER_BROKERS)
def test_messages_of_another_release(release: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Each version that the release's row offers."""
    if release not in IN_EVERY_RUN:
        request.getfixturevalue("whole_suites")
    oracle = MessageOracle(fetch_other_broker(release), tmp_path, ECHO)
    seed = f"{seed_of_the_code():x}"
    sent = []
    for row in table.answered_on(table.BROKER_LISTENER, of(release)):
        for cls in (messages.request_class(row.key), messages.response_class(row.key)):
            for version in range(row.min_version, row.max_version + 1):
                count = FEWER_EXAMPLES if version in messages.valid_versions(cls) else EXAMPLES
                for index in range(count):
                    message = EdgeValues((seed, cls.__name__, version, index)).message(cls, version)
                    sent.append((message, version, bytes(messages.encode(message, version))))
    known = {line.split()[0] for line in oracle.ask(["list"])}
    questions = [
        f"echo {_name_in(known, type(message).__name__)} {version} {data.hex() or '-'}"
        for message, version, data in sent
    ]
    wrong = []
    for (message, version, data), line in zip(sent, oracle.ask(questions), strict=True):
        name = type(message).__name__
        written, _, printed = line.partition(" ")
        if written == "error":
            wrong.append(f"{name} v{version}: {printed}")
            continue
        found = difference(message, _renamed(name, json.loads(printed)), version)
        if found is not None:
            wrong.append(f"{name} v{version}: {found}")
        elif (b"" if written == "-" else bytes.fromhex(written)) != data:
            wrong.append(f"{name} v{version} is written differently")
    assert not wrong, f"seed {seed}: " + "\n".join(sorted(set(wrong))[:20])


def _name_in(known: set[str], name: str) -> str:
    if name in known:
        return name
    api = name.removesuffix("Request").removesuffix("Response")
    return OTHER_NAMES[api] + name.removeprefix(api)


def _renamed(message: str, printed: Any) -> Any:
    if isinstance(printed, list):
        return [_renamed(message, each) for each in printed]
    if not isinstance(printed, dict):
        return printed
    return {RENAMED.get((message, name), name): _renamed(message, value) for name, value in printed.items()}
