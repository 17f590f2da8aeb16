"""`python -m tests.bench`: runs the cases and prints the tables."""

from __future__ import annotations

import argparse
import json
import resource
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from . import held_memory, needs, process, report
from .brokers import Before, Kafka, Pykafkad
from .cases import CASES
from .loadgen import LoadFailed
from .results import failed
from .runner import Bench

FILE_WIDTH = 120
BROKERS = (Kafka.name, Pykafkad.name)


def parse(arguments=None):
    """The options, checked."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--cases", help="names from --list, comma-separated; a name's beginning picks all that share it"
    )
    parser.add_argument("--list", action="store_true", help="list the cases and their floors, and end")
    parser.add_argument(
        "--rounds", type=int, help="how often each broker is measured in each case (default 3; quick 1)"
    )
    parser.add_argument("--seconds", type=float, help="measured seconds of each load run (default 4; quick 1)")
    parser.add_argument("--warmup", type=float, help="seconds before the measured ones (default 1; quick 0.3)")
    parser.add_argument(
        "--quick", action="store_true", help="short runs of everything: shows that it works, proves no floor"
    )
    parser.add_argument("--against-only", choices=BROKERS, help="run one broker alone, as for profiling")
    parser.add_argument(
        "--before",
        metavar="CHECKOUT",
        type=checkout,
        help="compare with the pykafkad of another checkout instead of Kafka; no floor is judged",
    )
    parser.add_argument(
        "--kafka-libs", metavar="FOLDER", help="Kafka's jars (default: resolved by Maven into the cache)"
    )
    parser.add_argument(
        "--document", metavar="FILE", type=Path, help="write the table between the markers of this file"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every figure to this file")
    parser.add_argument(
        "--add", action="store_true", help="keep the cases of the --json file that are not measured now"
    )
    parser.add_argument(
        "--produce-version", type=int, default=7, choices=(7, 13), help="version of the Produce requests"
    )
    parser.add_argument("--fetch-version", type=int, default=11, choices=(11, 17), help="version of the Fetch requests")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs pykafkad")
    parser.add_argument("--folder", help="where the brokers keep their data (default: the temporary folder)")
    parser.add_argument(
        "--hold-memory",
        metavar="GB",
        type=float,
        default=0,
        help="on a virtual machine whose host takes free memory back: keep about as much as is free from it",
    )
    parser.add_argument("--verbose", action="store_true", help="print tracebacks of failed cases")
    options = parser.parse_args(arguments)
    quick = options.quick
    options.rounds = options.rounds or (1 if quick else 3)
    options.seconds = options.seconds or (1.0 if quick else 4.0)
    options.warmup = options.warmup if options.warmup is not None else (0.3 if quick else 1.0)
    options.chosen = chosen(parser, options.cases)
    if options.add and options.json is None:
        parser.error("--add needs --json")
    if options.before is not None:
        if options.against_only or options.document:
            parser.error("--before goes with neither --against-only nor --document")
        options.chosen = tuple(case._replace(floors=()) for case in options.chosen)
    return options


def checkout(text):
    """The folder of another checkout."""
    folder = Path(text).resolve()
    if not (folder / "pykafkad" / "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"{text} is not a checkout of pykafkad: it has no pykafkad/__init__.py")
    return folder


def names_of_brokers(options):
    """The brokers that are measured, the reference first."""
    if options.against_only:
        return [options.against_only]
    return [Before.name if options.before else Kafka.name, Pykafkad.name]


def chosen(parser, names):
    """The cases whose names begin with one of the comma-separated names; all without names."""
    if not names:
        return CASES
    wanted = names.split(",")
    for name in wanted:
        if not any(case.name.startswith(name) for case in CASES):
            parser.error(f"--cases: no case begins with {name!r}; --list shows them")
    return tuple(case for case in CASES if case.name.startswith(tuple(wanted)))


def raise_file_limit():
    """Allows this process and the brokers as many open files as the system lets them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def measure(bench, options, console):
    """The summaries of the chosen cases, in order; shows progress."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    summaries = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting and warming the brokers", total=len(options.chosen))
        bench.start(names_of_brokers(options), warm_seconds=1.5 if options.quick else 18.0)
        for case in options.chosen:
            summary = bench.run(case, lambda text: progress.update(task, description=text))
            summaries.append(summary)
            progress.update(task, advance=1)
            detail = "; ".join(f"{report.floor_text(f)}: {report.number(f['value'], 2)}" for f in summary["floors"])
            progress.console.print(
                f"{report.verdict(summary):8} {case.name}  {summary['error'] or summary['skipped'] or detail}"
            )
    return summaries


def with_earlier(measured, earlier):
    """The summaries of this run and, of an earlier one, those of other cases; in the order of the table of cases."""
    by_name = {summary["name"]: summary for summary in [*earlier, *measured]}
    return [by_name[case.name] for case in CASES if case.name in by_name]


def main(arguments=None):
    """Runs it; returns the exit code: 0, 1 when a floor was missed or a case failed, 2 when nothing could start."""
    options = parse(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=FILE_WIDTH)
    if options.list:
        for case in CASES:
            floors = "; ".join(report.floor_text(floor._asdict()) for floor in case.floors)
            console.print(f"{case.name:24} {case.what}" + (f" [{floors}]" if floors else ""), markup=False)
        return 0
    raise_file_limit()
    machine = {**process.machine(options.python), "load_average": process.load_average()}
    try:
        libs = needs.kafka_libs(options.kafka_libs) if Kafka.name in names_of_brokers(options) else None
    except needs.Missing as error:
        console.print(f"error: {error}", style="red")
        return 2
    bench = Bench(options, libs, options.folder)
    try:
        with held_memory.hold(options.hold_memory):
            summaries = measure(bench, options, console)
    except needs.Missing as error:
        console.print(f"error: {error}", style="red")
        return 2
    except LoadFailed as error:
        console.print(f"error: {error}", style="red")
        for broker in bench.brokers.values():
            console.print(f"the end of {broker.name}'s log:\n{broker.log_tail()}", markup=False)
        return 2
    finally:
        bench.close()
    for table in (report.load_table(summaries), report.other_table(summaries), report.floor_table(summaries)):
        if table.rows:
            console.print(table)
    console.print(report.closing_line(summaries))
    measured = summaries
    if options.add and options.json.exists():
        summaries = with_earlier(measured, json.loads(options.json.read_text())["cases"])
    told = {name: str(value) for name, value in vars(options).items() if name != "chosen"}
    if options.json:
        options.json.write_text(report.to_json(summaries, machine, told))
    if options.document:
        options.document.write_text(
            report.rewrite(options.document.read_text(), report.markdown_table(summaries, machine))
        )
    return 1 if any(failed(summary) for summary in measured) and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
