"""Kafka's settings of TLS: what they make of a listener, and the errors of those that cannot be."""

import ssl

import pytest

from pykafkad.config import Settings
from pykafkad.errors import ConfigError
from pykafkad.server import tls_settings
from pykafkad.server.listeners import Listener
from pykafkad.settings.of_listener import ListenerSettings
from tests import certificates

SUITES_OF_1_3 = "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"

NOT_ASCII = certificates.server().pem.replace("MII", "MI\N{LATIN SMALL LETTER E WITH ACUTE}", 1)


def settings(properties):
    return Settings.from_properties({name: (text, "test") for name, text in properties.items() if text is not None})


def context(**more):
    return tls_settings.context(ListenerSettings(settings(certificates.settings(**more)), "OUTSIDE"))


@pytest.fixture
def pem_file(tmp_path):
    path = tmp_path / "keystore.pem"
    path.write_text(f"Bag of things\n{certificates.server().key_pem}# and\n{certificates.server().pem}")
    return str(path)


def inline(**more):
    return context(ssl_keystore_key=None, ssl_keystore_certificate_chain=None, **more)


def test_defaults():
    made = context()
    assert (made.minimum_version, made.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    assert made.verify_mode == ssl.CERT_NONE
    assert made.options & ssl.OP_NO_RENEGOTIATION
    assert made.options & ssl.OP_NO_COMPRESSION


def test_a_key_store_is_one_pem_file_or_two_settings(pem_file):
    inline(ssl_keystore_location=pem_file)
    # Settings in one line, as they are often written, and with Windows' line ends.
    for end in (" ", "\r\n"):
        context(
            ssl_keystore_key=certificates.server().key_pem.replace("\n", end),
            ssl_keystore_certificate_chain=certificates.server().pem.replace("\n", end),
        )


def test_an_encrypted_key_needs_its_password():
    locked = certificates.server().locked_key_pem
    context(ssl_keystore_key=locked, ssl_key_password=certificates.PASSWORD)
    with pytest.raises(ConfigError, match="^ssl.key.password: the private key is encrypted, and this is not set"):
        context(ssl_keystore_key=locked)
    with pytest.raises(ConfigError, match="^ssl.keystore.key: .*; does ssl.key.password open the key") as error:
        context(ssl_keystore_key=locked, ssl_key_password="wrong secret")
    assert "wrong secret" not in str(error.value)


@pytest.mark.parametrize("asked, mode", [
    ("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED),
])  # fmt: skip
def test_client_authentication(asked, mode, tmp_path):
    path = tmp_path / "trust.pem"
    path.write_text(f"# authorities\n{certificates.authority().pem}\n{certificates.authority('Others').pem}")
    made = context(ssl_client_auth=asked, ssl_truststore_certificates=None, ssl_truststore_location=str(path))
    assert made.verify_mode == mode
    assert len(made.get_ca_certs()) == (0 if mode == ssl.CERT_NONE else 2)
    # Without a trust store the system's authorities count.
    context(ssl_client_auth=asked, ssl_truststore_certificates=None)


@pytest.mark.parametrize("enabled, least, most", [
    ("TLSv1.2", "TLSv1_2", "TLSv1_2"),
    ("TLSv1.3", "TLSv1_3", "TLSv1_3"),
    ("TLSv1.3,TLSv1.2,TLSv1.1,TLSv1", "TLSv1_2", "TLSv1_3"),
    ("", "TLSv1_2", "TLSv1_3"),
])  # fmt: skip
def test_versions(enabled, least, most):
    made = context(ssl_enabled_protocols=enabled)
    assert (made.minimum_version.name, made.maximum_version.name) == (least, most)


@pytest.mark.parametrize("suites, names, least, most", [
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
     {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"}, "TLSv1_2", "TLSv1_2"),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384,TLS_RSA_WITH_AES_128_CBC_SHA," + SUITES_OF_1_3,
     {"ECDHE-ECDSA-AES256-SHA384", "AES128-SHA"}, "TLSv1_2", "TLSv1_3"),
    (SUITES_OF_1_3, None, "TLSv1_3", "TLSv1_3"),
])  # fmt: skip
def test_cipher_suites(suites, names, least, most):
    made = context(ssl_cipher_suites=suites)
    chosen = {each["name"] for each in made.get_ciphers() if each["protocol"] != "TLSv1.3"}
    assert names is None or chosen == names
    assert (made.minimum_version.name, made.maximum_version.name) == (least, most)


@pytest.mark.parametrize("more, sentence", [
    ({"ssl_keystore_key": None, "ssl_keystore_certificate_chain": None},
     "ssl.keystore.location: a listener with TLS needs a private key and its certificates"),
    ({"ssl_keystore_type": "JKS"}, "ssl.keystore.type: keys and certificates stand in settings as PEM only"),
    ({"ssl_keystore_key": None}, "ssl.keystore.certificate.chain: there is no ssl.keystore.key"),
    ({"ssl_keystore_certificate_chain": None}, "ssl.keystore.key: there is no ssl.keystore.certificate.chain"),
    ({"ssl_keystore_location": "/nowhere"}, "ssl.keystore.location: give either this, or ssl.keystore.key"),
    ({"ssl_keystore_password": "x"}, "ssl.keystore.password: PEM files have no password"),
    ({"ssl_keystore_key": "nothing"}, "ssl.keystore.key: there must be one -----BEGIN PRIVATE KEY----- in it, not no"),
    ({"ssl_keystore_key": certificates.server().key_pem * 2}, "ssl.keystore.key: .* not 2 private keys"),
    ({"ssl_keystore_certificate_chain": "x"}, "ssl.keystore.certificate.chain: there is no certificate in it"),
    ({"ssl_keystore_key": certificates.client().key_pem},
     "ssl.keystore.key: the private key is not that of the first certificate"),
    ({"ssl_keystore_certificate_chain": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"},
     "ssl.keystore.key: key and certificates cannot be loaded"),
    ({"ssl_client_auth": "required", "ssl_truststore_type": "JKS"}, "ssl.truststore.type: keys and"),
    ({"ssl_client_auth": "required", "ssl_truststore_password": "x"}, "ssl.truststore.password: PEM files have no"),
    ({"ssl_client_auth": "required", "ssl_truststore_location": "/nowhere"}, "ssl.truststore.location: give either"),
    ({"ssl_client_auth": "required", "ssl_truststore_certificates": "x"}, "ssl.truststore.certificates: there is no"),
    ({"ssl_client_auth": "required", "ssl_truststore_certificates": None, "ssl_truststore_location": "/nowhere"},
     "ssl.truststore.location: /nowhere cannot be read: No such file"),
    ({"ssl_client_auth": "required",
      "ssl_truststore_certificates": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"},
     "ssl.truststore.certificates: its certificates cannot be loaded"),
    ({"ssl_client_auth": "required", "ssl_truststore_certificates": NOT_ASCII},
     r"ssl.truststore.certificates: its certificates cannot be loaded \(they are not all ASCII"),
    ({"ssl_keystore_certificate_chain": NOT_ASCII},
     r"ssl.keystore.certificate.chain: its certificates cannot be loaded \(they are not all ASCII"),
    ({"ssl_keystore_key": "-----BEGIN PRIVATE KEY-----\n\udcff\n-----END PRIVATE KEY-----"},
     "ssl.keystore.key: key and certificates cannot be loaded"),
    ({"ssl_keystore_key": certificates.server().locked_key_pem, "ssl_key_password": "x" * 1025},
     "ssl.key.password: only a text of at most 1024 bytes can open a private key$"),
    ({"ssl_keystore_key": certificates.server().locked_key_pem, "ssl_key_password": "\udcff"},
     "ssl.key.password: only a text of at most 1024 bytes can open a private key$"),
    ({"ssl_protocol": "SSLv3"}, "ssl.protocol: SSLv3 is not one of TLS, TLSv1.1, TLSv1.2, TLSv1.3"),
    ({"ssl_enabled_protocols": "TLSv1,SSLv3"}, "ssl.enabled.protocols: none of TLSv1, SSLv3 is one of TLSv1.2, TLSv1"),
    ({"ssl_cipher_suites": "TLS_NULL"}, "ssl.cipher.suites: TLS_NULL is not a cipher suite"),
    ({"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"}, "ssl.cipher.suites: the suites of TLS 1.3 come together"),
    ({"ssl_cipher_suites": SUITES_OF_1_3, "ssl_enabled_protocols": "TLSv1.2"}, "ssl.cipher.suites: has no suite for"),
])  # fmt: skip
def test_impossible_settings_say_what_is_allowed(more, sentence):
    with pytest.raises(ConfigError, match=f"^{sentence}"):
        context(**more)


def test_a_file_that_is_no_pem_file(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(bytes(2 << 20))
    with pytest.raises(ConfigError, match="larger than 1048576 bytes, so it is no store of keys"):
        inline(ssl_keystore_location=str(path))


def test_a_listener_has_its_own_settings_first():
    properties = certificates.settings()
    properties["listener.name.outside.ssl.client.auth"] = "required"
    properties["listener.name.inside.ssl.client.auth"] = "sometimes"
    found = settings(properties)
    assert found.warnings == []
    assert tls_settings.context(ListenerSettings(found, "OUTSIDE")).verify_mode == ssl.CERT_REQUIRED
    assert tls_settings.context(ListenerSettings(found, "THIRD")).verify_mode == ssl.CERT_NONE
    with pytest.raises(ConfigError, match="^listener.name.inside.ssl.client.auth: Invalid value sometimes"):
        tls_settings.context(ListenerSettings(found, "INSIDE"))
    properties["listener.name.inside.ssl.client.auth"] = "none"
    properties["listener.name.inside.ssl.keystore.type"] = "FLOPPY"
    with pytest.raises(
        ConfigError, match="^listener.name.inside.ssl.keystore.type: FLOPPY is not one of PEM, JKS, PKCS12"
    ):
        tls_settings.context(ListenerSettings(settings(properties), "INSIDE"))


def test_with_sasl_clients_are_asked_for_certificates_by_the_listeners_own_setting_only():
    """Kafka's ChannelBuilders: a password says who the client is."""
    properties = certificates.settings(ssl_client_auth="required")
    properties["listener.name.inside.ssl.client.auth"] = "requested"
    found = settings(properties)

    def mode(name, protocol):
        listener = Listener(name, "localhost", 0, security_protocol=protocol)
        return tls_settings.endpoint(found, listener).context.verify_mode

    assert [mode("OUTSIDE", each) for each in ("SSL", "SASL_SSL")] == [ssl.CERT_REQUIRED, ssl.CERT_NONE]
    assert [mode("INSIDE", each) for each in ("SSL", "SASL_SSL")] == [ssl.CERT_OPTIONAL, ssl.CERT_OPTIONAL]


def test_rules_that_are_none():
    listener = Listener("OUTSIDE", "localhost", 0, security_protocol="SSL")
    with pytest.raises(ConfigError, match="^ssl.principal.mapping.rules: 'default' does not begin with DEFAULT"):
        tls_settings.endpoint(settings(certificates.settings(ssl_principal_mapping_rules="default")), listener)


def test_a_key_is_read_from_memory_or_from_a_folder_of_its_owner(monkeypatch):
    context()
    monkeypatch.delattr(tls_settings.os, "memfd_create", raising=False)
    context()


def test_a_certificate_names_nobody_where_clients_log_in():
    """With SASL the login does, also for a client with a certificate."""
    found = settings(certificates.settings(listener_name_outside_ssl_client_auth="required"))
    for security_protocol, has_rules in (("SSL", True), ("SASL_SSL", False)):
        listener = Listener("OUTSIDE", "localhost", 0, security_protocol=security_protocol)
        endpoint = tls_settings.endpoint(found, listener)
        assert endpoint.context.verify_mode == ssl.CERT_REQUIRED and (endpoint.rules is not None) == has_rules
