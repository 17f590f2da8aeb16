"""Commands that have actions (`pykafkad topics list`): options stand before the action, behind it or between its words."""

from __future__ import annotations

import argparse

from pykafkad.cli import client
from pykafkad.cli.output import add_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class _IntermixedParser(argparse.ArgumentParser):
    """An action's own parser: of itself argparse would take `create a --config x=1 b` for an action that knows no `b`."""

    _intermixing = False

    def parse_known_args(self, args: object = None, namespace: object = None) -> tuple[argparse.Namespace, list[str]]:
        if self._intermixing:
            return super().parse_known_args(args, namespace)
        # Until Python 3.12 the call below is made of two of this one.
        self._intermixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixing = False


def add_actions(parser: argparse.ArgumentParser) -> Callable[..., argparse.ArgumentParser]:
    """Gives the command actions; the result adds one: `add(name, help=text)`, and is its parser."""
    return parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=_IntermixedParser
    ).add_parser


def add_bootstrap(command: argparse.ArgumentParser, actions: Iterable[argparse.ArgumentParser]) -> None:
    """`--bootstrap`, which may stand before the action as well."""
    client.add_bootstrap(command)
    for action in actions:
        # Without a default of its own it leaves what was said before the action.
        client.add_bootstrap(action, default=argparse.SUPPRESS)


def add_common(command: argparse.ArgumentParser, actions: Iterable[argparse.ArgumentParser]) -> None:
    """The options of all actions whose answer is a table."""
    actions = tuple(actions)
    add_bootstrap(command, actions)
    add_json(command)
    for action in actions:
        add_json(action, default=argparse.SUPPRESS)
