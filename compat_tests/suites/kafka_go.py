"""segmentio/kafka-go's tests, from its Go module."""

from __future__ import annotations

import contextlib
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
from kafka.errors import IncompatibleBrokerVersion

from compat_tests.setup.kafka_jars import KAFKA_VERSION
from compat_tests.suites import security
from compat_tests.suites.counting import from_test2json
from compat_tests.suites.packages import built, call, from_go_proxy
from compat_tests.suites.program import run_logged
from compat_tests.suites.suite import Outcomes, Place, Suite

VERSION = "v0.4.51"
MODULE = "github.com/segmentio/kafka-go"
FETCH = from_go_proxy(MODULE, VERSION, "h1:JgDPPG75tC1rWIS2Me6MwcvXJ6f49UQ4HjAOef71Hno=")
# The packages whose tests use a broker; the others test codecs and compression.
PACKAGES = ("", "topics", "sasl")
# The tests that use a broker; the others test codecs, balancers and similar parts.
WITH_BROKER = "|".join(
    (
        "TestAlterUserScram.*|TestDescribeUserScram.*|TestBatchDontExpectEOF|TestClient.*|TestCloseLeavesGroup",
        "TestConn|TestConnCreateTopics|TestConsumerGroup|TestConsumerGroupWith.*|TestDialer|TestDialerTLS|TestIssue.*",
        "TestListRe|TestListReNil|TestReader|TestReadPartitionsNoTopic|TestReaderConsumerGroup|TestReaderOnNonZeroPartition",
        "TestReaderReadCompactedMessage|TestReaderTruncatedResponse|TestRebalanceTooManyConsumers|TestSASL",
        "TestUnsupportedSASLMechanism|TestWriter|TestWriteV2RecordBatch",
    )
)
# The tests that take a second or less: most others wait for groups or for the client's next metadata request.
QUICK = "|".join(
    (
        "TestAlterUserScram.*|TestDescribeUserScram.*|TestBatchDontExpectEOF|TestConn|TestConnCreateTopics|TestDialer|TestListRe",
        "TestClient.*(ACLs|ApiVersions|Configs|Coordinator|CreateTopics|Fetch|ListOffsets|Metadata|Pipeline|Produce).*|TestSASL",
        "TestUnsupportedSASLMechanism|TestWriteV2RecordBatch",
    )
)
# These tests look for a group's coordinator through a client that was never connected, which ends the whole binary on
# any broker.
BREAKS_THE_REST = "^TestReaderConsumerGroup$/^(verify_offset_committed|consumer_group_commits_on_close)"
# This test says of itself that it waits for ever if a read comes before the write. On a busy machine one does, on any
# broker.
MAY_WAIT_FOR_EVER = "^TestConn$/^writing_and_reading_messages_concurrently"
SCRAM_USERS = {ScramMechanism.SCRAM_SHA_256: "256", ScramMechanism.SCRAM_SHA_512: "512"}


def binary(source: Path, package: str) -> Path:
    """Path of the test binary of `package`, which may not exist yet."""
    return source / package / "suite.test"


def build(source: Path) -> None:
    """Compile the test binaries: the run itself has no network to download modules from."""
    call(["go", "mod", "download"], source)
    for package in PACKAGES:
        call(["go", "test", "-c", "-vet=off", "-o", str(binary(source, package)), f"./{package}"], source)


def create_users(bootstrap: str) -> None:
    """Create the users with which the tests log in."""
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin, contextlib.suppress(IncompatibleBrokerVersion):
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion(f"adminscram{bits}", mechanism, f"admin-secret-{bits}")
                for mechanism, bits in SCRAM_USERS.items()
            ]
        )


def run(place: Place) -> Outcomes:
    """Run each package's test binary in its own folder."""
    create_users(place.bootstrap)
    outcomes: Outcomes = {}
    for package in PACKAGES:
        command = [
            "go",
            "tool",
            "test2json",
            str(binary(place.source, package)),
            "-test.v=test2json",
            "-test.timeout=10m",
        ]
        chosen, skipped = (
            (QUICK, f"{BREAKS_THE_REST}|{MAY_WAIT_FOR_EVER}") if place.quick else (WITH_BROKER, BREAKS_THE_REST)
        )
        command += ["-test.count=1", "-test.run", f"^({chosen})$", "-test.skip", skipped]
        environment = {"KAFKA_VERSION": KAFKA_VERSION, "KAFKA_SKIP_NETTEST": "1"}
        printed = run_logged(command, place, place.source / package, environment, timeout_seconds=660)
        outcomes |= from_test2json(printed.splitlines(), f"{package or 'kafka'}.")
    return outcomes


SUITE = Suite(
    name="kafka-go",
    version=VERSION,
    registry="Go module proxy",
    client="Go, own protocol code",
    prepare=lambda: built(f"kafka-go-{VERSION}", FETCH, build),
    run=run,
    fixed_port=True,
    settings={
        **security.AUTHORIZER,
        "message.max.bytes": "200000000",
        # Its groups expect Kafka's defaults for the initial rebalance delay and the shortest session.
        "group.initial.rebalance.delay.ms": "3000",
        "group.min.session.timeout.ms": "6000",
    },
    login_settings=security.sasl_listener(
        {"adminplain": "admin-secret"}, ["adminplain", "adminscram256", "adminscram512"]
    ),
    unsteady={
        "kafka.TestConn/test_delete_topics_with_an_invalid_topic": "asks for metadata at once after a deletion",
        "kafka.TestReaderConsumerGroup/consumer_group_rebalance": "expects each of two readers to get some of a few "
        "messages",
    },
    not_run="3 tests that crash their own binary, whatever the broker",
)
