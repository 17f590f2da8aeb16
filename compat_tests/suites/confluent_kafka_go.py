"""confluent-kafka-go's integration tests, from its Go module, which contains a compiled librdkafka."""

from __future__ import annotations

import json
from pathlib import Path

from compat_tests.suites import security
from compat_tests.suites.counting import from_test2json
from compat_tests.suites.packages import built, call, from_go_proxy
from compat_tests.suites.program import run_logged
from compat_tests.suites.suite import Outcomes, Place, Suite

VERSION = "v2.11.1"
FETCH = from_go_proxy(
    "github.com/confluentinc/confluent-kafka-go/v2", VERSION, "h1:qGCQznyp2BxyBNyOE+M7O1YS2tI1/Y60O0jQP452zA4="
)


def build(source: Path) -> None:
    """Compile the test binary: the run itself has no network to download modules from."""
    call(["go", "mod", "download"], source)
    call(["go", "test", "-c", "-vet=off", "-o", str(source / "suite.test"), "./kafka"], source)


def run(place: Place) -> Outcomes:
    """All tests that use a broker, except the performance tests."""
    configuration = {
        "Brokers": place.bootstrap,
        "BrokersSasl": "localhost:9093",
        "SaslUsername": "testuser",
        "SaslPassword": "testpass",
        "SaslMechanism": "PLAIN",
        "TopicName": "test",
        "GroupID": "testgroup",
        "PerfMsgCount": 2000,
        "PerfMsgSize": 100,
    }
    (place.scratch / "testconf.json").write_text(json.dumps(configuration))
    command = ["go", "tool", "test2json", str(place.source / "suite.test"), "-test.v=test2json", "-test.timeout=15m"]
    command += ["-test.run", "^(TestIntegration|TestTransactionalProducer|TestTransactionalSendOffsets)$"]
    printed = run_logged(command, place, place.scratch, {}, timeout_seconds=960)
    return from_test2json(printed.splitlines())


SUITE = Suite(
    name="confluent-kafka-go",
    version=VERSION,
    registry="Go module proxy",
    client="Go on librdkafka",
    prepare=lambda: built(f"confluent-kafka-go-{VERSION}", FETCH, build),
    run=run,
    fixed_port=True,
    settings={**security.AUTHORIZER, "num.partitions": "4", "node.id": "0"},
    login_settings=security.sasl_listener({"admin": "admin", "testuser": "testpass"}, ["admin"]),
    quick=False,
    differences={
        "TestTransactionalProducer": "flushes without waiting, and expects that sending offsets took longer than the "
        "client lets records linger",
        "TestTransactionalSendOffsets": "names its topics by the second, in which the test before it has failed",
    },
    unsteady={
        "TestIntegration/TestAdminClient_DescribeCluster": "asks what it may do at once after ACLs were deleted",
    },
)
