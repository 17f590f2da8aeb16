"""`python -m pykafkad` and the console script `pykafkad`: finds the subcommand and runs its module.

`serve` is checked first, and imports nothing that the broker does not need: a start must be fast.
"""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line. Exit codes: 0 done, 1 failed, 2 wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] == "serve":
        from pykafkad.cli import serve

        return serve.main(words[1:])
    from pykafkad.cli import commands

    return commands.main(words)


if __name__ == "__main__":
    sys.exit(main())
