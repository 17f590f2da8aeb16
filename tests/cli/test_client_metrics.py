"""`pykafkad client-metrics` prints what clients pushed."""

from __future__ import annotations

import json

import pytest

from pykafkad.__main__ import main
from pykafkad.server.client_metrics import FILE_NAME, OLD_FILE_NAME


def line(client, instance, **values):
    points = {name: {"attributes": {"topic": "t"}, "time_ms": 1, "value": value} for name, value in values.items()}
    metrics = [{"name": name, "type": "gauge", "points": [point]} for name, point in points.items()]
    return (
        json.dumps({"received_ms": 1000, "client_id": client, "client_instance_id": instance, "metrics": metrics})
        + "\n"
    )


@pytest.fixture
def directory(tmp_path):
    (tmp_path / OLD_FILE_NAME).write_text(line("a", "A", lag=1, rate=0.5))
    (tmp_path / FILE_NAME).write_text(line("b", "B", lag=2) + line("a", "A", lag=3) + '{"received_ms": 10')
    return tmp_path


def printed(capsys, *arguments):
    assert main(["client-metrics", *map(str, arguments)]) == 0
    return [row.split("\t") for row in capsys.readouterr().out.splitlines()[1:]]


def test_metrics_are_printed_as_a_table(capsys, directory):
    rows = printed(capsys, directory)
    assert rows[0] == ["1970-01-01T00:00:01.000+00:00", "a", "A", "lag", "gauge", "1", "topic=t"]
    assert [(row[1], row[3], row[5]) for row in rows] == [
        ("a", "lag", "1"),
        ("a", "rate", "0.5"),
        ("b", "lag", "2"),
        ("a", "lag", "3"),
    ]
    assert [row[5] for row in printed(capsys, directory, "--client-id", "a", "--metric", "la")] == ["1", "3"]
    assert sorted(row[5] for row in printed(capsys, directory, "--latest")) == ["2", "3"]


def test_json_prints_each_push_on_a_line(capsys, directory):
    assert main(["client-metrics", str(directory), "--json", "--metric", "rate"]) == 0
    pushes = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [len(push["metrics"]) for push in pushes] == [1, 0, 0]


def test_those_of_several_brokers_are_printed_in_the_order_of_time(capsys, tmp_path):
    for number, received_ms in ((1, 3000), (2, 1000), (3, 2000)):
        folder = tmp_path / f"broker{number}"
        folder.mkdir()
        (folder / "meta.properties").write_text("version=1\n")
        (folder / FILE_NAME).write_text(line("a", "A", lag=number).replace("1000", str(received_ms), 1))
    assert [row[5] for row in printed(capsys, tmp_path)] == ["2", "3", "1"]
    assert [row[5] for row in printed(capsys, tmp_path / "broker3")] == ["3"]
    assert [row[5] for row in printed(capsys, tmp_path, "--latest")] == ["1"]


def test_a_directory_that_is_none_is_a_failure(capsys, tmp_path):
    assert main(["client-metrics", str(tmp_path / "nothing")]) == 1
    assert f"{tmp_path / 'nothing'} is not a directory" in capsys.readouterr().err


def test_a_directory_without_metrics_is_a_failure(capsys, tmp_path):
    assert main(["client-metrics", str(tmp_path)]) == 1
    assert "pykafkad.client.telemetry.enable" in capsys.readouterr().err


def test_a_histogram_shows_its_count_and_sum(capsys, tmp_path):
    metric = {"name": "h", "type": "histogram", "points": [{"attributes": {}, "time_ms": 1, "count": 2, "sum": 3.5}]}
    push = {"received_ms": 1000, "client_id": "a", "client_instance_id": "A", "metrics": [metric]}
    (tmp_path / FILE_NAME).write_text(json.dumps(push) + "\n")
    assert printed(capsys, tmp_path)[0][5] == "count=2,sum=3.5"
