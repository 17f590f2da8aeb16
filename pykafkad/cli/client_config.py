"""`pykafkad client-config`: prints the lines that lead a client to a broker, to paste into a file or a program."""

from __future__ import annotations

import json
import os

from pykafkad.cli import client_options
from pykafkad.cli.client_options import Access, Trust
from pykafkad.cli.output import Failure
from pykafkad.sasl.offer import WITH_PASSWORD

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

SUMMARY = "print the lines that lead a client to a broker: addresses, TLS and a login"
CLIENTS = ("java", "librdkafka", "kafka-python", "aiokafka", "kafkajs", "franz-go", "spark")
_DEFAULT = "localhost:9092"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad client-config`."""
    parser.add_argument(
        "--for", dest="client", required=True, choices=CLIENTS, help="the client that the lines are for"
    )
    parser.add_argument(
        "-b", "--bootstrap", "--bootstrap-server", metavar="HOST:PORT", default=None,
        help=f"the broker's address (default: the variable PYKAFKAD_BOOTSTRAP, else {_DEFAULT})",
    )  # fmt: skip
    parser.add_argument("--tls", metavar="FILE", help="encrypt, and trust this authority, such as shop/tls-ca.pem")
    parser.add_argument("--user", metavar="NAME", help="log in as this user")
    parser.add_argument("--password", metavar="TEXT", help="with this password")
    parser.add_argument(
        "--mechanism",
        type=str.upper,
        choices=WITH_PASSWORD,
        default="SCRAM-SHA-512",
        help="by this SASL mechanism (default: SCRAM-SHA-512)",
    )


def run(options: argparse.Namespace) -> int:
    """Prints the lines."""
    if (options.user is None) != (options.password is None):
        raise Failure("--user and --password go together", 2)
    for name in ("bootstrap", "tls", "user", "password"):
        if any(not sign.isprintable() for sign in getattr(options, name) or ""):
            raise Failure(f"--{name}: must be printable", 2)
    mechanism = None if options.user is None else options.mechanism
    access = Access(options.tls, options.user, options.password, mechanism)
    bootstrap = options.bootstrap or os.environ.get("PYKAFKAD_BOOTSTRAP") or _DEFAULT
    for line in lines(options.client, bootstrap, access):
        print(line)
    return 0


def lines(client: str, bootstrap: str, access: Access) -> Iterator[str]:
    """The lines for one of `CLIENTS`."""
    if client == "franz-go":
        yield from _franz_go(bootstrap, access)
        return
    found = client_options.of(client, access)
    if client in ("java", "librdkafka"):
        escape = _property if client == "java" else str
        for name, value in {"bootstrap.servers": bootstrap, **found}.items():
            yield f"{name}={escape(str(value))}"
    elif client == "spark":
        for name, value in {"kafka.bootstrap.servers": bootstrap, **found}.items():
            yield f".option({_text(name)}, {_text(value)})"
    elif client == "kafkajs":
        yield f"brokers: [{', '.join(map(_text, bootstrap.split(',')))}],"
        for name, value in found.items():
            if isinstance(value, Trust):
                value = f'{{ ca: [require("fs").readFileSync({_text(value.ca_file)}, "utf-8")] }}'
            elif isinstance(value, dict):
                value = "{ " + ", ".join(f"{key}: {_text(each)}" for key, each in value.items()) + " }"
            yield f"{name}: {value},"
    else:
        for name, value in {"bootstrap_servers": bootstrap, **found}.items():
            if isinstance(value, Trust):
                yield f"{name}=ssl.create_default_context(cafile={_text(value.ca_file)}),  # import ssl"
            else:
                yield f"{name}={_text(value)},"


def _franz_go(bootstrap: str, access: Access) -> Iterator[str]:
    """Options of kgo.NewClient; what TLS and a login need besides stands in comments."""
    yield f"kgo.SeedBrokers({', '.join(map(_text, bootstrap.split(',')))}),"
    if access.ca_file is not None:
        yield "// authority := x509.NewCertPool()"
        yield f"// pem, err := os.ReadFile({_text(access.ca_file)})"
        yield "// authority.AppendCertsFromPEM(pem)"
        yield "kgo.DialTLSConfig(&tls.Config{RootCAs: authority}),"
    if access.user is not None:
        package = "plain" if access.mechanism == "PLAIN" else "scram"
        method = {"SCRAM-SHA-256": "AsSha256Mechanism", "SCRAM-SHA-512": "AsSha512Mechanism"}.get(
            access.mechanism, "AsMechanism"
        )
        yield f"// import github.com/twmb/franz-go/pkg/sasl/{package}"
        yield (f"kgo.SASL({package}.Auth{{User: {_text(access.user)}, Pass: {_text(access.password)}}}.{method}()),")


def _text(value: object) -> str:
    """A text in quotes, as Python, JavaScript, Go and Scala write it."""
    return json.dumps(value, ensure_ascii=False)


def _property(value: str) -> str:
    """A value as Java's properties files have it, in ASCII."""
    escaped = value.replace("\\", "\\\\")
    return "".join(each if each.isascii() else _unicode(each) for each in escaped)


def _unicode(sign: str) -> str:
    data = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[index : index + 2].hex()}" for index in range(0, len(data), 2))
