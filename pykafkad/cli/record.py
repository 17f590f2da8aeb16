"""`pykafkad record`: writes down what clients ask a broker and what it answers, for `pykafkad replay`."""

from __future__ import annotations

from pykafkad.cli.differences import bootstrap, broker_address, listen_address, run_program, wait_for_end
from pykafkad.cli.output import Failure
from pykafkad.cli.private_files import for_its_owner
from pykafkad.cli.secured import add_client_config, reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import TextIO

    from pykafkad.differential.links import Secured

SUMMARY = "write down what clients ask a broker and what it answers, for `replay`"
HAS_PROGRAM = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad record`."""
    parser.add_argument("file", metavar="FILE", help="the recording, which must not be there yet; it holds all records")
    parser.add_argument(
        "--from", dest="broker", required=True, type=broker_address, metavar="HOST:PORT",
        help="the broker, of any kind: one alone",
    )  # fmt: skip
    add_client_config(parser)
    parser.add_argument(
        "--listen", type=listen_address, default=("127.0.0.1", 0), metavar="HOST:PORT",
        help="where clients connect (default: 127.0.0.1 at a free port)",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Ends with the program's exit code."""
    with reached(options.broker, options.client_config) as broker:
        return _record(options, broker)


def _record(options: argparse.Namespace, broker: tuple[str, int] | Secured) -> int:
    from pykafkad.differential import links, recording
    from pykafkad.differential.tee import Tee

    try:
        links.connect(broker).close()
    except OSError as problem:
        where = f"{options.broker[0]}:{options.broker[1]}"
        raise Failure(f"--from {where}: no broker is there: {problem.strerror or problem}") from None
    file: TextIO | None = None

    def note(event: recording.Event) -> None:
        assert file is not None
        file.write(recording.line(event))

    # The file is made after it: an address that is taken leaves no empty one behind.
    try:
        tee = Tee(options.listen, broker, note=note)
    except OSError as problem:
        where = bootstrap(*options.listen)
        raise Failure(f"--listen {where}: {problem.strerror or problem}", 2) from None
    try:
        file = open(options.file, "x", encoding="utf-8", opener=for_its_owner)  # noqa: SIM115
        file.write(recording.head())
    except FileExistsError:
        tee.close()
        raise Failure(f"{options.file}: exists", 2) from None
    except OSError as problem:
        tee.close()
        raise Failure(f"{options.file}: {problem.strerror}", 2) from None
    tee.start()
    try:
        ended = run_program(options.program, tee) if options.program else wait_for_end(tee, "records")
    finally:
        tee.close()
        try:
            file.close()
        except OSError as problem:
            tee.note_problem = tee.note_problem or problem.strerror or str(problem)
    if tee.note_problem is not None:
        raise Failure(f"{options.file}: {tee.note_problem}; the recording is not whole")
    code: int = ended.code
    return code
