"""Commands that have actions, such as `pykafkad topics list`.

Options may stand before the action, after it, or between its words.
"""

from __future__ import annotations

import argparse

from pykafkad.cli import client
from pykafkad.cli.choices import ChoiceParser
from pykafkad.cli.output import add_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class _IntermixedParser(ChoiceParser):
    """The parser of one action. It accepts options between words: plain argparse rejects `create a --config x=1 b`."""

    _intermixing = False

    def parse_known_args(  # type: ignore[override]  # argparse has three overloads, which do the same
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        if self._intermixing:
            return super().parse_known_args(args, namespace)
        # Until Python 3.12, parse_known_intermixed_args calls parse_known_args twice.
        self._intermixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixing = False


def add_actions(parser: argparse.ArgumentParser) -> Callable[..., argparse.ArgumentParser]:
    """Gives the command actions. Returns a function: `add(name, help=text)` adds an action and returns its parser."""
    return parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=_IntermixedParser
    ).add_parser


def add_bootstrap(command: argparse.ArgumentParser, actions: Iterable[argparse.ArgumentParser]) -> None:
    """Adds `--bootstrap`, which may stand before or after the action."""
    client.add_bootstrap(command)
    for action in actions:
        # An action's own default would overwrite the value that was given before the action.
        client.add_bootstrap(action, default=argparse.SUPPRESS)


def add_common(command: argparse.ArgumentParser, actions: Iterable[argparse.ArgumentParser]) -> None:
    """Adds the options of all actions that print a table."""
    actions = tuple(actions)
    add_bootstrap(command, actions)
    add_json(command)
    for action in actions:
        add_json(action, default=argparse.SUPPRESS)
