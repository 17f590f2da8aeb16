"""What `pykafkad record` writes: no secrets, for its owner alone, and a failure that names its cause."""

from __future__ import annotations

import errno
import json
import stat
import sys
from struct import pack

import pytest

from pykafkad.__main__ import main
from pykafkad.differential import links, recording
from pykafkad.differential.tee import Tee
from pykafkad.testing import Broker

PASSWORD = b"alice-pass-0471"
HANDSHAKE, AUTHENTICATE = 17, 36


def request(key, version, body=b""):
    """A frame with a header of no client id."""
    return pack(">hhih", key, version, 7, -1) + body


def ask(link, frame):
    link.send(frame)
    return link.receive()


def plain():
    token = b"\0alice\0" + PASSWORD
    return pack(">i", len(token)) + token


@pytest.fixture
def noted():
    """A connection to a broker with logins, by a tee, and what the tee has noted."""
    events = []
    with Broker(users={"alice": PASSWORD.decode()}) as broker:
        tee = Tee(("127.0.0.1", 0), links.address(broker.bootstrap), note=events.append)
        tee.start()
        link = links.connect((tee.host, tee.port))
        yield link, events
        link.close()
        tee.close()


def test_passwords_are_not_noted(noted):
    """The broker gets them all the same."""
    link, events = noted
    assert ask(link, request(HANDSHAKE, 1, b"\0\5PLAIN"))[4:6] == b"\0\0"
    assert ask(link, request(AUTHENTICATE, 0, plain()))[4:6] == b"\0\0"
    frames = [each.frame for each in events if each.is_request]
    assert [frame[1] for frame in frames] == [HANDSHAKE, AUTHENTICATE]
    assert not [frame for frame in frames if PASSWORD in frame]


def test_a_login_that_cannot_be_read_is_not_noted(noted):
    link, events = noted
    ask(link, request(AUTHENTICATE, 0, plain()[:-2]))
    assert not [each for each in events if each.is_request]


def test_a_login_of_bare_tokens_is_refused(noted):
    """Its tokens are no requests: nothing would tell that one is a password."""
    link, events = noted
    assert ask(link, request(HANDSHAKE, 0, b"\0\5PLAIN")) is None
    assert not events


def test_only_its_owner_reads_a_recording(tmp_path):
    path = tmp_path / "run.recording"
    with Broker() as broker:
        assert main(["record", str(path), "--from", broker.bootstrap, "--", sys.executable, "-c", ""]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(json.loads(path.read_text())) == ["recording", "by"]


def test_an_address_that_is_taken_leaves_no_file(tmp_path, capsys):
    path = tmp_path / "run.recording"
    with Broker() as broker:
        assert main(["record", str(path), "--from", broker.bootstrap, "--listen", broker.bootstrap]) == 2
        assert f"--listen {broker.bootstrap}: Address already in use" in capsys.readouterr().err
    assert not path.exists()


PROGRAM = """
import os
from pykafkad.differential import links
link = links.connect(links.address(os.environ["PYKAFKAD_BOOTSTRAP"]))
link.send(bytes([0, 18, 0, 0, 0, 0, 0, 7, 255, 255]))
assert link.receive()
"""


def test_a_full_disk_is_told(tmp_path, capsys, monkeypatch):
    """The client is served all the same."""
    path = tmp_path / "run.recording"

    def full(event):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(recording, "line", full)
    with Broker() as broker:
        assert main(["record", str(path), "--from", broker.bootstrap, "--", sys.executable, "-c", PROGRAM]) == 1
    assert f"{path}: No space left on device; the recording is not whole" in capsys.readouterr().err


def test_deep_json_is_no_recording():
    with pytest.raises(recording.BadRecording, match="r: line 1 is no JSON"):
        list(recording.read("r", ["[" * 200_000]))
