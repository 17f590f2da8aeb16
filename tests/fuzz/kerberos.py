"""Fuzz targets of logins by Kerberos, with a library that is none, and of the issuer of tokens for tests."""

from __future__ import annotations

import io
import random
from base64 import b64encode
from functools import cache
from typing import Any
from urllib.parse import urlencode

from pykafkad.issuer.application import FORM, Application
from pykafkad.issuer.tokens import Issuer
from pykafkad.sasl.kerberos import NO_LAYER, OFFERED, Gssapi
from pykafkad.sasl.kerberos_names import ShortNamer
from pykafkad.sasl.step import DONE, GOES_ON
from tests.fuzz.target import Finding, Target
from tests.sasl.kerberos_fake import WRAPPED, FakeContext

END = b"\xfe"
"""Between the tokens of an input."""

_NAMER = ShortNamer(["RULE:[2:$1-$2](billing-.*)s/-.*/-service/U", "DEFAULT"], "REALM")


def kerberos_example(draw: random.Random) -> bytes:
    """The tokens of a login."""
    ticket = draw.choice((b"ticket:alice@REALM", b"ticket:billing/host@OTHER", b"ticket:a/b/c@REALM", b"more"))
    return END.join((ticket, b"", WRAPPED + OFFERED + draw.choice((b"", b"root"))))


def check_kerberos(data: bytes) -> bool:
    """Only a ticket and a choice of no layer let anybody in, by a name that is simple."""
    exchange = Gssapi(FakeContext, lambda name: _NAMER.name(name))
    tokens = data.split(END)
    for token in tokens:
        try:
            step = exchange.step(token)
        except UnicodeDecodeError:
            # Of the library that is none.
            return False
        if step.outcome == DONE:
            choice = token.removeprefix(WRAPPED)
            if not (
                choice[0] & NO_LAYER
                and len(choice) >= len(OFFERED)
                and any(each.startswith(b"ticket") for each in tokens)
            ):
                raise Finding(f"let in as {exchange.user}")
            if exchange.user is not None and "@" in exchange.user and b"@" not in tokens[0].partition(b":")[2]:
                raise Finding(f"a name that is not simple: {exchange.user}")
            return True
        if step.outcome != GOES_ON:
            return False
    return False


@cache
def _application() -> Application:
    def failed(error: Exception) -> None:
        raise Finding(f"a bug: {error!r}")

    return Application(Issuer("http://issuer", {"alice": "alice-secret"}, lambda: 0, bytes), failed)


def issuer_example(draw: random.Random) -> bytes:
    """A header or none, and a form."""
    header = f"Basic {b64encode(b'alice:alice-secret').decode()}"
    form = {"grant_type": "client_credentials", **draw.choice(({}, {"scope": "a b"}))}
    if draw.random() < 0.5:
        header, form = "", {**form, "client_id": "alice", "client_secret": "alice-secret"}
    return header.encode() + END + urlencode(form).encode()


def check_issuer(data: bytes) -> bool:
    """Only the right secret gets a token."""
    header, _, form = data.partition(END)
    environment: dict[str, Any] = {
        "REQUEST_METHOD": "POST", "PATH_INFO": "/token", "CONTENT_TYPE": FORM, "wsgi.input": io.BytesIO(form),
    }  # fmt: skip
    if header:
        environment["HTTP_AUTHORIZATION"] = header.decode("latin-1")
    told: list[str] = []
    body = b"".join(_application()(environment, lambda status, headers: told.append(status)))
    if not told[0].startswith("200"):
        if b"access_token" in body:
            raise Finding("a token with an error")
        return False
    if b64encode(b"alice:alice-secret") not in header and b"secret" not in form.lower() + header.lower():
        # A secret that is encoded otherwise is looked at in the unit tests.
        if b"%" not in form and not header:
            raise Finding("a token without a secret")
    return True


TARGETS = (
    Target("kerberos", 15, kerberos_example, check_kerberos),
    Target("issuer", 5, issuer_example, check_issuer),
)
