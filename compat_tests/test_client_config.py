"""The lines of `pykafkad client-config`, pasted into each client that is here: one record by TLS and a login."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer

from compat_tests.conftest import unavailable
from compat_tests.java_tools import JAVA_OPTIONS
from compat_tests.shop import LIMIT_SECONDS, MECHANISMS, TOKENS, Shop, open_shop
from compat_tests.suites import franz_go
from compat_tests.suites.packages import call
from compat_tests.suites.suite import SuiteUnavailable
from compat_tests.test_kafkajs import kafkajs  # noqa: F401
from pykafkad.testing import token_providers


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The broker."""
    with open_shop(tmp_path_factory.mktemp("client-config")) as made:
        yield made


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> str:
    """By which Alice logs in."""
    return request.param


def _names(client: type) -> dict[str, Any]:
    """What the lines for a client in Python name."""
    return {client.__name__: client, "token_providers": token_providers}


def test_kafka_python(shop: Shop, mechanism: str) -> None:
    """As keyword arguments."""
    producer = eval(f"KafkaProducer({shop.lines('kafka-python', mechanism)})", _names(KafkaProducer))
    producer.send("orders", b"one").get(LIMIT_SECONDS)
    producer.close()


def test_aiokafka(shop: Shop, mechanism: str) -> None:
    """As keyword arguments, one of which needs `import ssl`."""

    async def send() -> None:
        lines = shop.lines("aiokafka", mechanism)
        producer: Any = eval(f"AIOKafkaProducer({lines})", {**_names(AIOKafkaProducer), "ssl": ssl})
        await producer.start()
        await producer.send_and_wait("orders", b"two")
        await producer.stop()

    asyncio.run(asyncio.wait_for(send(), LIMIT_SECONDS))


def test_librdkafka(shop: Shop, mechanism: str) -> None:
    """As options of confluent-kafka."""
    producer = Producer(dict(line.split("=", 1) for line in shop.lines("librdkafka", mechanism).splitlines()))
    failures: list[Any] = []
    producer.produce("orders", b"three", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(LIMIT_SECONDS) == 0 and failures == [None]


def test_kcat(shop: Shop) -> None:
    """As a file of options; by PLAIN, as the kcat of some distributions logs in by no other."""
    if shutil.which("kcat") is None:
        unavailable("kcat is not installed")
    command = ["kcat", "-F", str(shop.file("librdkafka", "PLAIN")), "-L", "-t", "orders", "-m", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert 'topic "orders" with 1 partitions' in done.stdout, done.stderr


def test_java(shop: Shop, mechanism: str, kafka_jars: Path) -> None:
    """As the file of a tool."""
    # The first line is a comment with what Java's virtual machine wants.
    lines = shop.lines("java", mechanism).splitlines()
    option = [lines[0].split()[-1]] if mechanism == TOKENS else []
    command = [
        "java",
        *JAVA_OPTIONS,
        *option,
        "-cp",
        f"{kafka_jars}/*",
        "org.apache.kafka.tools.TopicCommand",
        "--list",
    ]
    command += ["--bootstrap-server", shop.address, "--command-config", str(shop.file("java", mechanism))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert "orders" in done.stdout.split(), done.stderr


def test_commands(shop: Shop, mechanism: str) -> None:
    """Java's as the file of pykafkad's own commands, whose rules for a backslash are Java's."""
    command = [sys.executable, "-m", "pykafkad", "topics", "-b", shop.address, "list"]
    command += ["--client-config", str(shop.file("java", mechanism))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert "orders" in done.stdout.split(), done.stderr


PROGRAM = """
const { Kafka, logLevel } = require("kafkajs");
const kafka = new Kafka({ LINES logLevel: logLevel.ERROR });
const admin = kafka.admin();
(async () => {
  await admin.connect();
  console.log((await admin.listTopics()).join(" "));
  await admin.disconnect();
})().catch((error) => { console.error(error); process.exit(1); });
"""


def test_kafkajs(shop: Shop, mechanism: str, kafkajs: Path) -> None:  # noqa: F811
    """As fields of the object that the client takes."""
    program = PROGRAM.replace("LINES", shop.lines("kafkajs", mechanism))
    done = subprocess.run(["node", "-e", program], cwd=kafkajs, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert "orders" in done.stdout.split(), done.stderr


# The lines of franz-go for tokens need a module that its own does not have.
OAUTH2 = "v0.30.0"
GO_MODULE = """
module client

go 1.23.0

require (
	github.com/twmb/franz-go VERSION
	golang.org/x/oauth2 OAUTH2
)

replace github.com/twmb/franz-go => SOURCE
"""
GO_PROGRAM = """
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"golang.org/x/oauth2/clientcredentials"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func options(mechanism string) []kgo.Opt {
	switch mechanism {
	CASES
	}
	panic(mechanism)
}

func main() {
	client, err := kgo.NewClient(append(options(os.Args[1]), kgo.DefaultProduceTopic("orders"))...)
	check(err)
	check(client.ProduceSync(context.Background(), kgo.StringRecord("four")).FirstErr())
	client.Close()
}
"""
GO_CASE = """case "MECHANISM":
	AUTHORITY
	check(err)
	return []kgo.Opt{
	OPTIONS
	}
"""


@pytest.fixture(scope="module")
def franz(shop: Shop) -> Iterator[Path]:
    """A program with the lines for each mechanism, which produces one record."""
    try:
        source = franz_go.SUITE.prepare()
    except SuiteUnavailable as error:
        unavailable(str(error))
    cases = ""
    for each in MECHANISMS:
        lines = shop.lines("franz-go", each).splitlines()
        # What is no option stands in comments.
        authority = [line.removeprefix("// ") for line in lines if line.startswith("//") and "import" not in line]
        chosen = [line for line in lines if not line.startswith("//")]
        case = GO_CASE.replace("MECHANISM", each).replace("AUTHORITY", "\n".join(authority))
        cases += case.replace("OPTIONS", "\n".join(chosen))
    module = GO_MODULE.replace("VERSION", franz_go.VERSION).replace("OAUTH2", OAUTH2).replace("SOURCE", str(source))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.go").write_text(GO_PROGRAM.replace("CASES", cases))
        Path(folder, "go.mod").write_text(module)
        made = Path(folder, "client")
        call(["go", "mod", "tidy"], Path(folder))
        call(["go", "build", "-o", str(made), "."], Path(folder))
        yield made


def test_franz_go(shop: Shop, franz: Path, mechanism: str) -> None:
    """As options of a client in Go."""
    done = subprocess.run([str(franz), mechanism], capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr
