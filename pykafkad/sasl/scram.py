"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): the client proves that it knows the password.

The password itself is never sent. The broker knows a salt, a number of iterations and two keys for each user
(`Credential`). A user that does not exist gets a salt too, the same each time, and is refused at the end, so that
nobody can find out who exists. Kafka refuses such a user at once.

A delegation token logs in by the same messages: the extension `tokenauth=true` says that the name is a token's id, and
the password is its HMAC in base64. The caller is the owner of the token. An id that does not exist is refused at once,
as in Kafka: ids are random, so nobody can try them.
"""

from __future__ import annotations

from binascii import Error as Base64Error, a2b_base64, b2a_base64
from collections import namedtuple
from hmac import compare_digest, digest

from pykafkad.sasl.step import DONE, GOES_ON, REFUSED, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash function of each mechanism."""

USUAL_ITERATIONS = 4096
"""The iterations of Kafka's own tools, which a user that does not exist gets too."""

Credential = namedtuple("Credential", ("salt", "stored_key", "server_key", "iterations"))
Credential.__doc__ = """What the broker knows of a user's password."""

Token = namedtuple("Token", ("credential", "owner", "expires_ms"))
Token.__doc__ = """A delegation token: the credential of its HMAC, the name of its owner, and when it ends, in
milliseconds since 1970."""

TOKEN_BYTES_MAX = 4 * 1024
"""No client's message is as long; extensions (RFC 5802, section 5.1) would be looked at one by one."""

_SALT_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SALT_BITS = 130
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_WRONG = Step(REFUSED)
_OTHER_ID = Step(
    REFUSED, problem="Authentication failed: Client requested an authorization id that is different from username"
)


class Scram:
    """One exchange of two tokens. `user` is the name of who has logged in, `is_by_token` whether by a delegation token,
    and `expires_ms` when that ends. A password does not expire (None)."""

    __slots__ = (
        "_bare",
        "_credential",
        "_find",
        "_find_token",
        "_gs2_header",
        "_hash",
        "_is_known",
        "_nonce",
        "_secret",
        "_server_first",
        "expires_ms",
        "is_by_token",
        "may_block",
        "user",
    )

    def __init__(
        self,
        mechanism: str,
        find: Callable[[str], Credential | None],
        server_nonce: str,
        secret: bytes,
        find_token: Callable[[str], Token | None] | None = None,
        *,
        may_block: bool = False,
    ) -> None:
        """`find` gives the credential of a user. `server_nonce` is printable text without a comma that nobody can
        guess. The salts of users that do not exist are made of `secret`. `find_token` gives the delegation token of an
        id; None where there are no tokens. `may_block` says whether `find` may wait for others."""
        self.may_block = may_block
        self._hash = HASHES[mechanism]
        self._find = find
        self._find_token = find_token
        self._nonce = server_nonce
        self._secret = secret
        self._credential: Credential | None = None
        self._is_known = False
        self._gs2_header = self._bare = self._server_first = ""
        self.user = ""
        self.is_by_token = False
        self.expires_ms: int | None = None

    def step(self, token: bytes) -> Step:
        """Takes the first or the final message of the client."""
        if len(token) > TOKEN_BYTES_MAX:
            return _WRONG
        try:
            text = token.decode("ascii")
        except UnicodeDecodeError:
            return _WRONG
        if "\0" in text:
            return _WRONG
        return self._first(text) if self._credential is None else self._final(text)

    def _first(self, text: str) -> Step:
        """`n,[a=authorization id],[m=reserved,]n=name,r=nonce[,extensions]`."""
        fields = text.split(",")
        if len(fields) < 4 or fields[0] != "n":
            return _WRONG
        authorization_id = fields[1]
        if authorization_id and not (authorization_id[:2] == "a=" and _is_sasl_name(authorization_id[2:])):
            return _WRONG
        bare = fields[2:]
        if bare[0][:2] == "m=":
            # A mandatory extension that nobody knows (RFC 5802, section 5.1).
            return _WRONG
        name, nonce = bare[0], bare[1]
        if not (name[:2] == "n=" and _is_sasl_name(name[2:]) and nonce[:2] == "r=" and _is_printable(nonce[2:])):
            return _WRONG
        extensions = bare[2:]
        if not all(_is_extension(each) for each in extensions):
            return _WRONG
        user = name[2:].replace("=2C", ",").replace("=3D", "=")
        self.is_by_token = _asks_for_token(extensions)
        token = self._find_token(user) if self.is_by_token and self._find_token is not None else None
        if self.is_by_token and token is None:
            return _WRONG
        if authorization_id not in ("", f"a={user}"):
            # Also if there is no such user: the answer must not tell.
            return _OTHER_ID
        self.user = user if token is None else token.owner
        self._gs2_header = f"n,{authorization_id},"
        self._bare = ",".join(bare)
        if token is None:
            credential = self._find(user)
        else:
            credential, self.expires_ms = token.credential, token.expires_ms
        self._is_known = credential is not None
        self._credential = credential or pretended(self._hash, user, self._secret)
        self._nonce = nonce[2:] + self._nonce
        self._server_first = f"r={self._nonce},s={_base64(self._credential.salt)},i={self._credential.iterations}"
        return Step(GOES_ON, self._server_first.encode())

    def _final(self, text: str) -> Step:
        """`c=channel binding,r=nonce[,extensions],p=proof`."""
        import hashlib

        credential = self._credential
        assert credential is not None
        without_proof, _, proof_text = text.rpartition(",p=")
        fields = without_proof.split(",")
        if len(fields) < 2 or not all(_is_extension(each) for each in fields[2:]):
            return _WRONG
        binding, proof = _from_base64(fields[0][2:]), _from_base64(proof_text)
        if fields[0][:2] != "c=" or binding != self._gs2_header.encode() or fields[1] != f"r={self._nonce}":
            return _WRONG
        said = f"{self._bare},{self._server_first},{without_proof}".encode()
        signature = digest(credential.stored_key, said, self._hash)
        if proof is None or len(proof) != len(signature):
            return _WRONG
        client_key = (int.from_bytes(signature, "big") ^ int.from_bytes(proof, "big")).to_bytes(len(proof), "big")
        is_right = compare_digest(hashlib.new(self._hash, client_key).digest(), credential.stored_key)
        if not (is_right and self._is_known):
            return _WRONG
        return Step(DONE, f"v={_base64(digest(credential.server_key, said, self._hash))}".encode())


def credential(mechanism: str, password: str, salt: bytes, iterations: int) -> Credential:
    """The credential for a password. It takes milliseconds on purpose. The password is taken as it is, as Kafka does,
    without the preparation of RFC 4013."""
    import hashlib

    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode("utf-8", "surrogateescape"), salt, iterations)
    stored_key = hashlib.new(name, digest(salted, b"Client Key", name)).digest()
    return Credential(salt, stored_key, digest(salted, b"Server Key", name), iterations)


def pretended(hash_name: str, user: str, secret: bytes) -> Credential:
    """What a user that does not exist has: the same each time, and not to be told from what Kafka's tools make."""
    made = digest(secret, f"{hash_name} {user}".encode(), "sha512")
    key = digest(secret, made, hash_name)
    return Credential(usual_salt(made), key, key, USUAL_ITERATIONS)


def usual_salt(random_bytes: bytes) -> bytes:
    """A salt in the form of those that Kafka's tools make, from at least 17 random bytes."""
    number = int.from_bytes(random_bytes, "big") >> (8 * len(random_bytes) - _SALT_BITS)
    digits = []
    while number:
        number, digit = divmod(number, len(_SALT_DIGITS))
        digits.append(_SALT_DIGITS[digit])
    return "".join(digits).encode()


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _from_base64(text: str) -> bytes | None:
    """The bytes; None if the text is not base64 with its padding."""
    try:
        return a2b_base64(text, strict_mode=True)
    except Base64Error:
        return None


def _is_sasl_name(text: str) -> bool:
    """Whether a name has `=` only as `=2C` (a comma) and `=3D` (itself)."""
    return bool(text) and "=" not in text.replace("=2C", "").replace("=3D", "")


def _is_printable(text: str) -> bool:
    return bool(text) and text.isprintable() and " " not in text


def _is_extension(text: str) -> bool:
    name, _, value = text.partition("=")
    return bool(name and value) and _LETTERS.issuperset(name)


def _asks_for_token(extensions: list[str]) -> bool:
    """Whether the last of the extensions `tokenauth` is true, in the letters of Java's parseBoolean."""
    return dict(each.split("=", 1) for each in extensions).get("tokenauth", "").lower() == "true"
