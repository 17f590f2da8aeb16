"""Connections to a broker through kafka-python. They work with any Kafka broker, pykafkad or another."""

from __future__ import annotations

import contextlib
import re

from pykafkad.cli import extras
from pykafkad.cli.output import Failure
from pykafkad.errors import GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator
    from typing import Any

TIMEOUT_MS = 10_000
BOOTSTRAP_TIMEOUT_MS = 5_000
RETRIES = 25
RETRY_DELAY_S = 0.2
CLIENT_ID = "pykafkad-cli"


def add_bootstrap(parser: argparse.ArgumentParser, default: str = "localhost:9092") -> None:
    """Adds `--bootstrap`, the option that every client command has."""
    parser.add_argument(
        "-b", "--bootstrap", type=bootstrap, metavar="HOST:PORT", default=default,
        help="the first broker to connect to, or several with commas (default: localhost:9092)",
    )  # fmt: skip


def bootstrap(text: str) -> str:
    """Checks a list of `HOST[:PORT]` with commas, as an argparse type. An IPv6 address stands in brackets."""
    import argparse

    for address in text.split(","):
        host, colon, port = address.rpartition(":") if not address.endswith("]") else (address, "", "")
        bare = host if colon else address
        if (
            not bare
            or (":" in bare and not bare.startswith("["))
            or (colon and not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536))
        ):
            raise argparse.ArgumentTypeError(
                f"{address!r} is neither HOST:PORT nor [IPV6]:PORT with a port from 1 to 65535"
            )
    return text


def count(text: str) -> int:
    """A number above 0, as an argparse type."""
    import argparse

    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


@contextlib.contextmanager
def translated_errors(bootstrap: str) -> Iterator[None]:
    """Turns an exception of kafka-python into a `Failure` with one sentence, and silences the library's own log.

    Without kafka-python it raises `Failure` with exit code 2 and says what to install.
    """
    import logging

    if sentence := extras.missing("kafka"):
        raise Failure(sentence, 2)
    import kafka.errors

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        yield
    except kafka.errors.KafkaTimeoutError as error:
        if "bootstrap" in str(error):
            raise Failure(
                f"no broker answers at {bootstrap}; start one with `pykafkad serve` or name another with --bootstrap"
            ) from None
        raise Failure(f"the broker at {bootstrap} did not answer in time: {error}") from None
    except (kafka.errors.KafkaConnectionError, kafka.errors.NodeNotReadyError) as error:
        raise Failure(
            f"the connection to the broker was lost ({describe_error(error)}); started with {bootstrap}"
        ) from None
    except kafka.errors.KafkaError as error:
        raise Failure(describe_error(error)) from None
    except ValueError as error:
        raise Failure(str(error), 2) from None


def describe_error(error: BaseException) -> str:
    """An exception of kafka-python as text: Kafka's name of the error, then the broker's message if there is one."""
    name = getattr(error, "message", None) or type(error).__name__
    words = next((str(argument) for argument in error.args if isinstance(argument, str) and argument != name), "")
    return f"{name}: {words}" if words else str(name)


def error_name(class_name: str) -> str:
    """Kafka's name of an error, from kafka-python's class name: `NonEmptyGroupError` is NON_EMPTY_GROUP."""
    import kafka.errors

    return getattr(getattr(kafka.errors, class_name, None), "message", class_name)


@contextlib.contextmanager
def admin(bootstrap: str, *, timeout_ms: int = TIMEOUT_MS) -> Iterator[Any]:
    """A `KafkaAdminClient`, which is closed when the block ends."""
    with translated_errors(bootstrap):
        from kafka import KafkaAdminClient

        client = KafkaAdminClient(
            bootstrap_servers=bootstrap,
            client_id=CLIENT_ID,
            request_timeout_ms=timeout_ms,
            bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
        )
        try:
            yield client
        finally:
            client.close()


@contextlib.contextmanager
def consumer(bootstrap: str, **options: object) -> Iterator[Any]:
    """A `KafkaConsumer` without a group. It commits no offsets, and is closed when the block ends."""
    with translated_errors(bootstrap):
        from kafka import KafkaConsumer

        client = KafkaConsumer(
            bootstrap_servers=bootstrap,
            client_id=CLIENT_ID,
            group_id=None,
            enable_auto_commit=False,
            bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
            **options,
        )
        try:
            yield client
        finally:
            client.close()


@contextlib.contextmanager
def producer(bootstrap: str, **options: object) -> Iterator[Any]:
    """A `KafkaProducer`, which is flushed and closed when the block ends. After a failure it is closed at once."""
    with translated_errors(bootstrap):
        from kafka import KafkaProducer

        client = KafkaProducer(
            bootstrap_servers=bootstrap, client_id=CLIENT_ID, bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS, **options
        )
        try:
            yield client
            client.flush(TIMEOUT_MS / 1000)
        finally:
            # close() calls flush(), which would wait for a broker that does not answer, and report the same error a
            # second time.
            client.flush = lambda timeout: None
            client.close(timeout=0)


def retrying(call: Callable[..., Any], *arguments: object) -> Any:
    """Calls again while the broker answers with a retriable error, such as a coordinator that is still loading."""
    from time import sleep

    import kafka.errors

    for _ in range(RETRIES - 1):
        try:
            return call(*arguments)
        except kafka.errors.RetriableError as error:
            if isinstance(error, kafka.errors.KafkaTimeoutError):
                raise
            sleep(RETRY_DELAY_S)
    return call(*arguments)


def describe_group(admin: Any, group: str) -> dict[str, Any]:
    """A group's description. Raises the errors that kafka-python only puts into the text of the answer.

    An unknown group is no error: it is described as a dead group.
    """
    import kafka.errors

    def call() -> dict[str, Any]:
        answer: dict[str, Any] = admin.describe_groups([group])[group]
        found = re.match(r"\[Error (\d+)\]", answer["error"] or "")
        if found and int(found[1]) != GROUP_ID_NOT_FOUND:
            raise kafka.errors.for_code(int(found[1]))
        return answer

    group_description: dict[str, Any] = retrying(call)
    return group_description


def describe_consumer_group(admin: Any, group: str) -> dict[str, Any] | None:
    """The description of a group of the consumer protocol (KIP-848), or None when there is no such group."""
    import kafka.errors
    from kafka.protocol.api_message import ApiMessage

    package = "pykafkad.cli.kafka_messages"
    request_class: Any = type("ConsumerGroupDescribeRequest", (ApiMessage,), {}, load_json=package)
    # kafka-python finds the class of the answer by the key of the request, for as long as somebody holds it.
    response_class: Any = type("ConsumerGroupDescribeResponse", (ApiMessage,), {}, load_json=package)

    async def ask() -> Any:
        coordinators = await admin._find_coordinator_ids([group])
        return await admin._manager.send(request_class(group_ids=[group]), node_id=coordinators[group])

    def call() -> dict[str, Any] | None:
        try:
            answer = admin._manager.run(ask).groups[0].to_dict()
        except kafka.errors.IncompatibleBrokerVersion:
            return None
        if answer["error_code"] in (GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION):
            return None
        if answer["error_code"]:
            raise kafka.errors.for_code(answer["error_code"])
        described: dict[str, Any] = answer
        return described

    assert response_class.API_KEY == request_class.API_KEY
    found: dict[str, Any] | None = retrying(call)
    return found


def partition_of(topic: str, partition: int) -> Any:
    """kafka-python's `TopicPartition` of one partition."""
    from kafka import TopicPartition

    return TopicPartition(topic, partition)


def watermarks(client: Any, partitions: list[Any]) -> dict[Any, tuple[int, int]]:
    """Maps each partition to (log start offset, end offset). An admin client asks the broker."""
    from kafka import OffsetSpec

    if not partitions:
        return {}
    starts = client.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = client.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return {partition: (starts[partition].offset, ends[partition].offset) for partition in partitions}


def only_broker(admin: Any) -> int:
    """The id of the one broker of a cluster."""
    brokers = admin.describe_cluster()["brokers"]
    if len(brokers) != 1:
        raise Failure(f"the cluster has {len(brokers)} brokers; this command works with a single broker only")
    broker_id: int = brokers[0]["broker_id"]
    return broker_id


def set_broker_setting(admin: Any, broker: int, name: str, value: str) -> None:
    """Changes one setting of a broker. A `Failure` repeats the broker's message."""
    from kafka.admin import ConfigResource, ConfigResourceType

    resource = ConfigResource(ConfigResourceType.BROKER, str(broker), {name: value})
    results = admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
    result = results["broker"][str(broker)]
    if result != "OK":
        raise Failure(re.sub(r"^\[Error \d+\] (\w+: )?", "", result))


def describe_broker_setting(admin: Any, broker: int, name: str) -> str:
    """The value of a setting that only pykafkad has. Raises `Failure` when the broker does not know the setting."""
    from kafka.admin import ConfigResource, ConfigResourceType

    resource = ConfigResource(ConfigResourceType.BROKER, str(broker), {name: None})
    found = admin.describe_configs([resource], config_filter="all")["broker"][str(broker)]
    if name not in found:
        raise Failure(f"this broker does not know {name}: it is not pykafkad, or an older version")
    return found[name]["value"] or ""
