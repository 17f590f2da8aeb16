"""Logging in at another node by SASL: the client's side of PLAIN and SCRAM.

An exchange has no sockets: `step` takes what the server said and gives what to say next. Kafka's client accepts no
fewer than 4096 iterations of SCRAM, so that nobody can have it tell a password for cheap; here there are no more than
`ITERATIONS_MAX` either, so that nobody can make it compute for ever."""

from __future__ import annotations

from binascii import Error as Base64Error, a2b_base64, b2a_base64
from hmac import compare_digest, digest

from pykafkad.errors import ConfigError
from pykafkad.sasl.listener_settings import ListenerSettings
from pykafkad.sasl.offer import LOGIN_MODULES, PLAIN
from pykafkad.sasl.scram import HASHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from pykafkad.config import Settings

    class Exchange(Protocol):
        """One login."""

        is_over: bool
        """Whether everything is said, and the server has shown what it had to."""

        def step(self, token: bytes | None) -> bytes:
            """Take the server's token (None before the first of ours) and give the next one, empty if there is none.
            It may compute for milliseconds. Raises WrongServer."""


ITERATIONS_MIN = 4096
ITERATIONS_MAX = 1_000_000
MECHANISMS = (PLAIN, *HASHES)
_NONCE_BYTES = 24


class WrongServer(Exception):
    """What a server says of itself is not right."""


class Credentials:
    """What a node logs in with, by one mechanism."""

    __slots__ = ("_random_bytes", "_salted", "mechanism", "password", "user")

    def __init__(self, mechanism: str, user: str, password: str, random_bytes: Callable[[int], bytes]) -> None:
        """`random_bytes(n)` gives bytes that nobody can guess."""
        self.mechanism = mechanism
        self.user = user
        self.password = password
        self._random_bytes = random_bytes
        self._salted: tuple[bytes, int, bytes] | None = None

    def exchange(self) -> Exchange:
        """A login that begins."""
        if self.mechanism == PLAIN:
            return PlainClient(self.user, self.password)
        nonce = b2a_base64(self._random_bytes(_NONCE_BYTES), newline=False).decode()
        return ScramClient(self, nonce)

    def salted_password(self, salt: bytes, iterations: int) -> bytes:
        """What SCRAM makes of the password. The last one is kept: nodes log in again and again with the same salt."""
        known = self._salted
        if known is None or known[:2] != (salt, iterations):
            import hashlib

            name = HASHES[self.mechanism]
            salted = hashlib.pbkdf2_hmac(name, self.password.encode("utf-8", "surrogateescape"), salt, iterations)
            known = self._salted = (salt, iterations, salted)
        return known[2]


class PlainClient:
    """Name and password in one token (RFC 4616)."""

    __slots__ = ("_token", "is_over")

    def __init__(self, user: str, password: str) -> None:
        self._token = f"\0{user}\0{password}".encode("utf-8", "surrogateescape")
        self.is_over = False

    def step(self, token: bytes | None) -> bytes:
        """See `Exchange`."""
        if token is None:
            return self._token
        self.is_over = True
        return b""


class ScramClient:
    """SCRAM (RFC 5802): the password is not told, and the server proves that it knows it too."""

    __slots__ = ("_bare", "_credentials", "_hash", "_nonce", "_signature", "is_over")

    def __init__(self, credentials: Credentials, nonce: str) -> None:
        self._credentials = credentials
        self._hash = HASHES[credentials.mechanism]
        self._nonce = nonce
        name = credentials.user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={nonce}"
        self._signature: bytes | None = None
        self.is_over = False

    def step(self, token: bytes | None) -> bytes:
        """See `Exchange`."""
        if token is None:
            return f"n,,{self._bare}".encode()
        text = token.decode("utf-8", "replace")
        if self._signature is None:
            return self._prove(text)
        said = dict(each.split("=", 1) for each in text.split(",") if "=" in each)
        if "e" in said:
            raise WrongServer(f"it says {said['e']!r}")
        if not compare_digest(_bytes(said.get("v", "")), self._signature):
            raise WrongServer("it does not know the password")
        self.is_over = True
        return b""

    def _prove(self, server_first: str) -> bytes:
        import hashlib

        fields = server_first.split(",")
        if [each[:2] for each in fields[:3]] != ["r=", "s=", "i="]:
            raise WrongServer("its first message of SCRAM has no nonce, salt and iterations")
        nonce, salt, iterations_text = (each[2:] for each in fields[:3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise WrongServer("its nonce of SCRAM does not go on from ours")
        iterations = int(iterations_text) if iterations_text.isdecimal() and len(iterations_text) < 10 else 0
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise WrongServer(
                f"it asks for {iterations_text[:20]} iterations of SCRAM; {ITERATIONS_MIN} to {ITERATIONS_MAX} may be"
            )
        name = self._hash
        salted = self._credentials.salted_password(_bytes(salt), iterations)
        without_proof = f"c=biws,r={nonce}"
        said = f"{self._bare},{server_first},{without_proof}".encode()
        client_key = digest(salted, b"Client Key", name)
        stored_key = hashlib.new(name, client_key).digest()
        signature = digest(stored_key, said, name)
        proof = (int.from_bytes(client_key, "big") ^ int.from_bytes(signature, "big")).to_bytes(len(signature), "big")
        self._signature = digest(digest(salted, b"Server Key", name), said, name)
        return f"{without_proof},p={b2a_base64(proof, newline=False).decode()}".encode()


def _bytes(text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except (Base64Error, ValueError):
        raise WrongServer("its message of SCRAM is not base64") from None


def of_settings(
    settings: Settings, listener: str, mechanism: str, setting: str, random_bytes: Callable[[int], bytes]
) -> Credentials:
    """What a node logs in with at the listener of that name of others, by the mechanism that `setting` names. As in
    Kafka the login module of the listener says who. Raises ConfigError."""
    if mechanism not in MECHANISMS:
        raise ConfigError(f"{setting}: {mechanism}: nodes log in at each other by {', '.join(MECHANISMS)}")
    read = ListenerSettings(settings, listener)
    name, _ = read.given("sasl.jaas.config", mechanism)
    options = read.login_options(mechanism, LOGIN_MODULES[mechanism])
    missing = [each for each in ("username", "password") if not (options or {}).get(each)]
    if options is None or missing:
        raise ConfigError(
            f"{name}: this node logs in at others by {mechanism}, and has no {' and no '.join(missing)}; write "
            f'{LOGIN_MODULES[mechanism]} required username="…" password="…";'
        )
    return Credentials(mechanism, options["username"], options["password"], random_bytes)
