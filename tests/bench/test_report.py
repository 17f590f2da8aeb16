"""Medians, ratios, verdicts and tables."""

from collections import namedtuple
from pathlib import Path

import pytest

from tests.bench import report, results
from tests.bench.__main__ import parse, with_earlier
from tests.bench.cases import CASES, Floor, at_least, at_most, no_more_than

Case = namedtuple("Case", "name what floors")
MACHINE = {"machine": "2 x C", "python": "3.11", "tcp": "cubic"}
CASE = Case("produce-x", "Produce, x", (at_least("requests_per_s", 2.0), at_most("cpu_us_per_request", 0.5)))


def two_brokers(ours, kafka, cpu_ours=1.0, cpu_kafka=10.0):
    """Three rounds of each broker with the given requests/s."""
    return {
        "kafka": [{"requests_per_s": rate, "cpu_us_per_request": cpu_kafka} for rate in kafka],
        "pykafkad": [{"requests_per_s": rate, "cpu_us_per_request": cpu_ours} for rate in ours],
    }


def test_the_ratio_is_that_of_the_medians():
    """One outlier does not change the ratio."""
    summary = results.summarise(CASE, two_brokers(ours=[100, 9999, 90], kafka=[50, 40, 1]))
    assert summary["ratios"]["requests_per_s"] == 100 / 40
    assert [floor["met"] for floor in summary["floors"]] == [True, True]
    assert report.verdict(summary) == "met" and not results.failed(summary)


def test_a_missed_floor_fails_the_run():
    """The floor is 2x, and the ratio is 1.5x."""
    summary = results.summarise(CASE, two_brokers(ours=[60], kafka=[40]))
    assert [floor["met"] for floor in summary["floors"]] == [False, True]
    assert report.verdict(summary) == "MISSED" and results.failed(summary)


def test_a_ratio_without_kafkas_figure_is_undecided():
    """An absolute floor still counts."""
    case = Case("start", "Start", (at_most("start_ms", 0.5), no_more_than("start_ms", 100)))
    summary = results.summarise(case, {"pykafkad": [{"start_ms": 70.0}]})
    assert [floor["met"] for floor in summary["floors"]] == [None, True]


def test_an_earlier_pykafkad_may_be_the_reference():
    """The ratios and the tables are then to its figures."""
    rounds = {"before": [{"requests_per_s": 50.0, "rss_mb": 20.0}], "pykafkad": [{"requests_per_s": 100.0}]}
    summary = results.summarise(CASE._replace(floors=()), rounds)
    assert summary["ratios"] == {"requests_per_s": 2.0}
    assert "pykafkad / before" in report.load_table([summary]).title
    assert [column.header for column in report.other_table([summary]).columns][2] == "before"


def test_another_checkout_is_chosen_by_its_folder(tmp_path, capsys):
    """No floor is judged beside it, as floors speak of Kafka; a folder that is none is named."""
    here = Path(report.__file__).parents[2]
    assert not any(case.floors for case in parse(["--before", str(here)]).chosen)
    for words, problem in (
        (["--before", str(tmp_path)], "has no pykafkad/__init__.py"),
        (["--before", str(here), "--against-only", "kafka"], "--before goes with neither"),
    ):
        with pytest.raises(SystemExit):
            parse(words)
        assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "kafka", "ours", "cell"),
    [
        ("rss_mb", 400.0, 20.0, "400 → 20 (0.05x)"),
        ("idle_delta_mb", 0.012, 2.9, "0.0 → 2.9 MB"),
        ("beside_idle_cpu", 0.94, 1.01, "0.94 → 1.01"),
    ],
    ids=["figures", "nothing-as-printed", "ratios-already"],
)
def test_a_ratio_is_shown_where_it_is_meaningful(name, kafka, ours, cell):
    """A multiple of zero is not shown."""
    summary = results.summarise(CASE, {"kafka": [{name: kafka}], "pykafkad": [{name: ours}]})
    line = report.markdown_table([summary], MACHINE).splitlines()[-1]
    assert f"{cell} |" in line and line.count("x)") == cell.count("x)")


def test_a_failed_case_says_why():
    """The figures of earlier rounds are kept, but the case fails."""
    summary = results.summarise(CASE, two_brokers(ours=[100], kafka=[10]), trouble="LoadFailed: error code 3")
    assert report.verdict(summary) == "FAILED" and results.failed(summary)
    assert "LoadFailed: error code 3" in report.closing_line([summary]).plain or results.failed(summary)


def test_case_names_are_unique_and_floors_have_known_figures():
    """The table of cases fits the table of figures."""
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        for floor in case.floors:
            assert floor.figure in report.FIGURES and floor.relation in (">=", "<=") and floor.of in ("ratio", "value")


def test_the_floors_are_those_of_this_list():
    """Floors change only on purpose, together with this list."""
    promised = {
        "produce-1rec-c50": [("requests_per_s", 1.6), ("cpu_us_per_request", 0.5)],
        "produce-1rec-c6d5": [("requests_per_s", 2.2)],
        "produce-1KB-c6d5": [("requests_per_s", 2.0)],
        "produce-1rec-c1": [("p50_us", 0.8)],
        "produce-16KB": [("mb_per_s", 1.0), ("cpu_ms_per_mb", 0.7)],
        "paced-beside-large": [("p99_us", 1.0)],
        "produce-synced-c50": [("times_one_sync", 5.0)],
        "fetch-4KB": [("mb_per_s", 1.5), ("cpu_ms_per_mb", 0.6)],
        "fetch-16KB": [("mb_per_s", 1.5), ("cpu_ms_per_mb", 0.6)],
        "produce-64KB": [("mb_per_s", 1.15)],
        "produce-1MB": [("mb_per_s", 1.15)],
        "fetch-64KB": [("mb_per_s", 1.0), ("cpu_ms_per_mb", 0.6)],
        "fetch-1MB": [("mb_per_s", 1.0), ("cpu_ms_per_mb", 0.6)],
        "tls-produce-16KB": [("mb_per_s", 1.0)],
        "tls-fetch-16KB": [("mb_per_s", 1.0)],
        "tls-handshakes": [("logins_per_s", 1.0), ("cpu_us_per_login", 0.7)],
        "scram-256-logins": [("logins_per_s", 1.0)],
        "scram-512-logins": [("logins_per_s", 1.0)],
        "acls-1000": [("beside_without", 0.95)],
        "quotas": [("beside_without", 0.97)],
        "strangers-sasl": [("beside_strangers_p99", 1.2), ("strangers_mb", 20)],
        "strangers-tls": [("beside_strangers_p99", 1.2), ("strangers_mb", 20)],
        "transactions": [("transactions_per_s", 1.5), ("p99_us", 0.6)],
        "fetch-committed-16KB": [("committed_ratio", 0.95)],
        "group-fresh-member": [("first_record_ms", 0.5)],
        "group-settle-consumer": [("settle_ms", 1.0)],
        "group-settle-classic": [("settle_ms", 1.0)],
        "group-heartbeats": [("cpu_us_per_request", 0.5)],
        "share-fetch": [("records_per_s", 1.0)],
        "start": [("start_ms", 100)],
        "start-embedded": [("start_ms", 5)],
        "start-3-brokers": [("start_ms", 150), ("rss_mb", 45)],
        "replicated-1rec-c50": [("requests_per_s", 1.0), ("cpu_us_per_request", 0.5)],
        "replicated-1rec-c1": [("p50_us", 0.8)],
        "replicated-16KB": [("mb_per_s", 0.8)],
        "replicated-1rec-c50-processes": [("requests_per_s", 1.0), ("cpu_us_per_request", 0.5)],
        "replicated-1rec-c1-processes": [("p50_us", 0.8)],
        "replicated-16KB-processes": [("mb_per_s", 0.8)],
        "two-processes": [("processes_ratio", 1.6)],
        "failover": [("failover_ms", 0.5)],
        "failover-10000": [("failover_ms", 1.0)],
        "failover-turns": [("turn_ms", 50)],
        "controlled-shutdown": [("client_errors", 0)],
        "checkpoint-15000": [("turn_ms", 20)],
        "idle-memory": [("rss_mb", 30)],
        "idle-10000": [("idle_delta_mb", 15), ("beside_idle_cpu", 1.05)],
        "partitions-10000": [("first_ack_ms", 2000)],
        "describe-settings": [("answer_ms", 2.0)],
        "describe-partitions": [("answer_ms", 2.0), ("page_ms", 2.0)],
        "validate-topics": [("answer_ms", 2.0)],
        "recovery-1GB": [("mb_per_s", 1.0)],
        "recovery-1GB-small": [("mb_per_s", 1.0)],
        "compaction": [("mb_per_s", 1.0)],
        "spark-small-partitions": [("seconds", 0.25)],
    }
    assert {case.name: [(f.figure, f.limit) for f in case.floors] for case in CASES if case.floors} == promised


def test_numbers_are_grouped_by_thin_spaces():
    """Thin spaces make figures readable and keep columns aligned."""
    assert report.number(1234567.4) == "1 234 567"
    assert report.number(None) == "-"
    assert report.floor_text(Floor("start_ms", "<=", 100, "value")._asdict()) == "first answer <= 100 ms"


def test_the_documents_table_has_one_row_for_each_case():
    """A cell has Kafka's figure, pykafkad's and the ratio."""
    summary = results.summarise(CASE, two_brokers(ours=[100_000], kafka=[50_000]))
    skipped = results.summarise(Case("s", "Spark", ()), {}, skipped="no pyspark")
    rows = [line for line in report.markdown_table([summary, skipped], MACHINE).splitlines() if line.startswith("| ")]
    assert len(rows) == 3
    assert "50 000 → 100 000 /s (2.00x)" in rows[1] and "requests >= 2x ✓" in rows[1]
    assert "skipped: no pyspark" in rows[2]


def test_only_the_text_between_the_markers_is_replaced():
    """The text around the table stays the same."""
    text = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    assert report.rewrite(text, "new") == f"before\n{report.BEGIN}\nnew\n{report.END}\nafter\n"
    with pytest.raises(ValueError, match="bench: begin"):
        report.rewrite("no markers", "new")


def test_a_later_run_replaces_its_own_cases_in_an_earlier_one():
    """A long bench can run in parts. The tables keep the order of the cases."""
    first, second = CASES[0].name, CASES[1].name
    earlier = [{"name": second, "run": 1}, {"name": "a case of the past", "run": 1}]
    assert with_earlier([{"name": first, "run": 2}], earlier) == [{"name": first, "run": 2}, {"name": second, "run": 1}]
    assert with_earlier([{"name": second, "run": 2}], earlier) == [{"name": second, "run": 2}]


CLUSTER_CASES = ("replicated-", "two-processes", "failover", "controlled-shutdown")
# Cases whose rows wait for a quiet machine. The document says so.
NOT_MEASURED = ("tls-", "scram-", "acls-", "quotas", "strangers-", "start-3-brokers", *CLUSTER_CASES)


def test_the_document_has_a_row_for_every_case_with_its_floors():
    """The document has the output of a full run. A new case must be added."""
    text = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
    rows = text.partition(report.BEGIN)[2].partition(report.END)[0].splitlines()
    for case in CASES:
        if case.name.startswith(NOT_MEASURED):
            assert f"`{case.name}`" in text
            continue
        (row,) = [row for row in rows if row.startswith(f"| {case.what} |")]
        assert all(f"{report.floor_text(floor._asdict())} ✓" in row for floor in case.floors), row
