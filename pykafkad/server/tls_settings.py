"""Kafka's settings of TLS, as keys, trust and rules of one listener.

Each is read for the listener first (`listener.name.internal.ssl.keystore.location`), then for the broker. What Kafka
refuses is refused, in an error that begins with the setting's name. Keys and certificates are PEM, in files or in the
settings themselves, or stores of Java (`key_stores.py`).

Gaps: ssl.cipher.suites can't choose among the suites of TLS 1.3, as Python's ssl offers them together; TLS 1.0 and 1.1
are not offered, as Java does not by default; who asks by TLS for the way back to a snapshot of everything has no
answer, as its connection ends with the stop."""

from __future__ import annotations

import os
import re
import ssl

from pykafkad.errors import ConfigError
from pykafkad.server import key_stores
from pykafkad.server.certificate_names import InvalidRule, PrincipalRules, host_names
from pykafkad.server.tls_endpoint import TlsEndpoint
from pykafkad.server.tls_transport import reason
from pykafkad.settings.of_listener import ListenerSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.server.listeners import Listener

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PROTOCOLS = ("TLS", "TLSv1.1", *_VERSIONS)
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_SUITES_OF_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")

_FIXED = (
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.protocol",
)

_KEYS = ("ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain")

_PEM = "PEM"
_FILE_BYTES_MAX = 1 << 20
_BLOCK = re.compile(r"-+BEGIN ([A-Z0-9 ]+?)-+\s(.*?)-+END \1-+", re.DOTALL)
_CERTIFICATE = "CERTIFICATE"
_PRIVATE_KEY = "PRIVATE KEY"


def endpoint(settings: Settings, listener: Listener) -> TlsEndpoint:
    """What the connections of a listener that encrypts share. Raises ConfigError."""
    of_listener = ListenerSettings(settings, listener.name, fixed=fixed(settings, listener))
    rules = of_listener.value("ssl.principal.mapping.rules")
    try:
        mapping = PrincipalRules(rules)
    except InvalidRule as error:
        raise _wrong(of_listener, "ssl.principal.mapping.rules", str(error)) from None
    return TlsEndpoint(
        context(of_listener),
        mapping if listener.security_protocol == "SSL" else None,
        settings.pykafkad_ssl_handshake_timeout_ms / 1000,
    )


def fixed(settings: Settings, listener: Listener) -> dict[str, Any]:
    """What does not change while the listener is served, by Kafka's names. Raises ConfigError.

    With SASL `ssl.client.auth` counts only where it is given for the listener (Kafka's ChannelBuilders)."""
    of_listener = ListenerSettings(settings, listener.name)
    values = {name: of_listener.value(name) for name in _FIXED}
    if listener.has_sasl and not of_listener.is_own("ssl.client.auth"):
        values["ssl.client.auth"] = "none"
    return values


class ServerContext(ssl.SSLContext):
    """Keys, trust, versions and cipher suites of a listener, or of those who reach it."""

    own_certificate = ""
    """The first certificate of the private key, as PEM."""


def context(of_listener: ListenerSettings) -> ServerContext:
    """What the settings make. Raises ConfigError."""
    result = _without_key(of_listener)
    _load_key(of_listener, result)
    others = _load_other_names(of_listener, result) if other_stores(of_listener) else []
    if result.verify_mode != ssl.CERT_NONE:
        # OpenSSL looks for a client's authority in the context that was chosen by name, so each needs the trust.
        _load_trust(of_listener, [result, *others])
    return result


def _without_key(of_listener: ListenerSettings) -> ServerContext:
    """The rules of a listener, which count for each of its certificates. Raises ConfigError."""
    result = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    result.options |= ssl.OP_NO_RENEGOTIATION
    # As a real Kafka with TLS 1.3; each costs a tenth of a millisecond.
    result.num_tickets = 1
    _set_versions(of_listener, result)
    _set_ciphers(of_listener, result)
    result.verify_mode = _CLIENT_AUTH[of_listener.value("ssl.client.auth")]
    if result.verify_mode != ssl.CERT_NONE:
        # Java trusts each certificate of a trust store as it is, also one that another authority signed.
        result.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return result


def client_context(of_listener: ListenerSettings, *, checks_name: bool) -> ServerContext:
    """What the settings make of connections from here to such a listener of other nodes; with `checks_name` their
    certificates must be for the names of their hosts. Raises ConfigError."""
    made = ServerContext(ssl.PROTOCOL_TLS_CLIENT)
    made.options |= ssl.OP_NO_RENEGOTIATION
    made.check_hostname = checks_name
    _set_versions(of_listener, made)
    _set_ciphers(of_listener, made)
    if any(of_listener.value(name) is not None for name in _KEYS):
        _load_key(of_listener, made)
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _load_trust(of_listener, [made], ssl.Purpose.SERVER_AUTH)
    return made


def check_trust(of_listener: ListenerSettings) -> None:
    """Raises ConfigError for a trust store that is given and cannot be loaded, whether or not anybody needs it."""
    _load_trust(of_listener, [ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)])


def _wrong(of_listener: ListenerSettings, name: str, sentence: str) -> ConfigError:
    return ConfigError(f"{of_listener.name(name)}: {sentence}")


def _set_versions(of_listener: ListenerSettings, result: ssl.SSLContext) -> None:
    protocol = of_listener.value("ssl.protocol")
    if protocol not in _PROTOCOLS:
        raise _wrong(of_listener, "ssl.protocol", f"{protocol} is not one of {', '.join(_PROTOCOLS)}")
    enabled = of_listener.value("ssl.enabled.protocols") or tuple(_VERSIONS)
    versions = sorted(_VERSIONS[name] for name in enabled if name in _VERSIONS)
    if not versions:
        raise _wrong(
            of_listener, "ssl.enabled.protocols", f"none of {', '.join(enabled)} is one of {', '.join(_VERSIONS)}"
        )
    result.minimum_version, result.maximum_version = versions[0], versions[-1]


def _set_ciphers(of_listener: ListenerSettings, result: ssl.SSLContext) -> None:
    suites = of_listener.value("ssl.cipher.suites")
    if not suites:
        return
    of_1_3 = [suite for suite in suites if suite in _SUITES_OF_1_3]
    older = [suite for suite in suites if suite not in _SUITES_OF_1_3]
    if of_1_3 and len(set(of_1_3)) < len(_SUITES_OF_1_3) and result.maximum_version == ssl.TLSVersion.TLSv1_3:
        raise _wrong(
            of_listener,
            "ssl.cipher.suites",
            f"the suites of TLS 1.3 come together here: name all of {', '.join(_SUITES_OF_1_3)}, or none of them",
        )
    if not of_1_3:
        result.maximum_version = ssl.TLSVersion.TLSv1_2
    if not older:
        result.minimum_version = ssl.TLSVersion.TLSv1_3
    if result.minimum_version > result.maximum_version:
        raise _wrong(of_listener, "ssl.cipher.suites", "has no suite for any version in ssl.enabled.protocols")
    for suite in older:
        if not _is_offered(openssl_name(suite)):
            raise _wrong(of_listener, "ssl.cipher.suites", f"{suite} is not a cipher suite that OpenSSL offers")
    if older:
        result.set_ciphers(":".join(map(openssl_name, older)))


def _is_offered(name: str) -> bool:
    """Whether OpenSSL knows a cipher suite of TLS 1.2 by that name: some of the words that it takes mean several."""
    probe = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        probe.set_ciphers(name)
    except ssl.SSLError:
        return False
    return any(each["name"] == name for each in probe.get_ciphers())


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a cipher suite of TLS 1.2 that Java and the RFCs call `suite`."""
    name = suite.removeprefix("TLS_").replace("_WITH_", "_").removeprefix("RSA_")
    for bits in ("128", "256"):
        for cipher in ("AES", "CAMELLIA", "ARIA"):
            name = name.replace(f"{cipher}_{bits}_CBC", f"{cipher}{bits}").replace(
                f"{cipher}_{bits}", f"{cipher}{bits}"
            )
    return name.replace("POLY1305_SHA256", "POLY1305").replace("_", "-")


def _load_key(of_listener: ListenerSettings, result: ServerContext) -> None:
    value = of_listener.value
    location, key, chain = (
        value(name) for name in ("ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain")
    )
    store_type = value("ssl.keystore.type")
    if key is None and chain is None and location is None:
        raise _wrong(
            of_listener,
            "ssl.keystore.location",
            "a listener with TLS needs a private key and its certificates: a PEM file here with ssl.keystore.type=PEM, "
            "or ssl.keystore.key and ssl.keystore.certificate.chain",
        )
    _check_type(of_listener, "ssl.keystore.type", store_type)
    if store_type == _PEM and value("ssl.keystore.password") is not None:
        raise _wrong(
            of_listener, "ssl.keystore.password", "PEM files have no password; ssl.key.password opens the private key"
        )
    if location is not None:
        if key is not None or chain is not None:
            raise _wrong(
                of_listener, "ssl.keystore.location", "give either this, or ssl.keystore.key with its certificates"
            )
        if store_type != _PEM and value("ssl.keystore.password") is None:
            raise _wrong(of_listener, "ssl.keystore.password", f"a key store of type {store_type} needs its password")
        key = chain = _texts(of_listener, "keystore", location, store_type)
        key_name = chain_name = "ssl.keystore.location"
    else:
        _check_inline(of_listener, "ssl.keystore.type", store_type)
        key_name, chain_name = "ssl.keystore.key", "ssl.keystore.certificate.chain"
        if key is None:
            raise _wrong(of_listener, chain_name, f"there is no {key_name} for these certificates")
        if chain is None:
            raise _wrong(of_listener, key_name, f"there is no {chain_name} for this key")
    _load_pair(of_listener, result, key_name, key, chain_name, chain)


def _load_pair(
    of_listener: ListenerSettings, result: ServerContext, key_name: str, key: str, chain_name: str, chain: str
) -> None:
    """Take a private key and its certificates out of two texts, of the settings of these names."""
    keys = _blocks(key, _PRIVATE_KEY)
    if len(keys) != 1:
        count = "no private key" if not keys else f"{len(keys)} private keys"
        raise _wrong(of_listener, key_name, f"there must be one -----BEGIN PRIVATE KEY----- in it, not {count}")
    certificates = _certificates(of_listener, chain_name, chain)
    result.own_certificate = certificates[0]
    password = of_listener.value("ssl.key.password")

    def answer() -> str:
        if password is None:
            raise _wrong(of_listener, "ssl.key.password", "the private key is encrypted, and this is not set")
        return str(password)

    # Python loads keys from files only.
    with _InMemory("".join(certificates + keys)) as path:
        try:
            result.load_cert_chain(path, password=answer)
        except ssl.SSLError as error:
            raise _wrong(of_listener, key_name, _key_problem(error, "ENCRYPTED" in keys[0])) from None
        except ValueError:
            # What Python says may quote the password.
            raise _wrong(
                of_listener, "ssl.key.password", "only a text of at most 1024 bytes can open a private key"
            ) from None


def other_stores(of_listener: ListenerSettings) -> tuple[str, ...]:
    """The files with certificates of other names. Raises ConfigError."""
    return tuple(of_listener.value("pykafkad.ssl.sni.keystores"))


def _load_other_names(of_listener: ListenerSettings, result: ServerContext) -> list[ServerContext]:
    """Have clients that ask for another name (RFC 6066, section 3) shown the certificate that has it, and return what
    these are served with. A star counts only for names that the listener's own certificate does not have."""
    setting = "pykafkad.ssl.sni.keystores"
    is_file = of_listener.value("ssl.keystore.location") is not None
    own_setting = "ssl.keystore.location" if is_file else "ssl.keystore.certificate.chain"
    own = frozenset(_host_names(of_listener, own_setting, "", result))
    others = []
    contexts: dict[str, ServerContext] = {}
    for path in other_stores(of_listener):
        other = _without_key(of_listener)
        try:
            text = content(path).decode("ascii", "replace")
        except OSError as error:
            raise _wrong(of_listener, setting, f"{path} cannot be read: {error.strerror}") from None
        try:
            _load_pair(of_listener, other, setting, text, setting, text)
        except ConfigError as error:
            raise ConfigError(f"{error} (in {path})") from None
        names = _host_names(of_listener, setting, f"{path}: ", other)
        if not names:
            raise _wrong(of_listener, setting, f"{path}: its certificate has no alternative name of a host")
        others.append(other)
        contexts |= {name: other for name in names if name not in contexts}

    def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        wanted = (name or "").lower().rstrip(".")
        star = f"*.{wanted.partition('.')[2]}"
        found = contexts.get(wanted)
        if found is None and wanted not in own and star not in own:
            found = contexts.get(star)
        if found is not None:
            connection.context = found

    result.sni_callback = choose
    return others


def _host_names(of_listener: ListenerSettings, setting: str, place: str, made: ServerContext) -> list[str]:
    """The names of hosts in the certificate of a setting, which is at that place. Raises ConfigError."""
    try:
        return host_names(ssl.PEM_cert_to_DER_cert(made.own_certificate))
    except ValueError as error:
        raise _wrong(of_listener, setting, f"{place}its certificate cannot be read: {error}") from None


def _key_problem(error: ssl.SSLError, is_locked: bool) -> str:
    if getattr(error, "reason", None) in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
        return "the private key is not that of the first certificate"
    hint = "; does ssl.key.password open the key?" if is_locked else ""
    return f"key and certificates cannot be loaded ({reason(error)}){hint}"


def _load_trust(
    of_listener: ListenerSettings, contexts: Sequence[ssl.SSLContext], purpose: ssl.Purpose = ssl.Purpose.CLIENT_AUTH
) -> None:
    """Have each of the contexts trust what the settings name, which is read once. Raises ConfigError."""
    value = of_listener.value
    location, certificates = value("ssl.truststore.location"), value("ssl.truststore.certificates")
    if location is None and certificates is None:
        # The system's authorities, as Java's where no trust store is named.
        for each in contexts:
            each.load_default_certs(purpose)
        return
    store_type = value("ssl.truststore.type")
    _check_type(of_listener, "ssl.truststore.type", store_type)
    if store_type == _PEM and value("ssl.truststore.password") is not None:
        raise _wrong(of_listener, "ssl.truststore.password", "PEM files have no password")
    name = "ssl.truststore.certificates"
    if location is not None:
        if certificates is not None:
            raise _wrong(of_listener, "ssl.truststore.location", "give either this or ssl.truststore.certificates")
        name = "ssl.truststore.location"
        certificates = _texts(of_listener, "truststore", location, store_type)
    else:
        _check_inline(of_listener, "ssl.truststore.type", store_type)
    trusted = _certificates(of_listener, name, certificates)
    try:
        for each in contexts:
            each.load_verify_locations(cadata="".join(trusted))
    except (ssl.SSLError, ValueError) as error:
        text = reason(error) if isinstance(error, ssl.SSLError) else str(error)
        raise _wrong(of_listener, name, f"its certificates cannot be loaded ({text})") from None


def _certificates(of_listener: ListenerSettings, name: str, text: str) -> list[str]:
    found = _blocks(text, _CERTIFICATE)
    if not found:
        raise _wrong(of_listener, name, "there is no certificate in it (-----BEGIN CERTIFICATE-----)")
    if not all(each.isascii() for each in found):
        raise _wrong(of_listener, name, "its certificates cannot be loaded (they are not all ASCII)")
    return found


def _blocks(text: str, kind: str) -> list[str]:
    """The certificates or private keys of a PEM text, in lines of 64 characters: a setting may have blanks in
    place of line ends, and comments may stand between."""
    found = []
    for label, body in _BLOCK.findall(text):
        if label.endswith(kind):
            if ":" not in body:
                encoded = "".join(body.split())
                body = "\n".join(encoded[start : start + 64] for start in range(0, len(encoded), 64))
            found.append(f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    return found


def _check_type(of_listener: ListenerSettings, name: str, store_type: str) -> None:
    if store_type != _PEM and store_type not in key_stores.TYPES:
        raise _wrong(of_listener, name, f"{store_type} is not one of {', '.join((_PEM, *key_stores.TYPES))}")


def _check_inline(of_listener: ListenerSettings, name: str, store_type: str) -> None:
    if store_type != _PEM:
        raise _wrong(
            of_listener, name, f"keys and certificates stand in settings as PEM only, and this is {store_type}"
        )


def content(path: str) -> bytes:
    """What a file holds, as far as a store of keys may be long and a byte more. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(_FILE_BYTES_MAX + 1)


def _texts(of_listener: ListenerSettings, kind: str, path: str, store_type: str) -> str:
    """What a key store ("keystore") or a trust store ("truststore") holds, as PEM."""
    name = f"ssl.{kind}.location"
    try:
        data = content(path)
    except OSError as error:
        raise _wrong(of_listener, name, f"{path} cannot be read: {error.strerror}") from None
    if len(data) > _FILE_BYTES_MAX:
        raise _wrong(of_listener, name, f"{path} is larger than {_FILE_BYTES_MAX} bytes, so it is no store of keys")
    if store_type == _PEM:
        return data.decode("ascii", "replace")
    key_password = of_listener.value("ssl.key.password")
    try:
        store = key_stores.read(data, of_listener.value(f"ssl.{kind}.password"), key_password)
    except key_stores.KeyStoreError as error:
        raise _wrong(of_listener, name, f"{path}: {error}") from None
    return "".join(store.own if kind == "keystore" else store.trusted)


class _InMemory:
    """A text as a file that has a path, and is nowhere on a disk where the system can do that."""

    def __init__(self, text: str) -> None:
        self._data = text.encode("utf-8", "replace")
        self._descriptor = -1
        self._folder: str | None = None

    def __enter__(self) -> str:
        if hasattr(os, "memfd_create"):
            self._descriptor = os.memfd_create("pem")
            os.write(self._descriptor, self._data)
            return f"/proc/self/fd/{self._descriptor}"
        import tempfile

        # Only its owner may look into such a folder.
        self._folder = tempfile.mkdtemp()
        path = f"{self._folder}/key.pem"
        with open(path, "wb") as file:
            file.write(self._data)
        return path

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        if self._folder is not None:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)
