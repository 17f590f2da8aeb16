"""Every kind of secret that a broker was ever given, looked for in everything that it writes and says.

One broker meets them all: by settings at start, by settings changed live, by requests, and by logins, right and wrong.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.metadata import credentials
from pykafkad.server import pcap, trace_formats
from pykafkad.server.logs import Sink, process_logs
from pykafkad.server.trace import WireTrace
from pykafkad.settings.rows import BROKER, ROWS
from pykafkad.wire import messages
from tests import certificates
from tests.sasl.client import ScramClient
from tests.sasl.tokens import first_message, unsecured
from tests.server.sasl_world import add_scram_user, authenticate, handshake, log_in, sasl_world
from tests.server.token_world import SECRET, create, describe, log_in_by, password, user

KEY_STORE_PASSWORD, KEY_PASSWORD, TRUST_PASSWORD = "keystore-0451", "keykey-0452", "truststore-0453"
SCRAM_PASSWORD, WRONG_PASSWORD = "scram-pass-0454", "wrong-pass-0455"
LIVE_PASSWORD = "live-pass-0456"
FAULT = "a bug of the test"


def everything(world: Any, traced: Any, lines: list[bytes], said: list[bytes], audit: Path) -> dict[str, bytes]:
    """All that was written or said, by where."""
    exchanges = traced.exchanges()
    folder = Path(world.path)
    return {
        "log": b"".join(lines),
        "answers": b"".join(said),
        "trace as text": (trace_formats.text(exchanges) + trace_formats.json_lines(exchanges)).encode(),
        "trace as values": b"".join(each.request + (each.answer or b"") for each in exchanges),
        "pcap": pcap.write(exchanges),
        "audit": audit.read_bytes(),
        "files": b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file()),
    }


def forms(secret: str | bytes) -> tuple[bytes, ...]:
    """How a secret may stand somewhere."""
    data = secret.encode() if isinstance(secret, str) else secret
    return data, base64.b64encode(data), data.hex().encode(), repr(data)[2:-1].encode()


class Watched:
    """A broker, and all that it has said and written."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[bytes] = []
        self.said: list[bytes] = []
        self.audit = folder / "audit.txt"
        monkeypatch.setattr(process_logs(), "sink", Sink(lambda data: self.lines.append(data) or len(data)))
        self.world = sasl_world(
            folder / "data",
            "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            delegation_token_secret_key=SECRET,
            authorizer_class_name=STANDARD_AUTHORIZER,
            super_users="User:root",
            pykafkad_audit_file=self.audit,
            pykafkad_audit_allowed="true",
            ssl_keystore_password=KEY_STORE_PASSWORD,
            ssl_key_password=KEY_PASSWORD,
            ssl_truststore_password=TRUST_PASSWORD,
            ssl_keystore_key=certificates.server().key_pem.replace("\n", " "),
        )
        for node in (self.world.broker, self.world.controller):
            node.logs.set_level("debug")
        self.traced = WireTrace(self.world.runtime, [self.world.broker])
        self.traced.start()

    def connect(self) -> Any:
        """A connection whose answers are kept as bytes."""
        peer = self.world.connect()
        take = peer.take

        def kept(data: bytes) -> None:
            self.said.append(data)
            take(data)

        peer.take = kept
        return peer

    def wrong_logins(self) -> None:
        """By each mechanism."""
        token = unsecured({"sub": "alice", "exp": 1})
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            log_in(self.connect(), mechanism, "alice", WRONG_PASSWORD)
        peer = self.connect()
        handshake(peer, "OAUTHBEARER")
        authenticate(peer, first_message(token))
        self.world.advance(1)
        self.token = token

    def change_settings(self) -> None:
        """A password, for a listener and without one, and one that cannot be, whose error names it."""
        request = messages.IncrementalAlterConfigsRequest
        for name in ("ssl.keystore.password", "listener.name.guarded.ssl.key.password", "my.own.password"):
            row = request.AlterableConfig(name=name, config_operation=0, value=LIVE_PASSWORD)
            resource = request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[row])
            self.root.ask(request(resources=[resource]), 1)
        describing = messages.DescribeConfigsRequest
        for synonyms in (False, True):
            self.root.ask(
                describing(
                    resources=[describing.DescribeConfigsResource(resource_type=4, resource_name="1")],
                    include_synonyms=synonyms,
                    include_documentation=True,
                ),
                4,
            )

    def live(self) -> None:
        """Logs in, adds users and tokens, changes settings, and meets a bug."""
        self.root = self.connect()
        log_in(self.root, user="root")
        add_scram_user(self.world, "carol", SCRAM_PASSWORD, "SCRAM-SHA-256")
        self.world.peers[-1].take = self.said.append
        log_in(self.connect(), "SCRAM-SHA-256", "carol", SCRAM_PASSWORD)
        self.root.ask(messages.DescribeUserScramCredentialsRequest(users=None), 0)
        self.wrong_logins()
        self.change_settings()
        self.delegation = create(user(self.world))
        log_in_by(self.connect(), self.delegation)
        describe(self.root, every=True)
        self.world.runtime.unexpected(RuntimeError(FAULT))
        self.world.runtime.metrics.unexpected_errors = 0


def test_no_secret_is_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In no line of the log at debug, no traceback, no answer, no trace or capture, no audit line. The broker's files
    hold what Kafka's hold too: passwords of settings that were changed live, and what SCRAM stores of a password."""
    watched = Watched(tmp_path, monkeypatch)
    watched.live()
    watched.world.stop()
    found = everything(watched.world, watched.traced, watched.lines, watched.said, watched.audit)
    # The search would find them: names of who logged in are there, and the bug's traceback.
    assert b"User:root" in found["audit"] and FAULT.encode() in found["log"] and b"alice" in found["trace as values"]
    assert b"ssl.keystore.password" in found["answers"] and b"token-refused" in found["log"]
    hmac = bytes(watched.delegation.hmac)
    secrets: dict[str, str | bytes] = {
        "a password of PLAIN": "alice-secret",
        "another": "root-secret",
        "a password of SCRAM": SCRAM_PASSWORD,
        "a wrong password": WRONG_PASSWORD,
        "the secret of delegation tokens": SECRET,
        "the password of a key store": KEY_STORE_PASSWORD,
        "the password of a key": KEY_PASSWORD,
        "the password of a trust store": TRUST_PASSWORD,
        "a private key": certificates.server().key_pem.splitlines()[1],
        "a token of an issuer": watched.token,
        "a password that was set live": LIVE_PASSWORD,
        "the HMAC of a delegation token": hmac,
        "the same as it is shown": password(hmac),
    }
    stored = {"a password that was set live"}
    told = {"the HMAC of a delegation token"}
    wrong = [
        (name, where)
        for name, secret in secrets.items()
        for where, content in found.items()
        if any(form in content for form in forms(secret))
        and not (where == "files" and name in stored)
        # Who made a token is told its HMAC, and its owner by DescribeDelegationToken, as in Kafka.
        and not (where == "answers" and name in told)
    ]
    assert wrong == []


def test_what_scram_stores_of_a_password_is_in_no_line_or_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The salted password, from which the keys come, and these keys."""
    watched = Watched(tmp_path, monkeypatch)
    watched.live()
    image = watched.world.broker.image
    record = credentials.find(image, "SCRAM-SHA-256", "carol")
    assert record is not None
    watched.world.stop()
    found = everything(watched.world, watched.traced, watched.lines, watched.said, watched.audit)
    for secret in (bytes(record.stored_key), bytes(record.server_key)):
        for where in set(found) - {"files"}:
            assert not any(form in found[where] for form in forms(secret)), where
        assert secret in found["files"]


def test_every_setting_that_is_a_password_is_known_as_one() -> None:
    """What is named like one has its type, so that it is described, traced and logged without its value."""
    like = re.compile(r"password|secret(?!\.key\.algorithm)|passphrase|\.jaas\.config$|keystore\.key$")
    found = {row.name for row in ROWS[BROKER].values() if like.search(row.name) and row.type not in ("password",)}
    assert found <= {"password.encoder.iterations"}, found


def test_a_client_that_knows_nothing_learns_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a stranger is told of a user who exists, and of one who does not, is alike but for salt and nonce."""
    watched = Watched(tmp_path, monkeypatch)
    watched.live()
    shapes = []
    for name in ("carol", "nobody"):
        peer = watched.connect()
        handshake(peer, "SCRAM-SHA-256")
        client = ScramClient("sha256", name, WRONG_PASSWORD)
        first = authenticate(peer, client.first())
        nonce, salt, iterations = bytes(first.auth_bytes).decode().split(",")
        authenticate(peer, client.final(bytes(first.auth_bytes)))
        watched.world.advance(1)
        last = peer.answers[-1]
        shapes.append((first.error_code, len(nonce), salt[:2], iterations, last.error_code, last.error_message))
    assert shapes[0] == shapes[1]
