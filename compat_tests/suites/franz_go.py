"""franz-go's own tests of its client, from its Go module."""

from __future__ import annotations

from pathlib import Path

from compat_tests.suites.counting import from_test2json
from compat_tests.suites.packages import built, call, from_go_proxy
from compat_tests.suites.program import run_logged
from compat_tests.suites.suite import Outcomes, Place, Suite

VERSION = "v1.22.2"
FETCH = from_go_proxy("github.com/twmb/franz-go", VERSION, "h1:EdwIHGzD/4mgCpl/sNS0C74JYn6cL/r2KYS+8UC96Ww=")
# The tests that use a broker; the others bring their own test broker.
WITH_BROKER = "|".join(
    (
        "Test848RegexBrokerResolves|TestAddRemovePartitions|TestClient_Produce|TestClient_ProduceLargeMessages|TestConsumeMaxDecompressBatchBytes",
        "TestConsumeRegex|TestConsumeRegexShareSkipsInternal|TestConsumeTopicRetrieval|TestConsumeTopicRetrieval_Many|TestDirectPartitionPurge",
        "TestGroupETL|TestGroupSimple|TestHookPollStart|TestIssue(325|337|434|489|523|648|769|810|831|865|1034)",
        "TestIssueFetchLargerThanBrokerMaxReadBytes|TestPauseIssue489|TestPauseIssueOct2023|TestPing|TestPooling",
        "TestShareGroup|TestShareGroupAckOnClose|TestShareGroupETL|TestShareGroupOffsetsAdmin|TestTxnEtl|TestUnknownGroupOffsetFetchPinned",
    )
)
# The tests that wait neither for a group nor for the client's next metadata request.
QUICK = "|".join(
    (
        "TestAddRemovePartitions|TestClient_Produce|TestClient_ProduceLargeMessages|TestConsumeRegex",
        "TestConsumeTopicRetrieval|TestGroupSimple|TestIssue(325|648|865|1034)|TestPauseIssue489|TestPing|TestPooling",
        "TestUnknownGroupOffsetFetchPinned",
    )
)
ENVIRONMENT = {"KGO_TEST_RF": "1", "KGO_TEST_RECORDS": "20000", "KGO_TEST_MAX_TOPIC_PARTS": "3"}


def build(source: Path) -> None:
    """Compile the test binary: the run itself has no network to download modules from."""
    call(["go", "mod", "download"], source)
    call(["go", "test", "-c", "-vet=off", "-o", str(source / "suite.test"), "./pkg/kgo"], source)


def run(place: Place) -> Outcomes:
    """The tests that use a broker, in their own folder; several run at a time."""
    command = ["go", "tool", "test2json", str(place.source / "suite.test"), "-test.v=test2json", "-test.timeout=10m"]
    command += [
        "-test.count=1",
        "-test.run",
        f"^({QUICK if place.quick else WITH_BROKER})$",
    ]
    environment = {**ENVIRONMENT, "KGO_SEEDS": place.bootstrap}
    printed = run_logged(command, place, place.source / "pkg" / "kgo", environment, timeout_seconds=660)
    return from_test2json(printed.splitlines())


SUITE = Suite(
    name="franz-go",
    version=VERSION,
    registry="Go module proxy",
    client="Go, own protocol code",
    prepare=lambda: built(f"franz-go-{VERSION}", FETCH, build),
    run=run,
    differences={},
)
