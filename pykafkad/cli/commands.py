"""Runs a subcommand: finds its module, parses its options, and turns errors into exit codes.

`__main__.py` runs `serve` without this module.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys

from pykafkad import __version__
from pykafkad.cli.choices import ChoiceParser
from pykafkad.cli.output import Failure, print_error
from pykafkad.errors import ConfigError

# Subcommand to module. Each module has SUMMARY, add_arguments(parser) and run(options) -> exit code. A module whose
# command has actions sets HAS_ACTIONS, one that runs a program HAS_PROGRAM.
COMMANDS = {
    "serve": "pykafkad.cli.serve",
    "format": "pykafkad.cli.format",
    "storage": "pykafkad.cli.storage",
    "status": "pykafkad.cli.status",
    "cluster": "pykafkad.cli.cluster",
    "topics": "pykafkad.cli.topics",
    "produce": "pykafkad.cli.produce",
    "tail": "pykafkad.cli.tail",
    "export": "pykafkad.cli.export",
    "groups": "pykafkad.cli.groups",
    "transactions": "pykafkad.cli.transactions",
    "acls": "pykafkad.cli.acls",
    "client-config": "pykafkad.cli.client_config",
    "dump-log": "pykafkad.cli.dump_log",
    "fsck": "pykafkad.cli.fsck",
    "snapshot": "pykafkad.cli.snapshot",
    "client-metrics": "pykafkad.cli.client_metrics",
    "compare": "pykafkad.cli.compare",
    "record": "pykafkad.cli.record",
    "replay": "pykafkad.cli.replay",
    "describe-apis": "pykafkad.cli.describe_apis",
    "describe-config": "pykafkad.cli.describe_config",
}


def main(arguments: list[str]) -> int:
    """Runs one subcommand and returns its exit code: 0 done, 1 failed, 2 wrong usage. A closed pipe is not an error."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(overview(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"pykafkad {__version__}")
        return 0
    if arguments[0] not in COMMANDS:
        close = difflib.get_close_matches(arguments[0], COMMANDS, 1)
        meant = f"; did you mean {close[0]}?" if close else f"\n\n{overview()}"
        print(f"pykafkad: unknown command {arguments[0]!r}{meant}", file=sys.stderr)
        return 2
    return _run(arguments[0], arguments[1:])


def overview() -> str:
    """What `pykafkad --help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name.ljust(width)}  {importlib.import_module(path).SUMMARY}" for name, path in COMMANDS.items()]
    return "\n".join((
        "pykafkad: a broker that speaks Apache Kafka 4.3.1's wire protocol, and small tools for it and for any Kafka",
        "",
        "usage: pykafkad COMMAND [options]      pykafkad COMMAND --help explains one",
        "",
        *lines,
        "",
        "Exit codes: 0 done, 1 failed, 2 wrong usage.",
    ))  # fmt: skip


def _run(command: str, arguments: list[str]) -> int:
    module = importlib.import_module(COMMANDS[command])
    parser = ChoiceParser(prog=f"pykafkad {command}", description=module.SUMMARY[:1].upper() + module.SUMMARY[1:] + ".")
    module.add_arguments(parser)
    program: list[str] | None = None
    if getattr(module, "HAS_PROGRAM", False):
        parser.epilog = "-- PROGRAM at the end runs a program, which finds the address in PYKAFKAD_BOOTSTRAP."
        if "--" in arguments:
            at = arguments.index("--")
            arguments, program = arguments[:at], arguments[at + 1 :]
    # Options may stand between words (`produce TOPIC --key k VALUE`). argparse supports that only without actions.
    parse = parser.parse_args if getattr(module, "HAS_ACTIONS", False) else parser.parse_intermixed_args
    try:
        options = parse(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    options.program = program
    try:
        code: int = module.run(options)
        sys.stdout.flush()
        return code
    except Failure as failure:
        print_error(str(failure))
        return failure.exit_code
    except ConfigError as error:
        print_error(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does after ten lines.
        _give_up_output()
        return 0
    except OSError as error:
        _give_up_output()
        print_error(f"{error.filename or 'output'}: {error.strerror or error}")
        return 1


def _give_up_output() -> None:
    """Sends standard output to /dev/null. Otherwise Python reports the closed pipe again when it exits."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
