"""`pykafkad compare`: each request of a program goes to pykafkad and to a real Kafka, and what differs is told."""

from __future__ import annotations

from pykafkad.cli.differences import broker_address, listen_address, run_program, tell, wait_for_end
from pykafkad.cli.output import Failure, add_json
from pykafkad.cli.secured import add_client_config, reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from pykafkad.differential.links import Secured

SUMMARY = "send each request of a program to pykafkad and to a real Kafka, and tell which answers differ"
HAS_PROGRAM = True
KAFKA, PYKAFKAD = "kafka", "pykafkad"
_INTERNAL = (
    "offsets.topic.num.partitions",
    "transaction.state.log.num.partitions",
    "share.coordinator.state.topic.num.partitions",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad compare`."""
    parser.add_argument(
        "--with", dest="real", required=True, type=broker_address, metavar="HOST:PORT",
        help="the real Kafka: one broker, best one that is fresh",
    )  # fmt: skip
    add_client_config(parser)
    parser.add_argument(
        "--listen", type=listen_address, default=("127.0.0.1", 0), metavar="HOST:PORT",
        help="where clients connect (default: 127.0.0.1 at a free port)",
    )  # fmt: skip
    parser.add_argument(
        "--answer-from", choices=(PYKAFKAD, KAFKA), default=PYKAFKAD,
        help="whose answers the clients get (default: pykafkad's)",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of pykafkad (repeatable)"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Ends with 1 if an answer differs, and else as the program does."""
    with reached(options.real, options.client_config) as real:
        return _compare(options, real)


def _compare(options: argparse.Namespace, real: tuple[str, int] | Secured) -> int:
    from pykafkad.differential.tee import Tee
    from pykafkad.testing import Broker

    try:
        broker: Any = Broker(settings=_settings(options, real), log_level="error")
    except ValueError as problem:
        raise Failure(str(problem), 2) from None
    with broker:
        ours = links_address(broker.bootstrap)
        first, second = (ours, real) if options.answer_from == PYKAFKAD else (real, ours)
        tee = Tee(options.listen, first, second)
        tee.start()
        try:
            ended = run_program(options.program, tee) if options.program else wait_for_end(tee, "compares")
        finally:
            tee.close()
    names = (PYKAFKAD, KAFKA) if options.answer_from == PYKAFKAD else (KAFKA, PYKAFKAD)
    tell(tee.differences, names, tee.requests, tee.different, options.json)
    return 1 if tee.different and not ended.is_stopped else ended.code


def links_address(text: str) -> tuple[str, int]:
    """Host and port."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def _settings(options: argparse.Namespace, real: tuple[str, int] | Secured) -> dict[str, str]:
    """Those of a Kafka, as far as clients see them, with its node id. Raises Failure."""
    found = dict.fromkeys(_INTERNAL, "50")
    # A broker for tests deletes at once.
    found["log.segment.delete.delay.ms"] = "60000"
    found["node.id"] = str(_node_id(real))
    for text in options.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise Failure(f"--set {text}: a setting is NAME=VALUE, such as num.partitions=3", 2)
        found[name] = value
    return found


def _node_id(real: tuple[str, int] | Secured) -> int:
    from pykafkad.differential import links
    from pykafkad.testing.wire_client import OwnWireClient

    client = OwnWireClient(lambda: links.connected(real))
    where = f"{real[0]}:{real[1]}"
    try:
        brokers = client.ask("Metadata", topics=[]).brokers
    except OSError as problem:
        raise Failure(f"--with {where}: no Kafka answers there: {problem.strerror or problem}") from None
    finally:
        client.close()
    if len(brokers) != 1:
        raise Failure(f"--with {where}: this Kafka has {len(brokers)} brokers; requests are compared with one alone")
    node_id: int = brokers[0].node_id
    return node_id
