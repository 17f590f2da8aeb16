r"""Regular expressions of client-metrics subscriptions (KIP-714), matched in bounded time.

Everybody who may change settings writes such expressions, and the loop matches them. Python's own matcher may take
forever for forty letters (`(a+)+b`). This one walks the same syntax tree with the set of positions that can be reached,
so that it takes no path twice. It refuses references, look-around, word boundaries and flags for a part. `\d`, `\w` and
`\s` mean ASCII, as in Java.
"""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    # An operation's name and its argument, which depends on the operation.
    Node = tuple[str, Any]

MAX_STEPS = 100_000
"""The limit of steps for one text, about 50 ms. A text that needs more does not match."""

MAX_DEPTH = 40
"""The limit of nested groups and repetitions."""

_DIGITS = frozenset("0123456789")
_SPACES = frozenset(" \t\n\r\f\v")
_WORDS = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_CATEGORIES = {"CATEGORY_DIGIT": _DIGITS, "CATEGORY_SPACE": _SPACES, "CATEGORY_WORD": _WORDS}
_SINGLE = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")


@lru_cache(maxsize=100)
def compiled(expression: str) -> Pattern:
    """The pattern of a regular expression.

    Raises `ValueError` when it is invalid or cannot be matched in bounded time.
    """
    import re
    import warnings
    from re import _parser  # type: ignore[attr-defined]  # there is no public parser

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(expression)
            tree = _parser.parse(expression)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None
    nodes = _supported_nodes(tree, 0)
    return Pattern(
        nodes,
        ignores_case=bool(tree.state.flags & re.IGNORECASE),
        dot_matches_newline=bool(tree.state.flags & re.DOTALL),
    )


def _supported_nodes(nodes: Iterable[Node], depth: int) -> list[Node]:
    """The tree as (name, argument) pairs of the supported operations. Raises `ValueError` for others."""
    if depth > MAX_DEPTH:
        raise ValueError("groups are nested too deeply")
    supported: list[Node] = []
    for code, argument in nodes:
        name = str(code)
        if name in _REPEATS:
            least, most, item = argument
            supported.append(("REPEAT", (least, most, _supported_nodes(item, depth + 1))))
        elif name == "BRANCH":
            supported.append((name, [_supported_nodes(item, depth + 1) for item in argument[1]]))
        elif name == "SUBPATTERN" and not argument[1] and not argument[2]:
            supported.append(("BRANCH", [_supported_nodes(argument[3], depth + 1)]))
        elif name == "IN":
            supported.append(
                (name, [(str(kind), str(value) if str(kind) == "CATEGORY" else value) for kind, value in argument])
            )
        elif name in _SINGLE:
            supported.append((name, argument))
        elif name == "AT" and str(argument) in ("AT_BEGINNING", "AT_BEGINNING_STRING", "AT_END", "AT_END_STRING"):
            supported.append((name, str(argument)))
        else:
            raise ValueError(f"{name} is not supported")
    return supported


class Pattern:
    """A regular expression; `compiled` makes it."""

    __slots__ = ("_dot_matches_newline", "_ignores_case", "_nodes")

    def __init__(self, nodes: list[Node], *, ignores_case: bool, dot_matches_newline: bool) -> None:
        self._nodes = nodes
        self._ignores_case = ignores_case
        self._dot_matches_newline = dot_matches_newline

    def matches(self, text: str) -> bool:
        """Whether the pattern matches the whole of `text`."""
        return len(text) in _Walk(self, text).ends(self._nodes, {0})

    def matches_letter(self, name: str, argument: Any, letter: str) -> bool:
        """Whether a node that stands for one letter matches this letter."""
        if name == "ANY":
            return self._dot_matches_newline or letter != "\n"
        variants = {letter, letter.lower(), letter.upper()} if self._ignores_case else (letter,)
        if name == "IN":
            is_negated: bool = argument[0][0] == "NEGATE"
            return is_negated != any(
                _is_in(kind, value, each) for kind, value in argument[is_negated:] for each in variants
            )
        return (name == "LITERAL") == (chr(argument) in variants)


def _is_in(kind: str, value: Any, letter: str) -> bool:
    if kind == "LITERAL":
        return ord(letter) == value if len(letter) == 1 else False
    if kind == "RANGE":
        least, most = value
        return len(letter) == 1 and bool(least <= ord(letter) <= most)
    is_negated = "_NOT_" in value
    return is_negated != (letter in _CATEGORIES[value.replace("_NOT_", "_")])


class _Walk:
    """The matching of one text with one pattern.

    A set of places holds the positions that can be reached. It is empty once the steps are used up.
    """

    __slots__ = ("_pattern", "_steps", "_text")

    def __init__(self, pattern: Pattern, text: str) -> None:
        self._pattern = pattern
        self._text = text
        self._steps = MAX_STEPS

    def ends(self, nodes: list[Node], places: set[int]) -> set[int]:
        """The places where a match of all `nodes` can end that begins at one of `places`."""
        for name, argument in nodes:
            self._steps -= len(places) + 1
            if not places or self._steps < 0:
                return set()
            if name == "BRANCH":
                places = set().union(*[self.ends(item, places) for item in argument])
            elif name == "REPEAT":
                least, most, item = argument
                places = self._repeated(least, most, item, places)
            elif name == "AT":
                places = {place for place in places if self._matches_anchor(argument, place)}
            else:
                text, matches_letter = self._text, self._pattern.matches_letter
                places = {
                    place + 1 for place in places if place < len(text) and matches_letter(name, argument, text[place])
                }
        return places

    def _repeated(self, least: int, most: int, item: list[Node], places: set[int]) -> set[int]:
        for _ in range(least):
            before, places = places, self.ends(item, places)
            if places == before or not places:
                break
        reached, new, count = set(places), places, least
        while new and count < most:
            # A place that was reached before had more repetitions left at that time.
            new = self.ends(item, new) - reached
            reached |= new
            count += 1
        return reached

    def _matches_anchor(self, where: str, place: int) -> bool:
        if where.startswith("AT_BEGINNING"):
            return place == 0
        rest = self._text[place:]
        return not rest or (where == "AT_END" and rest == "\n")
