"""`pykafkad replay`: asks a broker what was asked in a recording, and tells which answers differ from those of then."""

from __future__ import annotations

from pykafkad.cli.differences import broker_address, tell_one
from pykafkad.cli.output import Failure, add_json
from pykafkad.cli.secured import add_client_config, reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from pykafkad.differential.links import Secured

SUMMARY = "ask a broker what was asked in a recording, and tell which answers differ"
NAMES = ("recorded", "now")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad replay`."""
    parser.add_argument("file", metavar="FILE", help="a recording of `pykafkad record`, or of a test's `trace.write`")
    parser.add_argument(
        "-b", "--bootstrap", "--bootstrap-server", dest="broker", type=broker_address, required=True,
        metavar="HOST:PORT", help="the broker, of any kind: one alone",
    )  # fmt: skip
    add_client_config(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Ends with 1 if an answer differs."""
    with reached(options.broker, options.client_config) as broker:
        return _replay(options, broker)


def _replay(options: argparse.Namespace, broker: tuple[str, int] | Secured) -> int:
    from pykafkad.differential import recording
    from pykafkad.differential.replay import Replay

    replay = Replay(broker)
    different = 0
    try:
        file = open(options.file, encoding="utf-8", errors="replace")  # noqa: SIM115
    except OSError as problem:
        raise Failure(f"{options.file}: {problem.strerror}") from None
    with file:
        try:
            for each in replay.run(recording.read(options.file, file)):
                different += 1
                tell_one(each, NAMES, options.json)
        except recording.BadRecording as problem:
            raise Failure(str(problem), 2) from None
        except OSError as problem:
            where = f"{options.broker[0]}:{options.broker[1]}"
            raise Failure(f"{where}: no broker is there: {problem.strerror or problem}") from None
    if not options.json:
        print(f"{different} of {replay.compared} answers differ")
    return 1 if different else 0
