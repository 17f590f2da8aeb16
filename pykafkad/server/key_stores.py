"""Java's key stores and trust stores as PEM: PKCS#12, and JKS as Java's keytool wrote it before Java 9.

PKCS#12 is read by the library `cryptography` (the extra `tls`). JKS is read here: a list of entries, a checksum with
the password behind them, and private keys under a stream that SHA-1 makes of the password. Like Java, a store is taken
for what it is, whichever of the two types a setting names."""

from __future__ import annotations

import base64
from collections import namedtuple
from hashlib import sha1
from hmac import compare_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TYPES = ("JKS", "PKCS12")

Store = namedtuple("Store", ("own", "trusted"))
Store.__doc__ = """What a store holds, as PEM: `own` is its first private key and the certificates of that, empty
without a key; `trusted` are certificates of others."""

_JKS_MAGIC = 0xFEEDFEED
_PRIVATE_KEY, _TRUSTED_CERTIFICATE = 1, 2
_CHECKSUM_SALT = b"Mighty Aphrodite"
_ENTRIES_MAX = 10_000
# The object identifier 1.3.6.1.4.1.42.2.17.1.1: a key that a JKS protects.
_PROTECTED = bytes.fromhex("060a2b060104012a02110101")


class KeyStoreError(Exception):
    """A store that cannot be read; `str()` says why."""


def read(data: bytes, password: str | None, key_password: str | None) -> Store:
    """What a store holds. `key_password` None: the key has that of the store; `password` None: only certificates are
    wanted, and nobody checks that they are as they were. Raises KeyStoreError."""
    if data.startswith(b"-----BEGIN"):
        raise KeyStoreError("this is a PEM file, whose type must be given as PEM")
    if data[:4] == _JKS_MAGIC.to_bytes(4, "big"):
        try:
            return _read_jks(data, password, key_password)
        except IndexError:
            raise KeyStoreError("the store ends early") from None
    return _read_pkcs12(data, password)


def _pem(label: str, der: bytes) -> str:
    encoded = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{encoded}-----END {label}-----\n"


# --- JKS --------------------------------------------------------------------------------------------------------------


class _Reader:
    """Reads the fields of a JKS. Raises IndexError at its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise IndexError
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size), "big")

    def certificate(self, version: int) -> str:
        if version == 2:
            # The type: X.509 is the only one that Java writes.
            self.take(self.number(2))
        return _pem("CERTIFICATE", self.take(self.number()))


def _read_jks(data: bytes, password: str | None, key_password: str | None) -> Store:
    if password is not None:
        checksum = sha1(password.encode("utf-16-be") + _CHECKSUM_SALT + data[:-20]).digest()
        if not compare_digest(checksum, data[-20:]):
            raise KeyStoreError("the password does not open the store, or the store is damaged")
    reader = _Reader(data[:-20])
    reader.number()
    version, count = reader.number(), reader.number()
    if version not in (1, 2) or count > _ENTRIES_MAX:
        raise KeyStoreError(f"a JKS of version {version} with {count} entries is not one that Java writes")
    own: list[str] = []
    trusted: list[str] = []
    for _ in range(count):
        tag = reader.number()
        reader.take(reader.number(2))  # its alias
        reader.number(8)  # its date
        if tag == _TRUSTED_CERTIFICATE:
            trusted.append(reader.certificate(version))
        elif tag == _PRIVATE_KEY:
            protected = reader.take(reader.number())
            chain = [reader.certificate(version) for _ in range(min(reader.number(), _ENTRIES_MAX))]
            if not own:
                own = [_pem("PRIVATE KEY", _unprotected(protected, key_password or password or "")), *chain]
        else:
            raise KeyStoreError(f"an entry of the unknown kind {tag}")
    return Store(own, trusted)


def _unprotected(protected: bytes, password: str) -> bytes:
    """The PKCS#8 key in an EncryptedPrivateKeyInfo: a salt, the key under a stream, and a checksum."""
    found = protected.find(_PROTECTED)
    if found < 0:
        raise KeyStoreError("the private key is protected in another way than Java's keytool does in a JKS")
    # Behind the algorithm, with or without its empty parameters, stands one octet string.
    position = found + len(_PROTECTED)
    if protected[position : position + 2] == b"\x05\x00":
        position += 2
    length = protected[position + 1]
    position += 2 + (length & 0x7F if length & 0x80 else 0)
    salt, encrypted, checksum = protected[position : position + 20], protected[position + 20 : -20], protected[-20:]
    secret = password.encode("utf-16-be")
    stream = bytearray()
    block = salt
    while len(stream) < len(encrypted):
        block = sha1(secret + block).digest()
        stream += block
    key = bytes(a ^ b for a, b in zip(encrypted, stream, strict=False))
    if not compare_digest(sha1(secret + key).digest(), checksum):
        raise KeyStoreError("the password does not open the private key")
    return key


# --- PKCS#12 ----------------------------------------------------------------------------------------------------------


def _read_pkcs12(data: bytes, password: str | None) -> Store:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ImportError as error:
        raise KeyStoreError(f"reading PKCS#12 needs cryptography ({error}); pip install 'pykafkad[tls]'") from None
    try:
        store: Any = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyStoreError(f"it is no store that can be read, or its password is another: {error}") from None
    others = [each.certificate.public_bytes(Encoding.PEM).decode() for each in store.additional_certs]
    if store.key is None:
        own = [] if store.cert is None else [store.cert.certificate.public_bytes(Encoding.PEM).decode()]
        return Store([], own + others)
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    if store.cert is None:
        raise KeyStoreError("there is no certificate for its private key")
    return Store([key, store.cert.certificate.public_bytes(Encoding.PEM).decode(), *others], others)
