"""Connections to a broker through kafka-python. They work with any Kafka broker, pykafkad or another."""

from __future__ import annotations

import contextlib
import os
import re

from pykafkad import errors
from pykafkad.cli import client_login, client_properties, extras
from pykafkad.cli.output import Failure
from pykafkad.cli.reach import reach
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
OFFSET_MAX = 2**63 - 1
BOOTSTRAP_VARIABLE = "PYKAFKAD_BOOTSTRAP"
CONFIG_VARIABLE = "PYKAFKAD_CLIENT_CONFIG"


def add_bootstrap(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Adds `--bootstrap` and `--client-config`, the options that every client command has. The environment may hold
    their defaults."""
    parser.add_argument(
        "-b", "--bootstrap", "--bootstrap-server", type=bootstrap, metavar="HOST:PORT",
        default=default or os.environ.get(BOOTSTRAP_VARIABLE) or "localhost:9092",
        help=f"the first broker to connect to, or several with commas (default: ${BOOTSTRAP_VARIABLE}, or "
        "localhost:9092)",
    )  # fmt: skip
    parser.add_argument(
        "--client-config", "--command-config", metavar="FILE", default=default or os.environ.get(CONFIG_VARIABLE),
        help="how to log in and encrypt: a file of client properties such as security.protocol, sasl.mechanism, "
        f"sasl.username, sasl.password and ssl.ca.location, or a Java client's (default: ${CONFIG_VARIABLE})",
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
            source = f" of ${BOOTSTRAP_VARIABLE}" if text == os.environ.get(BOOTSTRAP_VARIABLE) else ""
            raise argparse.ArgumentTypeError(
                f"{address!r}{source} is neither HOST:PORT nor [IPV6]:PORT with a port from 1 to 65535"
            )
    return text


def count(text: str) -> int:
    """A number above 0, as an argparse type."""
    import argparse

    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def offset(text: str) -> int | None:
    """The offset that a word is; None if it is none that a partition can have."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(OFFSET_MAX))):
        return None
    number = int(text)
    return number if number <= OFFSET_MAX else None


def time_ms(text: str, otherwise: str) -> int:
    """A time in ISO 8601 as milliseconds since the epoch, in local time unless it says another. Raises `Failure` with
    the sentence `otherwise`."""
    from datetime import datetime

    try:
        moment_ms = int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        moment_ms = -1
    if moment_ms < 0:
        raise Failure(otherwise, 2)
    return moment_ms


@contextlib.contextmanager
def connecting(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What every client of kafka-python is made with, by the options of `add_bootstrap`. Meanwhile an exception of
    kafka-python becomes a `Failure` with one sentence, and the library's own log is silent.

    Without kafka-python it raises `Failure` with exit code 2 and says what to install.
    """
    bootstrap = options.bootstrap
    import logging

    if sentence := extras.missing("kafka"):
        raise Failure(sentence, 2)
    import kafka.errors

    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    security = client_properties.read(options.client_config)
    protocol = str(security.get("security_protocol", ""))
    rules = None
    if protocol.endswith("SSL"):
        from pykafkad.cli import tls

        rules = security["ssl_context"] = tls.context(security, options.client_config)
    try:
        with client_login.logging_in(security) as login_at:
            reach(bootstrap, rules, login_at)
            yield {
                "bootstrap_servers": bootstrap,
                "client_id": CLIENT_ID,
                "bootstrap_timeout_ms": BOOTSTRAP_TIMEOUT_MS,
                **security,
            }
    except kafka.errors.KafkaTimeoutError as error:
        if "bootstrap" in str(error):
            how = f" by {protocol}" if protocol else " (does it want TLS or a login? see --client-config)"
            raise Failure(f"the broker at {bootstrap} can't be used{how}: {error}") from None
        raise Failure(f"the broker at {bootstrap} did not answer in time: {error}") from None
    except (kafka.errors.KafkaConnectionError, kafka.errors.NodeNotReadyError) as error:
        raise Failure(
            f"the connection to the broker was lost ({describe_error(error)}); started with {bootstrap}"
        ) from None
    except kafka.errors.KafkaStorageError as error:
        raise Failure(
            f"{describe_error(error)}: the broker's disk, or the memory that `serve --memory` allows, is full, or its "
            "disk fails; its log says which"
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
def admin(options: argparse.Namespace, *, timeout_ms: int = TIMEOUT_MS) -> Iterator[Any]:
    """A `KafkaAdminClient`, which is closed when the block ends."""
    with connecting(options) as common:
        from kafka import KafkaAdminClient

        client = KafkaAdminClient(request_timeout_ms=timeout_ms, **common)
        try:
            yield client
        finally:
            client.close()


@contextlib.contextmanager
def consumer(options: argparse.Namespace, **settings: object) -> Iterator[Any]:
    """A `KafkaConsumer` without a group. It commits no offsets, and is closed when the block ends."""
    with connecting(options) as common:
        from kafka import KafkaConsumer

        client = KafkaConsumer(group_id=None, enable_auto_commit=False, **common, **settings)
        try:
            yield client
        finally:
            client.close()


@contextlib.contextmanager
def producer(options: argparse.Namespace, **settings: object) -> Iterator[Any]:
    """A `KafkaProducer`, which is flushed and closed when the block ends. After a failure it is closed at once."""
    with connecting(options) as common:
        from kafka import KafkaProducer

        client = KafkaProducer(**common, **settings)
        try:
            yield client
            client.flush(TIMEOUT_MS / 1000)
        finally:
            # close() calls flush(), which would wait for a broker that does not answer, and report the same error a
            # second time.
            client.flush = lambda timeout: None
            client.close(timeout=0)


def retrying(call: Callable[..., Any], *arguments: object, on: str = "RetriableError") -> Any:
    """Calls again while the broker answers with a retriable error, such as a coordinator that is still loading; `on` is
    kafka-python's name of the error where others are final."""
    from time import sleep

    import kafka.errors

    for _ in range(RETRIES - 1):
        try:
            return call(*arguments)
        except getattr(kafka.errors, on) as error:
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


def describe_newer_group(admin: Any, api: str, group: str) -> dict[str, Any] | None:
    """The description of a group by its kind's own API (`ShareGroupDescribe`), or None when there is no such group."""
    answer = _ask_coordinator(admin, api, group, lambda request: request(group_ids=[group]))
    return None if answer is None else _checked(answer["groups"][0])


def share_offsets(admin: Any, group: str) -> dict[tuple[str, int], tuple[int, int | None]]:
    """Topic and partition to start offset and lag (None: unknown), for the partitions that a share group has used."""

    def asked(request: Any) -> Any:
        return request(groups=[request.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])

    answer = _ask_coordinator(admin, "DescribeShareGroupOffsets", group, asked)
    found = None if answer is None else _checked(answer["groups"][0])
    return {
        (topic["topic_name"], row["partition_index"]): (row["start_offset"], None if lag < 0 else lag)
        for topic in (found["topics"] if found else ())
        for row in topic["partitions"]
        if not row["error_code"] and row["start_offset"] >= 0
        for lag in (row.get("lag", -1),)
    }


def _checked(row: dict[str, Any]) -> dict[str, Any] | None:
    """A group's row of an answer, or None for a group that is not of the kind. Raises the row's error."""
    import kafka.errors

    if row["error_code"] in (GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION):
        return None
    if row["error_code"]:
        raise kafka.errors.for_code(row["error_code"])
    return row


def _ask_coordinator(admin: Any, api: str, group: str, asked: Callable[[Any], Any]) -> dict[str, Any] | None:
    """The answer of the group's coordinator to a request that kafka-python does not have (`asked` makes it of its
    class); None from a broker that does not have it either. Errors that pass by themselves are waited for."""
    import kafka.errors
    from kafka.protocol.api_message import ApiMessage

    package = "pykafkad.cli.kafka_messages"
    request_class: Any = type(f"{api}Request", (ApiMessage,), {}, load_json=package)
    # kafka-python finds the class of the answer by the key of the request, for as long as somebody holds it.
    response_class: Any = type(f"{api}Response", (ApiMessage,), {}, load_json=package)

    async def ask() -> Any:
        coordinators = await admin._find_coordinator_ids([group])
        return await admin._manager.send(asked(request_class), node_id=coordinators[group])

    def call() -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = admin._manager.run(ask).to_dict()
        except kafka.errors.IncompatibleBrokerVersion:
            return None
        error: Any = kafka.errors.for_code(answer["groups"][0]["error_code"])
        if issubclass(error, kafka.errors.RetriableError):
            raise error
        return answer

    assert response_class.API_KEY == request_class.API_KEY
    found: dict[str, Any] | None = retrying(call)
    return found


def partition_counts(admin: Any, topics: set[str]) -> dict[str, int]:
    """Topic to its number of partitions, for those that exist."""
    if not topics:
        return {}
    return {
        topic["name"]: len(topic["partitions"])
        for topic in admin.describe_topics(sorted(topics))
        if topic["error_code"] == 0
    }


def partition_of(topic: str, partition: int) -> Any:
    """kafka-python's `TopicPartition` of one partition."""
    from kafka import TopicPartition

    return TopicPartition(topic, partition)


def partitions_of(admin: Any, bootstrap: str, topic: str, only: list[int] | None) -> list[Any]:
    """The partitions of a topic, or `only` some of them. Raises `Failure` for what does not exist."""
    described = admin.describe_topics([topic])[0]
    if described["error_code"] != 0:
        raise Failure(f"there is no topic {topic} at {bootstrap}; `pykafkad topics list` shows all topics")
    known = sorted(row["partition_index"] for row in described["partitions"])
    for number in only or ():
        if number not in known:
            raise Failure(f"{topic} has partitions 0 to {known[-1]}, not {number}")
    return [partition_of(topic, number) for number in only or known]


def watermarks(client: Any, partitions: list[Any]) -> dict[Any, tuple[int, int]]:
    """Maps each partition to (log start offset, end offset). An admin client asks the broker. A leader that was elected
    a moment ago does not know the end before its followers have fetched (OFFSET_NOT_AVAILABLE)."""
    from kafka import OffsetSpec

    if not partitions:
        return {}
    starts, ends = (
        # Whether it is the leader still, kafka-python asks again by itself.
        retrying(client.list_partition_offsets, dict.fromkeys(partitions, each), on="OffsetNotAvailableError")
        for each in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
    )
    return {partition: (starts[partition].offset, ends[partition].offset) for partition in partitions}


def first_broker(admin: Any) -> int:
    """The lowest id of the brokers of a cluster."""
    return min(int(each["broker_id"]) for each in admin.describe_cluster()["brokers"])


def refusal(result: str) -> str | None:
    """Kafka's name of the error and the broker's message, from kafka-python's result of a changed setting; None when it
    was accepted."""
    found = re.match(r"\[Error (\d+)\] (?:\w+: )?(.*)", result, re.DOTALL)
    if found is None:
        return None if result == "OK" else result
    return f"{errors.name(int(found[1]))}: {found[2]}"


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
