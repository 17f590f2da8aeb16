"""The file of pushed metrics: bounded, and whole lines."""

from __future__ import annotations

from pykafkad.disk import Disk
from pykafkad.server import client_metrics
from pykafkad.server.client_metrics import FILE_NAME, OLD_FILE_NAME, ClientMetrics, append_line


def test_a_full_file_becomes_the_old_one(tmp_path, monkeypatch):
    monkeypatch.setattr(client_metrics, "FILE_BYTES", 100)
    for number in range(40):
        append_line(Disk(), str(tmp_path), b"%030d" % number)
    lines = [line for name in (OLD_FILE_NAME, FILE_NAME) for line in (tmp_path / name).read_text().split()]
    assert lines and [int(line) for line in lines] == [36, 37, 38, 39][-len(lines) :]
    assert max((tmp_path / name).stat().st_size for name in (OLD_FILE_NAME, FILE_NAME)) <= 100
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted((OLD_FILE_NAME, FILE_NAME))


def test_a_push_that_takes_too_long_a_line_is_counted(tmp_path, monkeypatch):
    from pykafkad.handlers.telemetry import ClientInstance
    from tests.handlers.telemetry_surroundings import ID, otlp, push_request

    monkeypatch.setattr(client_metrics, "LINE_BYTES", 1000)
    instance = ClientInstance(ID, {"client_id": "a"}, [], 1000, 0)
    push = client_metrics._Push(
        instance, push_request(1, metrics=otlp([(f"m{number}", number) for number in range(50)])), 5, 1 << 20
    )
    assert push.keep(Disk(), str(tmp_path)) == 50
    text = (tmp_path / FILE_NAME).read_text()
    assert '"left_out": 50' in text and len(text) < 1000


def test_software_is_shared_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(client_metrics, "MAX_SOFTWARE", 2)
    metrics = ClientMetrics(None)
    first = metrics.shared_software("lib", "1")
    assert metrics.shared_software("".join(("l", "ib")), "1") is first
    assert [metrics.shared_software("lib", str(number)) for number in range(9)] == [
        ("lib", str(number)) for number in range(9)
    ]
    assert len(metrics._software) == 2 and metrics.shared_software("lib", "1") is first
