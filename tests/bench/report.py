"""Reports: a table for the terminal, one for docs/bench.md, and JSON."""

from __future__ import annotations

import json
from collections import namedtuple

from rich.table import Table
from rich.text import Text

from .results import REFERENCE, SUBJECT, failed, reference_of

Figure = namedtuple("Figure", "title unit digits")
Figure.__doc__ = "How a figure is printed: title, unit, digits after the point."

FIGURES = {
    "requests_per_s": Figure("requests", "/s", 0),
    "records_per_s": Figure("records", "/s", 0),
    "mb_per_s": Figure("rate", "MB/s", 0),
    "p50_us": Figure("p50", "µs", 0),
    "p99_us": Figure("p99", "µs", 0),
    "p999_us": Figure("p99.9", "µs", 0),
    "cpu_us_per_request": Figure("CPU", "µs/req", 1),
    "cpu_ms_per_mb": Figure("CPU", "ms/MB", 2),
    "cpu_percent": Figure("CPU", "%", 0),
    "generator_cpu_percent": Figure("generator's CPU", "%", 0),
    "rss_mb": Figure("memory", "MB", 0),
    "start_ms": Figure("first answer", "ms", 0),
    "turn_ms": Figure("longest turn", "ms", 1),
    "first_ack_ms": Figure("first acknowledged record", "ms", 0),
    "idle_delta_mb": Figure("memory of idle connections", "MB", 1),
    "beside_idle_ratio": Figure("rate beside idle / without", "", 2),
    "beside_idle_cpu": Figure("CPU per request beside idle / without", "", 2),
    "strangers_mb": Figure("memory of strangers", "MB", 1),
    "beside_strangers_p50": Figure("p50 beside strangers / without", "x", 2),
    "beside_strangers_p99": Figure("p99 beside strangers / without", "x", 2),
    "answer_ms": Figure("answer", "ms", 2),
    "page_ms": Figure("page", "ms", 2),
    "logins_per_s": Figure("connections", "/s", 0),
    "cpu_us_per_login": Figure("CPU per connection", "µs", 0),
    "beside_without": Figure("rate with / without", "x", 3),
    "cpu_beside_without": Figure("CPU per request with / without", "x", 3),
    "transactions_per_s": Figure("transactions", "/s", 0),
    "committed_ratio": Figure("read_committed / read_uncommitted", "x", 2),
    "first_record_ms": Figure("first record", "ms", 1),
    "settle_ms": Figure("settled", "ms", 0),
    "times_one_sync": Figure("rate / one sync per request", "x", 1),
    "large_mb_per_s": Figure("rate of the large batches", "MB/s", 0),
    "seconds": Figure("time", "s", 1),
    "failover_ms": Figure("first record elsewhere", "ms", 0),
    "client_errors": Figure("errors at the client", "", 0),
    "longest_pause_ms": Figure("longest pause", "ms", 0),
    "processes_ratio": Figure("two processes / one", "x", 2),
    "one_process_rate": Figure("requests of one process", "/s", 0),
    "two_processes_rate": Figure("requests of two", "/s", 0),
    "one_process_cpu": Figure("CPU of one process", "%", 0),
    "two_processes_cpu": Figure("CPU of two", "%", 0),
}
COLUMNS = (
    "requests_per_s", "mb_per_s", "p50_us", "p99_us", "p999_us", "cpu_us_per_request", "cpu_ms_per_mb", "rss_mb",
)  # fmt: skip
RATES = ("requests_per_s", "mb_per_s", "transactions_per_s")
HIDDEN = ("cpu_percent", "generator_cpu_percent")
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def number(value, digits=0):
    """A number with thin thousands, `-` for none: 12345.6 -> '12 346'."""
    return "-" if value is None else f"{value:,.{digits}f}".replace(",", " ")


def floor_text(floor):
    """A floor as words: 'requests >= 1.6x' or 'first answer <= 100 ms'."""
    figure = FIGURES[floor["figure"]]
    limit = f"{floor['limit']:g}x" if floor["of"] == "ratio" else f"{floor['limit']:g} {figure.unit}".rstrip()
    return f"{figure.title} {floor['relation']} {limit}"


def verdict(summary):
    """One word for a case: met, MISSED, FAILED, skipped, or - without a floor."""
    if summary["error"]:
        return "FAILED"
    if summary["skipped"]:
        return "skipped"
    outcomes = [floor["met"] for floor in summary["floors"]]
    if False in outcomes:
        return "MISSED"
    return "met" if True in outcomes else "-"


def _brokers(summaries):
    """The names of the brokers that were measured."""
    return dict.fromkeys(name for summary in summaries for name in summary["figures"])


def load_table(summaries):
    """A rich table of the loads: for each case a row per broker and one of ratios."""
    reference = reference_of(_brokers(summaries))
    table = Table(title=f"Loads: medians of the rounds; ratio = pykafkad / {reference}", header_style="bold")
    table.add_column("case", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in COLUMNS:
        table.add_column(f"{FIGURES[name].title}\n{FIGURES[name].unit}", justify="right", no_wrap=True)
    for summary in summaries:
        rows = list(summary["figures"].items())
        if not any(name in figures for _, figures in rows for name in RATES):
            continue
        for broker, figures in rows:
            cells = [number(figures.get(name), FIGURES[name].digits) for name in COLUMNS]
            table.add_row(summary["name"] if broker == rows[0][0] else "", broker, *cells)
        ratio = summary["ratios"]
        cells = [f"{ratio[name]:.2f}x" if name in ratio else "" for name in COLUMNS]
        table.add_row("", "ratio", *cells, style="bold", end_section=True)
    return table


def other_table(summaries):
    """A rich table of figures without throughput: starts, memory, idle connections."""
    table = Table(title="Life", header_style="bold")
    reference = reference_of(_brokers(summaries))
    for title in ("case", "figure", reference, SUBJECT, "ratio"):
        table.add_column(title, no_wrap=True, justify="left" if title in ("case", "figure") else "right")
    for summary in summaries:
        figures = summary["figures"]
        names = dict.fromkeys(name for of_broker in figures.values() for name in of_broker)
        for name in names:
            if name not in COLUMNS[:-1] and name not in HIDDEN and (name != "rss_mb" or not set(RATES) & set(names)):
                figure = FIGURES[name]
                values = [number(figures.get(broker, {}).get(name), figure.digits) for broker in (reference, SUBJECT)]
                ratio = summary["ratios"].get(name) if _has_ratio(name, figures.get(reference, {}).get(name)) else None
                title = f"{figure.title}, {figure.unit}" if figure.unit else figure.title
                table.add_row(summary["name"], title, *values, "" if ratio is None else f"{ratio:.2f}x")
    return table


def floor_table(summaries):
    """A rich table of every floor and what was reached, with what failed or was skipped."""
    table = Table(title="Floors", header_style="bold")
    for title in ("case", "floor", "reached", ""):
        table.add_column(title, justify="right" if title == "reached" else "left")
    for summary in summaries:
        for floor in summary["floors"]:
            word, colour = {True: ("met", "green"), False: ("MISSED", "red"), None: ("-", "")}[floor["met"]]
            table.add_row(summary["name"], floor_text(floor), number(floor["value"], 2), word, style=colour)
        if summary["error"] or summary["skipped"]:
            table.add_row(summary["name"], summary["error"] or summary["skipped"], "", verdict(summary), style="yellow")
    return table


def markdown_table(summaries, machine):
    """The table of docs/bench.md: one row per case, `Kafka -> pykafkad (ratio)` in each cell."""
    lines = [
        f"Medians of alternating runs beside Apache Kafka 4.3.1 (`-Xms1g -Xmx1g`) on {machine['machine']}, Python "
        f"{machine['python']}, everything on loopback (TCP {machine['tcp']}). Each cell: Kafka → pykafkad (ratio).",
        "",
        "| load | throughput | p50; p99 | broker CPU | memory, MB | floor |",
        "|---|---|---|---|---|---|",
    ]
    for summary in summaries:
        if not summary["figures"]:
            lines.append(
                f"| {summary['what']} | {verdict(summary)}: {summary['error'] or summary['skipped']} | | | | |"
            )
            continue
        figures = summary["figures"]
        is_load = any(name in of_broker for of_broker in figures.values() for name in ("p50_us", "records_per_s"))
        rate = _first(
            figures,
            *(("mb_per_s",) if _is_bulk(summary) else ("requests_per_s", "records_per_s", "transactions_per_s")),
        )
        cells = [
            rate if is_load else _lone(figures),
            "; ".join(filter(None, (_pair(figures, "p50_us"), _pair(figures, "p99_us")))),
            _first(figures, *(("cpu_ms_per_mb",) if _is_bulk(summary) else ("cpu_us_per_request", "cpu_ms_per_mb"))),
            _pair(figures, "rss_mb", unit=False),
            "; ".join(f"{floor_text(floor)} {_tick(floor)}" for floor in summary["floors"]) or "-",
        ]
        lines.append(f"| {summary['what']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _is_bulk(summary):
    """Whether megabytes say more about this case than requests do."""
    wants = {floor["figure"] for floor in summary["floors"]}
    return "mb_per_s" in wants or any(size in summary["name"] for size in ("64KB", "1MB"))


def _tick(floor):
    return {True: "✓", False: "✗ missed", None: "?"}[floor["met"]]


def _pair(figures, name, unit=True):
    """'1 -> 2 unit (2.00x)', or '' when pykafkad or Kafka has no such figure."""
    kafka, ours = figures.get(REFERENCE, {}).get(name), figures.get(SUBJECT, {}).get(name)
    figure = FIGURES[name]
    if kafka is None and ours is None:
        return ""
    ratio = f" ({ours / kafka:.2f}x)" if ours is not None and _has_ratio(name, kafka) else ""
    text = f"{number(kafka, figure.digits)} → {number(ours, figure.digits)}"
    return f"{text} {figure.unit if unit else ''}".rstrip() + ratio


def _has_ratio(name, kafka):
    """Whether a ratio to Kafka's figure is meaningful: not if Kafka's figure prints as 0 or is a ratio itself."""
    figure = FIGURES[name]
    return bool(kafka and figure.unit and round(kafka, figure.digits))


def _first(figures, *names):
    return next((text for name in names if (text := _pair(figures, name))), "")


def _lone(figures):
    """The figures of a case that has no throughput."""
    names = dict.fromkeys(name for of_broker in figures.values() for name in of_broker if name != "rss_mb")
    return "; ".join(f"{FIGURES[name].title} {_pair(figures, name)}" for name in names)


def rewrite(text, table):
    """`text` with the table in place of the text between the markers. Raises ValueError without markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the file has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def closing_line(summaries):
    """A rich line with the verdict."""
    missed = [summary["name"] for summary in summaries if failed(summary)]
    skipped = [f"{summary['name']} ({summary['skipped']})" for summary in summaries if summary["skipped"]]
    passed = len(summaries) - len(missed) - len(skipped)
    text = Text(f"{passed} cases passed, {len(missed)} missed or failed, {len(skipped)} skipped")
    for title, names in (("missed or failed", missed), ("skipped", skipped)):
        if names:
            text.append(f"\n{title}: {', '.join(names)}")
    return text


def to_json(summaries, machine, options):
    """All results, with every round, as text."""
    return json.dumps({"machine": machine, "options": options, "cases": summaries}, indent=1)
