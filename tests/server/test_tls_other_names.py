"""A listener with certificates for several names: which one a client is shown, and which clients each accepts."""

import ssl

import pytest

from pykafkad.config import Settings
from pykafkad.errors import ConfigError
from pykafkad.server import tls_settings
from pykafkad.server.listeners import Listener
from pykafkad.server.tls_renewal import TlsRenewal
from tests import certificates
from tests.server.tls_client import client_context

OWN, OTHER, BY_STAR = "c.org", "b.org", "x.example.com"
NAMES = pytest.mark.parametrize("name", [OWN, OTHER, BY_STAR])
VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
TRUST = "listener.name.tls.ssl.truststore.certificates"


class NoLogs:
    """Nothing is to be wrong here."""

    def info(self, *_, **fields):
        pass

    def error(self, name, event, **fields):
        raise AssertionError((event, fields))

    warning = error


def store(certificate):
    return certificate.key_pem + certificate.pem


def listen(tmp_path, *hosts, **more):
    """The settings, the renewal and the endpoint of a listener with a certificate for each of some lists of names, and
    the files that they are in."""
    paths = [tmp_path / f"{index}.pem" for index in range(len(hosts))]
    for path, names in zip(paths, hosts, strict=True):
        path.write_text(store(certificates.renewed(hosts=names)))
    texts = certificates.settings(pykafkad_ssl_sni_keystores=",".join(map(str, paths)), **more)
    found = Settings.from_properties({name: (text, "test") for name, text in texts.items()})
    renewal = TlsRenewal(found, NoLogs())
    return found, renewal, renewal.add(found, Listener("TLS", "localhost", 0, security_protocol="SSL")), paths


def shake_hands(endpoint, name, certificate=None, version=None):
    """Both sides of a new connection for the host of that name, once there is TLS. Raises the broker's SSLError."""
    incoming, outgoing, heard = ssl.MemoryBIO(), ssl.MemoryBIO(), ssl.MemoryBIO()
    context = client_context(version, certificate)
    context.check_hostname = False
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    server = endpoint.context.wrap_bio(heard, endpoint.outgoing, server_side=True)
    sides = [client, server]
    try:
        for _ in range(10):
            for side in list(sides):
                try:
                    side.do_handshake()
                    sides.remove(side)
                except ssl.SSLWantReadError:
                    pass
                heard.write(outgoing.read())
                incoming.write(endpoint.outgoing.read())
            if not sides:
                return client, server
    finally:
        endpoint.outgoing.read()
    raise AssertionError("the handshake does not end")


def refused(endpoint, name, certificate=None, version=None):
    """Why a client's handshake fails."""
    with pytest.raises(ssl.SSLError) as caught:
        shake_hands(endpoint, name, certificate, version)
    return caught.value.reason


def several(tmp_path, **more):
    return listen(tmp_path, (OTHER,), ("*.example.com",), **more)


@VERSIONS
@NAMES
def test_clients_with_a_certificate_are_accepted_at_each_name(tmp_path, name, version):
    _, _, endpoint, _ = several(tmp_path, ssl_client_auth="required")
    client, server = shake_hands(endpoint, name, certificates.client(), version)
    assert server.getpeercert(binary_form=True) == certificates.client().der
    is_own = client.getpeercert(binary_form=True) == certificates.server().der
    assert is_own == (name == OWN)


@VERSIONS
@NAMES
@pytest.mark.parametrize("auth", ["required", "requested"])
def test_clients_of_another_authority_are_refused_at_each_name(tmp_path, name, version, auth):
    _, _, endpoint, _ = several(tmp_path, ssl_client_auth=auth)
    strange = certificates.client("alice", "Others")
    assert refused(endpoint, name, strange, version) == "CERTIFICATE_VERIFY_FAILED"


@VERSIONS
@NAMES
def test_clients_without_a_certificate_are_refused_at_each_name_where_they_need_one(tmp_path, name, version):
    _, _, endpoint, _ = several(tmp_path, ssl_client_auth="required")
    assert refused(endpoint, name, version=version) == "PEER_DID_NOT_RETURN_A_CERTIFICATE"


@VERSIONS
@NAMES
def test_a_client_that_is_trusted_itself_is_accepted_at_each_name(tmp_path, name, version):
    """As Java does: its authority is not in the trust store."""
    alice = certificates.client("alice", "Others")
    _, _, endpoint, _ = several(tmp_path, ssl_client_auth="required", ssl_truststore_certificates=alice.pem)
    _, server = shake_hands(endpoint, name, alice, version)
    assert server.getpeercert(binary_form=True) == alice.der
    assert refused(endpoint, name, certificates.client("bob", "Others"), version) == "CERTIFICATE_VERIFY_FAILED"


@NAMES
def test_versions_and_ciphers_count_at_each_name(tmp_path, name):
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    _, _, endpoint, _ = several(tmp_path, ssl_enabled_protocols="TLSv1.2", ssl_cipher_suites=suite)
    client, _ = shake_hands(endpoint, name)
    assert (client.version(), client.cipher()[0]) == ("TLSv1.2", tls_settings.openssl_name(suite))


@NAMES
def test_a_trust_store_that_is_replaced_counts_at_each_name(tmp_path, name):
    found, renewal, endpoint, _ = several(tmp_path, ssl_client_auth="required")
    before, after = certificates.client(), certificates.client("alice", "Others")
    found.set_dynamic({}, {TRUST: certificates.authority("Others").pem})
    renewal.renew()
    shake_hands(endpoint, name, after)
    assert refused(endpoint, name, before) == "CERTIFICATE_VERIFY_FAILED"


@NAMES
def test_a_certificate_of_another_name_that_is_replaced_changes_nothing_for_clients(tmp_path, name):
    _, renewal, endpoint, paths = several(tmp_path, ssl_client_auth="required")
    new = certificates.renewed(hosts=(OTHER,))
    paths[0].write_text(store(new))
    renewal.renew()
    client, _ = shake_hands(endpoint, name, certificates.client())
    assert (client.getpeercert(binary_form=True) == new.der) == (name == OTHER)
    strange = certificates.client("alice", "Others")
    assert refused(endpoint, name, strange) == "CERTIFICATE_VERIFY_FAILED"


def test_a_trust_store_that_cannot_be_loaded_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"^ssl\.truststore\.certificates: there is no certificate in it"):
        several(tmp_path, ssl_client_auth="required", ssl_truststore_certificates="nothing")


def test_the_listeners_own_names_count_before_stars_of_others(tmp_path):
    """But not before the same name in full."""
    own = certificates.renewed(hosts=("own.example.com", "both.example.com", "*.own.org"))
    *_, endpoint, _ = listen(
        tmp_path,
        ("*.example.com", "*.own.org"),
        ("both.example.com", "b.own.org"),
        ssl_keystore_key=own.key_pem,
        ssl_keystore_certificate_chain=own.pem,
    )
    for name, is_own in (
        ("own.example.com", True), ("OWN.Example.com", True), ("x.example.com", False), ("both.example.com", False),
        ("a.own.org", True), ("b.own.org", False),
    ):  # fmt: skip
        client, _ = shake_hands(endpoint, name)
        assert (client.getpeercert(binary_form=True) == own.der) == is_own, name
