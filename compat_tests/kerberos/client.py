"""A client of GSSAPI, token by token; run as a program, since the library reads its environment once: the arguments are
a bootstrap address, a keytab, a principal and a word for what it does; it prints what it was told as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gssapi

from compat_tests.kerberos.kdc import SERVICE
from compat_tests.login_talk import Talk
from compat_tests.scenarios.exchange import CLOSED


class Listener:
    """Where it logs in."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap


class Client:
    """Tickets of one principal."""

    def __init__(self, listener: Listener, keytab: str, principal: str) -> None:
        self.listener = listener
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        self.credentials = gssapi.Credentials(
            name=name, usage="initiate", store={"client_keytab": keytab, "ccache": f"MEMORY:{principal}"}
        )

    def context(self, *, mutual: bool = True) -> gssapi.SecurityContext:
        """A new exchange."""
        flag = gssapi.RequirementFlag
        # Without any flag the library's usual ones would count.
        flags = [flag.mutual_authentication if mutual else flag.integrity]
        target = gssapi.Name(SERVICE, gssapi.NameType.kerberos_principal)
        return gssapi.SecurityContext(
            name=target, creds=self.credentials, usage="initiate", flags=flags, mech=gssapi.MechType.kerberos
        )


def _send(talk: Talk, token: bytes, handshake: int, version: int) -> bytes | None:
    """Send a token; the broker's, without its text among the notes, as it differs each time."""
    if handshake == 0:
        answer = talk.bare(token)
        talk.told[-1] = f"bare: {'nothing' if answer is None else 'a token' if answer else 'empty'}"
        return answer
    answer = talk.ask("SaslAuthenticate", version, auth_bytes=token)
    if answer == CLOSED:
        return None
    data = bytes(answer.auth_bytes)
    talk.told[-1] = (
        f"SaslAuthenticate: {answer.error_code} {answer.error_message!r} {bool(data)} "
        f"{round(answer.session_lifetime_ms / 10_000)}"
    )
    return None if answer.error_code else data


def _log_in(
    client: Client,
    title: str,
    choose: Callable[[bytes], bytes | None] = lambda offered: offered[:4],
    *,
    mutual: bool = True,
    handshake: int = 1,
    version: int = 2,
    change: Callable[[bytes], bytes] = lambda token: token,
    is_wrapped: bool = True,
    talk: Talk | None = None,
) -> Talk:
    """A whole login: `change` is done to its first token, and `choose` makes the answer to the layers."""
    talk = talk or Talk(client.listener, title)
    talk.ask("SaslHandshake", handshake, mechanism="GSSAPI")
    context = client.context(mutual=mutual)
    answer = _send(talk, change(context.step() or b""), handshake, version)
    if answer is not None and mutual:
        try:
            context.step(answer)
        except gssapi.exceptions.GSSError as error:
            talk.told.append(f"the client: {type(error).__name__}")
            answer = None
        else:
            answer = _send(talk, b"", handshake, version)
    if answer is not None:
        offered = context.unwrap(answer).message
        talk.told.append(f"offered {offered.hex()}")
        choice = choose(offered)
        if choice is not None:
            last = context.wrap(choice, False).message if is_wrapped else choice
            # Bare, the last token has no answer.
            if handshake == 0:
                talk._connection.socket.sendall(len(last).to_bytes(4, "big") + last)
            else:
                _send(talk, last, handshake, version)
    return talk


def _rest(talk: Talk) -> Talk:
    """Whether it may do anything now."""
    talk.ask("Metadata", 12, topics=[])
    return talk


def logins(client: Client) -> Iterator[Talk]:
    """Each way to be right and to be wrong."""
    for handshake, version in ((1, 2), (1, 0), (1, 1), (0, 0)):
        for mutual in (True, False):
            title = f"right {handshake} {version} {mutual}"
            yield _rest(_log_in(client, title, handshake=handshake, version=version, mutual=mutual))
    for title, choose in (
        ("as another", lambda offered: offered[:4] + b"root"),
        ("no text", lambda offered: offered[:4] + b"\xff\xfe"),
        ("all layers", lambda offered: b"\7" + offered[1:4]),
        ("integrity", lambda offered: b"\2" + offered[1:4]),
        ("privacy", lambda offered: b"\4" + offered[1:4]),
        ("no layer at all", lambda offered: b"\0" + offered[1:4]),
        ("nothing", lambda _: b""),
        ("one byte", lambda _: b"\1"),
        ("three bytes", lambda _: b"\1\1\1"),
        ("a wrong byte", lambda _: b"\2"),
        ("no size", lambda _: b"\1\0\0\0"),
        ("the largest size", lambda _: b"\1\xff\xff\xff"),
    ):
        yield _rest(_log_in(client, title, choose))
    yield _rest(_log_in(client, "not wrapped", is_wrapped=False))
    yield _rest(_log_in(client, "not wrapped and empty", lambda _: b"", is_wrapped=False))
    for title, change in (
        ("an empty token", lambda _: b""),
        ("a cut token", lambda token: token[:-1]),
        ("half a token", lambda token: token[: len(token) // 2]),
        ("another byte", lambda token: token[:-9] + bytes([token[-9] ^ 1]) + token[-8:]),
        ("nonsense", lambda _: b"nonsense"),
        ("zeros", lambda _: bytes(100)),
    ):
        yield _rest(_log_in(client, title, change=change))
    talk = Talk(client.listener, "a token after the first")
    talk.ask("SaslHandshake", 1, mechanism="GSSAPI")
    first = client.context().step()
    _send(talk, first, 1, 2)
    _send(talk, first, 1, 2)
    yield _rest(talk)
    talk = Talk(client.listener, "a replay")
    talk.ask("SaslHandshake", 1, mechanism="GSSAPI")
    _send(talk, first, 1, 2)
    yield _rest(talk)


def renewals(client: Client) -> Iterator[Talk]:
    """A second login on the same connection."""
    talk = _log_in(client, "again")
    yield _rest(_log_in(client, "", talk=_rest(talk)))


def names(client: Client) -> Iterator[Talk]:
    """One login, and what it may do: the name decides."""
    talk = _log_in(client, "named")
    answer: Any = talk.ask("DescribeCluster", 1, include_cluster_authorized_operations=True)
    talk.told[-1] = CLOSED if answer == CLOSED else f"{answer.cluster_authorized_operations}"
    yield talk


WAYS = {way.__name__: way for way in (logins, renewals, names)}


def main() -> None:
    """Print the notes."""
    bootstrap, keytab, principal, way = sys.argv[1:]
    client = Client(Listener(bootstrap), keytab, principal)
    print(json.dumps([talk.close() for talk in WAYS[way](client)]))


if __name__ == "__main__":
    main()
