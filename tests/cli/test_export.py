"""`pykafkad export`: a topic as a Parquet file, in row groups of bounded size, whole or not there."""

import os
import sys

import pyarrow
import pytest
from pyarrow import parquet

from pykafkad.__main__ import main
from pykafkad.cli import export
from pykafkad.testing import Broker, NewRecord

# kafka-python reads its resources as Python 3.11 no longer likes it.
pytestmark = pytest.mark.filterwarnings("ignore:(open|read)_text is deprecated:DeprecationWarning")


@pytest.fixture(scope="module")
def broker():
    with Broker() as broker:
        broker.create_topic("orders", 2)
        values = [NewRecord(f"value {number}", key="k", partition=number % 2) for number in range(100)]
        broker.produce("orders", *values)
        broker.create_topic("empty")
        broker.produce("binary", b"ok", b"\xff")
        yield broker


def run(broker, *arguments):
    return main(["export", *map(str, arguments), "--bootstrap", broker.bootstrap])


def test_a_topic_becomes_a_file(broker, tmp_path, monkeypatch):
    """Row groups end at their bound; each partition keeps its order."""
    monkeypatch.setattr(export, "GROUP_RECORDS", 30)
    file = tmp_path / "orders.parquet"
    assert run(broker, "orders", file, "--value", "text") == 0
    assert [parquet.ParquetFile(file).metadata.row_group(each).num_rows for each in range(4)] == [30, 30, 30, 10]
    rows = parquet.read_table(file).to_pylist()
    for partition in range(2):
        chosen = [row for row in rows if row["partition"] == partition]
        assert [row["value"] for row in chosen] == [f"value {number}" for number in range(partition, 100, 2)]
        assert [row["offset"] for row in chosen] == list(range(50))
        assert {row["key"] for row in chosen} == {b"k"}
    assert os.listdir(tmp_path) == ["orders.parquet"]


def test_a_group_of_many_bytes_ends_too(broker, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "GROUP_BYTES", 60)
    file = tmp_path / "orders.parquet"
    assert run(broker, "orders", file, "--partition", 1) == 0
    table = parquet.ParquetFile(file)
    assert table.metadata.num_rows == 50 and table.num_row_groups > 5
    assert table.schema_arrow.field("value").type == pyarrow.binary()


def test_a_topic_without_records_becomes_a_file_without_rows(broker, tmp_path):
    file = tmp_path / "empty.parquet"
    assert run(broker, "empty", file) == 0
    assert parquet.read_table(file).num_rows == 0


def test_a_file_that_is_there_stays(broker, tmp_path, capsys):
    file = tmp_path / "orders.parquet"
    file.write_text("mine")
    assert run(broker, "orders", file) == 2
    assert capsys.readouterr().err == f"pykafkad: {file}: exists; --force writes over it\n"
    assert file.read_text() == "mine"
    assert run(broker, "orders", file, "--force") == 0
    assert parquet.read_table(file).num_rows == 100


def test_a_failure_leaves_no_file(broker, tmp_path, capsys):
    file = tmp_path / "binary.parquet"
    assert run(broker, "binary", file, "--value", "text") == 1
    assert "the value of binary-0@1 is no UTF-8 text: invalid start byte at byte 0" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there(broker, tmp_path, capsys):
    file = tmp_path / "none" / "orders.parquet"
    assert run(broker, "orders", file) == 1
    assert f"{file}.part" in capsys.readouterr().err


def test_without_the_package_it_says_what_to_install(broker, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(broker, "orders", tmp_path / "a.parquet") == 2
    remedy = "pip install 'pykafkad[table]'"
    assert capsys.readouterr().err == f"pykafkad: records as a table: the package pyarrow is not installed; {remedy}\n"
