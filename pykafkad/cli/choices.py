"""A parser of options that says which word was meant, beside those that there are."""

from __future__ import annotations

import argparse
import difflib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ChoiceParser(argparse.ArgumentParser):
    """Names the nearest choice after one that is not there: an action of a command, or a value of an option."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = difflib.get_close_matches(str(value), map(str, action.choices or ()), 1)
            if near:
                error.message += f"; did you mean {near[0]}?"
            raise
