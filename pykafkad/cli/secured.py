"""A broker that compare, record and replay reach by TLS and with a login, where its client properties say so."""

from __future__ import annotations

import contextlib

from pykafkad.cli import client_properties
from pykafkad.cli.output import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import socket
    import ssl
    from collections.abc import Callable, Iterator

    from pykafkad.cli.login import Login
    from pykafkad.differential.links import Secured


def add_client_config(parser: argparse.ArgumentParser) -> None:
    """The option that names the properties. Those of the environment are for clients, which reach it without."""
    parser.add_argument(
        "--client-config", "--command-config", metavar="FILE",
        help="how to reach the broker by TLS or with a login: a file of client properties such as security.protocol, "
        "sasl.mechanism, sasl.username, sasl.password and ssl.ca.location, or a Java client's",
    )  # fmt: skip


@contextlib.contextmanager
def reached(where: tuple[str, int], path: str | None) -> Iterator[tuple[str, int] | Secured]:
    """The broker with what `path` says of TLS and logins. Raises `Failure` for one that does not let us in."""
    properties = client_properties.read(path)
    protocol = str(properties.get("security_protocol", "PLAINTEXT"))
    if path is None or protocol == "PLAINTEXT":
        yield where
        return
    from pykafkad.cli import client_login, extras, reach
    from pykafkad.cli.differences import bootstrap
    from pykafkad.differential.links import Secured

    rules = None
    if protocol.endswith("SSL"):
        from pykafkad.cli import tls

        rules = tls.context(properties, path)
    if protocol.startswith("SASL") and (sentence := extras.missing("kafka")):
        raise Failure(sentence, 2)
    address = bootstrap(*where)
    with client_login.logging_in(properties) as login_at:
        if reason := reach.why_unreachable(address, rules, login_at):
            raise Failure(f"{address}: {reason}")
        yield Secured(*where, lambda made: _secure(made, where[0], address, rules, login_at))


def _secure(
    made: socket.socket,
    host: str,
    address: str,
    rules: ssl.SSLContext | None,
    login_at: Callable[[str], Login] | None,
) -> socket.socket:
    from pykafkad.cli import login, tls

    if rules is not None:
        made = tls.encrypted(made, host, rules)
    if login_at is not None:
        try:
            login.try_login(made, address, login_at(host))
        except Failure as failure:
            raise ConnectionError(str(failure)) from None
    return made
