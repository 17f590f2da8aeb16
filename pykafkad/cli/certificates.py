"""An authority and its certificates for `pykafkad serve --tls`, made on the fly.

Three PEM files: `tls-ca.pem` is what clients trust, `tls-broker.pem` is the broker's key with its certificate, and
`tls-client.pem` a client's, whose principal is `User:CN=client`. They are kept and used again while they are valid, so
that what clients trust outlives a restart. The authority's own key is kept nowhere."""

from __future__ import annotations

import os

from pykafkad.cli import extras
from pykafkad.cli.private_files import for_its_owner
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.server.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.server.node_links import NodeIdentity

CA_FILE = "tls-ca.pem"
BROKER_FILE = "tls-broker.pem"
CLIENT_FILE = "tls-client.pem"

_DAYS = 365
_LEFT_DAYS = 30
"""Certificates that end sooner are made anew."""

_NOTHING_THERE = "there is no authority"

log_lines = logger("server")


def provide(folder: str, hosts: Iterable[str]) -> dict[str, str]:
    """The settings that make a broker use the certificates in `folder`, which are made if they are not there. `hosts`
    are the names and addresses by which clients reach the broker, beside those of the machine. (The machine's own name
    may change: that of a container does with each.) Raises ConfigError where the library for it is missing, and
    StartFailure where nothing can be written."""
    if sentence := extras.missing("cryptography.x509"):
        raise ConfigError(f"--tls: {sentence}")
    required = {"localhost", "127.0.0.1", "::1", *(host for host in hosts if host)}
    try:
        if problem := _problem(folder, required):
            if problem != _NOTHING_THERE:
                log_lines.warning("authority-made-anew", reason=problem, consequence="clients need the new " + CA_FILE)
            os.makedirs(folder, exist_ok=True)
            _make(folder, sorted({os.uname().nodename, *required}))
    except OSError as error:
        raise StartFailure(f"--tls: no certificates in {folder}: {error.strerror}") from None
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": os.path.join(folder, BROKER_FILE),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": os.path.join(folder, CA_FILE),
    }


def for_nodes(option: str) -> NodeIdentity:
    """What the nodes of one command show to each other. Raises ConfigError, for the `option` that needs it, where the
    library is missing."""
    from secrets import token_hex

    from pykafkad.server.node_links import NodeIdentity

    if sentence := extras.missing("cryptography.x509"):
        raise ConfigError(f"{option}: the nodes reach each other by TLS: {sentence}")
    from cryptography import x509

    authority_key, authority = _certificate("nodes of pykafkad", None, _authority_extensions())
    names = x509.SubjectAlternativeName([_general_name("127.0.0.1"), _general_name("localhost")])
    common_name = f"pykafkad-node-{token_hex(16)}"
    key, certificate = _certificate(common_name, (authority_key, authority), [(names, False)])
    return NodeIdentity(
        _key_pem(key).decode(), _pem(certificate).decode(), _pem(authority).decode(), f"User:CN={common_name}"
    )


def _problem(folder: str, hosts: set[str]) -> str | None:
    """Why the files will not do; None if all are there, valid for a while, and for these hosts."""
    import datetime

    from cryptography import x509

    latest = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=_LEFT_DAYS)
    for name in (CA_FILE, BROKER_FILE, CLIENT_FILE):
        try:
            with open(os.path.join(folder, name), "rb") as file:
                certificate = x509.load_pem_x509_certificate(file.read())
        except FileNotFoundError:
            return _NOTHING_THERE if name == CA_FILE else f"{name} is gone"
        except ValueError as error:
            raise ConfigError(f"--tls: {os.path.join(folder, name)} is no certificate: {error}; remove it") from None
        if certificate.not_valid_after_utc < latest:
            return f"{name} ends within {_LEFT_DAYS} days"
        if name == BROKER_FILE:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            known = {*names.get_values_for_type(x509.DNSName)} | {
                str(address) for address in names.get_values_for_type(x509.IPAddress)
            }
            if missing := sorted(hosts - known):
                return f"{name} is not for {', '.join(missing)}"
    return None


def _make(folder: str, hosts: list[str]) -> None:
    from cryptography import x509

    authority_key, authority = _certificate("pykafkad authority of tests", None, _authority_extensions())
    names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    issuer = (authority_key, authority)
    broker_key, broker = _certificate("localhost", issuer, [(names, False)])
    client_key, client = _certificate("client", issuer, [])
    _write(folder, CLIENT_FILE, _pem(client) + _key_pem(client_key), private=True)
    _write(folder, BROKER_FILE, _pem(broker) + _key_pem(broker_key), private=True)
    _write(folder, CA_FILE, _pem(authority), private=False)


def _authority_extensions() -> list[tuple[Any, bool]]:
    from cryptography import x509

    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    return [(x509.BasicConstraints(ca=True, path_length=0), True), (usage, True)]


def _certificate(common_name: str, issuer: Any, extensions: list[tuple[Any, bool]]) -> tuple[Any, Any]:
    """A key and its certificate, signed by `issuer` (key and certificate), or by itself."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    now = datetime.datetime.now(datetime.UTC)
    signing_key, signer = issuer or (key, None)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name if signer is None else signer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of containers differ a little.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if signer is not None:
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key())
        builder = builder.add_extension(identifier, critical=False)
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, critical=is_critical)
    return key, builder.sign(signing_key, hashes.SHA256())


def _general_name(host: str) -> Any:
    import ipaddress

    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return bytes(certificate.public_bytes(Encoding.PEM))


def _key_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _write(folder: str, name: str, data: bytes, *, private: bool) -> None:
    with open(os.path.join(folder, name), "wb", opener=for_its_owner if private else None) as file:
        if private:
            # A file that was there may have been for everybody.
            os.fchmod(file.fileno(), 0o600)
        file.write(data)
