"""Connections to a broker, through kafka-python: the only module that imports it. Works with any Kafka, ours or
another."""

from __future__ import annotations

import contextlib
import re

from pykafkad.cli import extras
from pykafkad.cli.output import Failure
from pykafkad.errors import GROUP_ID_NOT_FOUND

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

TIMEOUT_MS = 10_000
BOOTSTRAP_TIMEOUT_MS = 5_000
PATIENCE_TRIES = 25
PATIENCE_S = 0.2
CLIENT_ID = "pykafkad-cli"


def add_bootstrap(parser: argparse.ArgumentParser, default: str = "localhost:9092") -> None:
    """The option that every client command has."""
    parser.add_argument(
        "-b", "--bootstrap", type=bootstrap, metavar="HOST:PORT", default=default,
        help="a broker of the cluster to ask first, or several with commas (default: localhost:9092)",
    )  # fmt: skip


def bootstrap(text: str) -> str:
    """`HOST[:PORT]` with commas, an IPv6 address in brackets; for argparse."""
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
                f"{address!r} is not HOST:PORT, nor [IPV6]:PORT, with a port from 1 to 65535"
            )
    return text


def count(text: str) -> int:
    """A number from 1 on; for argparse."""
    import argparse

    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


@contextlib.contextmanager
def translated_errors(bootstrap: str) -> Iterator[None]:
    """Turns what the library raises into one sentence; the library's own log lines stay quiet.

    Without the library: `Failure` with exit code 2, which says what to install."""
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
                f"no broker answers at {bootstrap}; start one with `pykafkad serve`, or name another with --bootstrap"
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
    """An error of the library as a sentence: Kafka's name for it, and the broker's words if there are any."""
    name = getattr(error, "message", None) or type(error).__name__
    words = next((str(argument) for argument in error.args if isinstance(argument, str) and argument != name), "")
    return f"{name}: {words}" if words else str(name)


def error_name(class_name: str) -> str:
    """Kafka's name of an error that the library names by its class: `NonEmptyGroupError` is NON_EMPTY_GROUP."""
    import kafka.errors

    return getattr(getattr(kafka.errors, class_name, None), "message", class_name)


@contextlib.contextmanager
def admin(bootstrap: str, *, timeout_ms: int = TIMEOUT_MS) -> Iterator[object]:
    """A `KafkaAdminClient`, closed at the end."""
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
def consumer(bootstrap: str, **options: object) -> Iterator[object]:
    """A `KafkaConsumer` that belongs to no group and commits nothing."""
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
def producer(bootstrap: str, **options: object) -> Iterator[object]:
    """A `KafkaProducer`; closed, and what it holds sent, at the end, but not after a failure."""
    with translated_errors(bootstrap):
        from kafka import KafkaProducer

        client = KafkaProducer(
            bootstrap_servers=bootstrap, client_id=CLIENT_ID, bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS, **options
        )
        try:
            yield client
            client.flush(TIMEOUT_MS / 1000)
        finally:
            # Closing would wait for what a broker in trouble does not take, and complain of it a second time while
            # Python ends.
            client.flush = lambda timeout: None
            client.close(timeout=0)


def patiently(call: Callable[..., object], *arguments: object) -> object:
    """Calls until the answer is not one that passes by itself, such as a coordinator that is only just being made."""
    from time import sleep

    import kafka.errors

    for _ in range(PATIENCE_TRIES - 1):
        try:
            return call(*arguments)
        except kafka.errors.RetriableError as error:
            if isinstance(error, kafka.errors.KafkaTimeoutError):
                raise
            sleep(PATIENCE_S)
    return call(*arguments)


def describe_group(admin: object, group: str) -> dict:
    """A group's description. Errors that the library leaves in the answer's text are raised, but for that of an unknown
    group."""
    import kafka.errors

    def call() -> dict:
        answer = admin.describe_groups([group])[group]
        found = re.match(r"\[Error (\d+)\]", answer["error"] or "")
        if found and int(found[1]) != GROUP_ID_NOT_FOUND:
            raise kafka.errors.for_code(int(found[1]))
        return answer

    return patiently(call)


def partition_of(topic: str, partition: int) -> object:
    """The library's name of one partition."""
    from kafka import TopicPartition

    return TopicPartition(topic, partition)


def watermarks(client: object, partitions: list[object]) -> dict[object, tuple[int, int]]:
    """Partition to (log start offset, end offset), asked through an admin client."""
    from kafka import OffsetSpec

    if not partitions:
        return {}
    starts = client.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = client.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return {partition: (starts[partition].offset, ends[partition].offset) for partition in partitions}


def only_broker(admin: object) -> int:
    """The id of the one broker of a cluster."""
    brokers = admin.describe_cluster()["brokers"]
    if len(brokers) != 1:
        raise Failure(f"the cluster has {len(brokers)} brokers; this is for one")
    return brokers[0]["broker_id"]


def set_broker_setting(admin: object, broker: int, name: str, value: str) -> None:
    """Change one setting of a broker; the broker's words become the failure."""
    from kafka.admin import ConfigResource, ConfigResourceType

    resource = ConfigResource(ConfigResourceType.BROKER, str(broker), {name: value})
    results = admin.alter_configs([resource], raise_on_unknown=False, incremental=True)
    result = results["broker"][str(broker)]
    if result != "OK":
        raise Failure(re.sub(r"^\[Error \d+\] (\w+: )?", "", result))


def describe_broker_setting(admin: object, broker: int, name: str) -> str:
    """One setting's value; a broker that does not know it is no pykafkad."""
    from kafka.admin import ConfigResource, ConfigResourceType

    resource = ConfigResource(ConfigResourceType.BROKER, str(broker), {name: None})
    found = admin.describe_configs([resource], config_filter="all")["broker"][str(broker)]
    if name not in found:
        raise Failure(f"this broker does not know {name}: it is no pykafkad, or an older one")
    return found[name]["value"] or ""
