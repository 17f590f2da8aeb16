"""A command says at once what is wrong with TLS."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pykafkad.cli import reach, tls
from pykafkad.cli.commands import main
from pykafkad.cli.output import Failure
from tests import certificates

ANSWER = b"\0\0\0\x06pkaf\0\0"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no broker that does not answer."""
    monkeypatch.setattr(reach, "TIMEOUT_S", 60.0)


@contextmanager
def _answering(path: Path, *, wants_certificate: bool = False) -> Iterator[str]:
    """The address of an encrypted server that answers one connection and ends it."""
    rules = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    rules.load_cert_chain(_file(path, certificates.server().key_pem + certificates.server().pem))
    if wants_certificate:
        rules.verify_mode = ssl.CERT_REQUIRED
        rules.load_verify_locations(cadata=certificates.authority().pem)

    def serve() -> None:
        accepted, _ = listener.accept()
        with rules.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as encrypted:
            # The client may be gone before the second answer.
            with suppress(OSError):
                encrypted.do_handshake()
                for _ in range(2):
                    encrypted.recv(100)
                    encrypted.sendall(ANSWER)
            _drain(encrypted)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def _drain(connection: socket.socket) -> None:
    """Read until the peer ends the connection. One that is closed with unread bytes takes back what it has sent."""
    with suppress(OSError):
        while socket.socket.recv(connection, 1000):
            pass


def _file(path: Path, text: str) -> str:
    file = path / f"{len(list(path.iterdir()))}.pem"
    file.write_text(text)
    return str(file)


def _trusting(path: Path, name: str = "Tests", **options: object) -> ssl.SSLContext:
    return tls.context({"ssl_cafile": _file(path, certificates.authority(name).pem), **options}, "client.properties")


def test_a_broker_that_is_trusted_is_asked_by_tls(tmp_path: Path) -> None:
    """Its answer is looked at as one in plain text."""
    with _answering(tmp_path) as address:
        assert reach.why_unreachable(address, _trusting(tmp_path)) is None


def test_a_certificate_of_another_authority_is_named(tmp_path: Path) -> None:
    """In the words of the library."""
    with _answering(tmp_path) as address:
        reason = reach.why_unreachable(address, _trusting(tmp_path, "Others"))
    assert reason is not None and reason.startswith("its certificate is not accepted: ")


def test_a_name_that_the_certificate_does_not_have_is_named(tmp_path: Path) -> None:
    """Unless nobody asks for it."""
    with _answering(tmp_path) as address:
        connected = socket.create_connection(address.split(":"))
        with connected, pytest.raises(ssl.SSLCertVerificationError) as caught:
            tls.encrypted(connected, "elsewhere", _trusting(tmp_path))
    assert "elsewhere" in str(tls.reason(caught.value))
    with _answering(tmp_path) as address:
        connected = socket.create_connection(address.split(":"))
        with connected, tls.encrypted(connected, "elsewhere", _trusting(tmp_path, ssl_check_hostname=False)):
            pass


def test_a_broker_that_wants_a_certificate_says_so(tmp_path: Path) -> None:
    """One that is given is accepted, also under a password."""
    with _answering(tmp_path, wants_certificate=True) as address:
        reason = reach.why_unreachable(address, _trusting(tmp_path))
    assert reason is not None and reason.startswith("TLS failed: ") and "certificate" in reason
    alice = certificates.client()
    options = {
        "ssl_certfile": _file(tmp_path, alice.pem),
        "ssl_keyfile": _file(tmp_path, alice.locked_key_pem),
        "ssl_password": certificates.PASSWORD,
    }
    with _answering(tmp_path, wants_certificate=True) as address:
        assert reach.why_unreachable(address, _trusting(tmp_path, **options)) is None


def test_a_broker_in_plain_text_is_named(tmp_path: Path) -> None:
    """Its first bytes are no TLS."""

    def serve() -> None:
        accepted, _ = listener.accept()
        with accepted:
            accepted.sendall(ANSWER)
            _drain(accepted)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        reason = reach.why_unreachable(f"127.0.0.1:{listener.getsockname()[1]}", _trusting(tmp_path))
        thread.join()
    assert reason is not None and reason.startswith("it does not speak TLS")


def test_files_that_can_not_be_used_are_named(tmp_path: Path) -> None:
    """Before a broker is asked, and nobody is asked for a password."""
    alice = certificates.client()
    none, text = str(tmp_path / "none"), _file(tmp_path, "text")
    certificate, key = _file(tmp_path, alice.pem), _file(tmp_path, alice.locked_key_pem)
    other = _file(tmp_path, certificates.server().key_pem)
    for options, error in (
        ({"ssl_cafile": none}, f"the trust file {none} can't be read: no such file or directory"),
        ({"ssl_cafile": text}, f"the trust file {text} holds no certificates in PEM"),
        ({"ssl_certfile": none}, f"the certificate file {none} can't be read: no such file or directory"),
        ({"ssl_certfile": certificate}, f"{certificate} and the key in it are no certificate with its key"),
        ({"ssl_certfile": certificate, "ssl_keyfile": none}, f"the key file {none} can't be read: no such file"),
        ({"ssl_certfile": certificate, "ssl_keyfile": key}, "or ssl.key.password is not that of the key"),
        ({"ssl_certfile": certificate, "ssl_keyfile": key, "ssl_password": "x"}, "or ssl.key.password is not that"),
        ({"ssl_certfile": certificate, "ssl_keyfile": other}, f"{certificate} and {other} are no certificate with"),
    ):
        with pytest.raises(Failure) as caught:
            tls.context(options, "client.properties")
        assert str(caught.value).startswith("client.properties: ") and error in str(caught.value)
        assert caught.value.exit_code == 2


@pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning")
def test_a_command_tells_of_a_missing_file_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It does not wait for a broker."""
    properties = _file(tmp_path, "security.protocol=SSL\nssl.ca.location=/nowhere/ca.pem\n")
    assert main(["topics", "list", "-b", "127.0.0.1:1", "--client-config", properties]) == 2
    expected = f"pykafkad: {properties}: the trust file /nowhere/ca.pem can't be read: no such file or directory\n"
    assert capsys.readouterr().err == expected
