"""An authority, and certificates that it signs, made for one run of the tests."""

from __future__ import annotations

import datetime
import functools
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PASSWORD = "open sesame"


class Certificate:
    """A key and its certificate. `pem` is the certificate, `key_pem` the key, `locked_key_pem` the key under
    `PASSWORD`."""

    def __init__(self, names, issuer=None, *, is_authority=False, hosts=("localhost",)):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(oid, text) for oid, text in names])
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(self.name if issuer is None else issuer.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if is_authority:
            usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
            builder = builder.add_extension(usage, critical=True)
        else:
            names = [*map(x509.DNSName, hosts), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signer = self if issuer is None else issuer
        self.certificate = builder.sign(signer.key, hashes.SHA256())
        self.der = self.certificate.public_bytes(serialization.Encoding.DER)
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()
        self.key_pem = self._key(serialization.NoEncryption())

    @property
    def locked_key_pem(self):
        return self._key(serialization.BestAvailableEncryption(PASSWORD.encode()))

    def _key(self, encryption):
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        ).decode()


def authority(name="Tests"):
    """The authority of that name."""
    return _authority(name)


@functools.cache
def _authority(name):
    return Certificate([(NameOID.COMMON_NAME, f"{name} authority")], is_authority=True)


@functools.cache
def server(authority_name="Tests"):
    """A broker on this machine."""
    return Certificate([(NameOID.COMMON_NAME, "localhost")], authority(authority_name))


def renewed(name="localhost", *, authority_name="Tests", hosts=("localhost",)):
    """A new certificate for the broker, with a new key."""
    return Certificate([(NameOID.COMMON_NAME, name)], authority(authority_name), hosts=hosts)


@functools.cache
def client(name="alice", authority_name="Tests"):
    """A client of that name."""
    names = [
        (NameOID.COUNTRY_NAME, "FR"),
        (NameOID.ORGANIZATION_NAME, "Wonderland"),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, "Tea"),
        (NameOID.COMMON_NAME, name),
    ]
    return Certificate(names, authority(authority_name))


def settings(**more):
    """The settings of a listener with the server's certificate, by Kafka's names with `_` for each dot."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": server().key_pem,
        "ssl.keystore.certificate.chain": server().pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority().pem,
        **{name.replace("_", "."): text for name, text in more.items()},
    }
