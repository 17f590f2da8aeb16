"""Java's key stores, as keytool of Java 17 wrote them: `tests/golden/key_stores` has one of each kind with a key, and
one with a trusted certificate. Their passwords are `changeit`; the key in key2.jks is under `otherpass`."""

import random
import sys
from pathlib import Path

import pytest

from pykafkad.config import Settings
from pykafkad.errors import ConfigError
from pykafkad.server import key_stores, tls_settings
from pykafkad.settings.of_listener import ListenerSettings
from tests import seeds

FOLDER = Path(__file__).parent.parent / "golden" / "key_stores"


def read(name, password="changeit", key_password=None):
    return key_stores.read((FOLDER / name).read_bytes(), password, key_password)


def context(**properties):
    texts = {name.replace("_", "."): (text, "test") for name, text in properties.items()}
    return tls_settings.context(ListenerSettings(Settings.from_properties(texts), "OUTSIDE"))


@pytest.mark.parametrize("name, key_password", [("key.jks", None), ("key.pkcs12", None), ("key2.jks", "otherpass")])
def test_a_key_and_its_certificate(name, key_password):
    key, certificate = read(name, key_password=key_password).own
    assert key.startswith("-----BEGIN PRIVATE KEY-----\n") and certificate.startswith("-----BEGIN CERTIFICATE-----\n")


@pytest.mark.parametrize("name", ["trust.jks", "trust.pkcs12"])
@pytest.mark.parametrize("password", ["changeit", None])
def test_trusted_certificates(name, password):
    if password is None and name == "trust.pkcs12":
        pytest.skip("keytool encrypts the certificates of PKCS#12")
    store = read(name, password)
    assert store.own == [] and len(store.trusted) == 1


@pytest.mark.parametrize("store_type", ["JKS", "PKCS12"])
@pytest.mark.parametrize("kind", ["jks", "pkcs12"])
def test_a_listener_with_stores(store_type, kind):
    made = context(
        ssl_keystore_type=store_type,
        ssl_keystore_location=str(FOLDER / f"key.{kind}"),
        ssl_keystore_password="changeit",
        ssl_truststore_type=store_type,
        ssl_truststore_location=str(FOLDER / f"trust.{kind}"),
        ssl_truststore_password="changeit",
        ssl_client_auth="required",
    )
    assert made.cert_store_stats()["x509"] == 1


@pytest.mark.parametrize("name, password, key_password, sentence", [
    ("key.jks", "other", None, "the password does not open the store, or the store is damaged"),
    ("key2.jks", "changeit", None, "the password does not open the private key"),
    ("key.pkcs12", "other", None, "its password is another"),
])  # fmt: skip
def test_a_wrong_password_is_said(name, password, key_password, sentence):
    with pytest.raises(key_stores.KeyStoreError, match=sentence):
        read(name, password, key_password)


def test_what_a_setting_says_of_a_store_that_cannot_be_read(tmp_path, monkeypatch):
    path = str(FOLDER / "key.jks")
    with pytest.raises(ConfigError, match="^ssl.keystore.password: a key store of type JKS needs its password"):
        context(ssl_keystore_location=path)
    with pytest.raises(ConfigError, match="^ssl.keystore.location: .*key.jks: the password does not open the store"):
        context(ssl_keystore_location=path, ssl_keystore_password="secret?")
    pem = tmp_path / "key.pem"
    pem.write_text("-----BEGIN PRIVATE KEY-----\n")
    with pytest.raises(ConfigError, match="key.pem: this is a PEM file, whose type must be given as PEM"):
        context(ssl_keystore_location=str(pem), ssl_keystore_password="x")
    with pytest.raises(ConfigError, match="^ssl.keystore.location: there must be one .*, not no private key"):
        context(ssl_keystore_location=str(FOLDER / "trust.jks"), ssl_keystore_password="changeit")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(ConfigError, match=r"reading PKCS#12 needs cryptography .*pip install 'pykafkad\[tls\]'"):
        context(ssl_keystore_location=str(FOLDER / "key.pkcs12"), ssl_keystore_password="changeit")


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 10))
def test_any_bytes_give_a_store_or_an_error(seed):
    draw = random.Random(seed)
    data = bytearray((FOLDER / draw.choice(("key.jks", "trust.jks", "key2.jks", "key.pkcs12"))).read_bytes())
    if draw.random() < 0.3:
        del data[draw.randrange(len(data)) :]
    for _ in range(draw.randrange(1, 4)):
        if data:
            data[draw.randrange(len(data))] = draw.randrange(256)
    for password in (None, "changeit"):
        try:
            assert isinstance(key_stores.read(bytes(data), password, None), key_stores.Store)
        except key_stores.KeyStoreError:
            pass
