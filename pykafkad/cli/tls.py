"""TLS of a command's connections, and what is wrong with it in words. kafka-python would retry until a time-out, and
say that the broker did not answer."""

from __future__ import annotations

import ssl

from pykafkad.cli.output import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

FILES = {"ssl_cafile": "trust", "ssl_certfile": "certificate", "ssl_keyfile": "key"}


def context(options: Mapping[str, object], path: str) -> ssl.SSLContext:
    """What `client_properties.read(path)` says of TLS. Raises `Failure` for files that can't be read or used."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.check_hostname = bool(options.get("ssl_check_hostname", True))
    files = {name: str(options[name]) for name in FILES if options.get(name)}
    for name, file in files.items():
        _check_readable(file, FILES[name], path)
    authorities, certificate, key = map(files.get, FILES)
    try:
        if authorities:
            made.load_verify_locations(authorities)
        else:
            made.load_default_certs()
    except ssl.SSLError:
        raise Failure(f"{path}: the trust file {authorities} holds no certificates in PEM", 2) from None
    if certificate:
        # A function, so that nobody is asked for a password at the terminal.
        password = str(options.get("ssl_password", ""))
        try:
            made.load_cert_chain(certificate, key, lambda: password)
        except (ssl.SSLError, ValueError):
            raise Failure(
                f"{path}: {certificate} and {key or 'the key in it'} are no certificate with its key in PEM, or "
                "ssl.key.password is not that of the key",
                2,
            ) from None
    return made


def _check_readable(name: str, what: str, path: str) -> None:
    try:
        with open(name, "rb"):
            return
    except OSError as error:
        raise Failure(
            f"{path}: the {what} file {name} can't be read: {(error.strerror or str(error)).lower()}", 2
        ) from None


def encrypted(connected: socket.socket, name: str, rules: ssl.SSLContext) -> ssl.SSLSocket:
    """The connection after its handshake with the host `name`."""
    return rules.wrap_socket(connected, server_hostname=name)


def reason(error: OSError) -> str | None:
    """What an error of `encrypted`, or of such a connection, says in words; None if it is not one of TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if not isinstance(error, ssl.SSLError):
        return None
    words = (error.reason or "unknown").lower().replace("_", " ")
    if words in ("wrong version number", "record layer failure", "packet length too long"):
        return f"it does not speak TLS ({words})"
    return f"TLS failed: {words}"
