"""Names of Kerberos and the short names that `sasl.kerberos.principal.to.local.rules` make of them.

A name is `service/host@REALM` or `user@REALM`. Of the rules the first that fits makes the name: `DEFAULT` takes the
first part of a name of the default realm; `RULE:[n:text](pattern)s/from/to/g/L` fits names of `n` parts for which the
text, with `$0` as the realm and `$1` and `$2` as the parts, matches the pattern, replaces in it (`g`: everywhere), and
makes letters small (`L`) or large (`U`). What follows the brackets may be missing.
"""

from __future__ import annotations

import re
from collections import namedtuple
from functools import partial

from pykafkad.settings import java_replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NAME = re.compile(r"([^/@]*)(/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"DEFAULT|RULE:\[([0-9]*):([^\]]*)\](\(([^)]*)\))?(s/([^/]*)/([^/]*)/(g)?)?/?([LU])?", re.ASCII | re.DOTALL
)
_PARAMETER = re.compile(r"\$([0-9]*)", re.ASCII)
_NOT_SIMPLE = re.compile("[/@]")
_PARTS_MAX = 2
"""Kafka's names have no more, so that rules for more fit none."""

_Rule = namedtuple("_Rule", ("parts", "text", "match", "pattern", "to", "is_everywhere", "case"))
"""`to` are the pieces of a replacement of `pattern`, or that is None."""


class NoName(Exception):
    """No rule makes a name of a Kerberos name. Its text is the reason, for the broker's log."""


class ShortNamer:
    """The rules, for brokers of one default realm."""

    __slots__ = ("_default_realm", "_rules")

    def __init__(self, rules: Iterable[str], default_realm: str) -> None:
        """Raises ValueError with what is wrong with a rule."""
        self._default_realm = default_realm
        self._rules = [_parsed(rule) for rule in rules]

    def name(self, principal: str) -> str:
        """The short name of `user@REALM` or `service/host@REALM`. Raises NoName."""
        found = _NAME.fullmatch(principal)
        if found is None:
            if "@" in principal:
                raise NoName("it is no Kerberos name of at most two parts and a realm")
            # A simple name already, with whatever slashes.
            return principal
        service, host, realm = found.group(1, 3, 4)
        parameters = [realm, service] if host is None else [realm, service, host]
        for rule in self._rules:
            name = self._default(parameters) if rule is None else _applied(rule, parameters)
            if name is None:
                continue
            if _NOT_SIMPLE.search(name):
                raise NoName(f"a rule makes {name!r} of it, which is not simple")
            if rule is not None and rule.case:
                return name.lower() if rule.case == "L" else name.upper()
            return name
        raise NoName("no rule of sasl.kerberos.principal.to.local.rules fits it")

    def _default(self, parameters: Sequence[str]) -> str | None:
        return parameters[1] if parameters[0] == self._default_realm else None


def _parsed(rule: str) -> _Rule | None:
    """A rule; None for DEFAULT. Raises ValueError."""
    found = _RULE.fullmatch(rule)
    if found is None:
        raise ValueError(f"{rule!r} is neither DEFAULT nor RULE:[n:text](pattern)s/from/to/g/L")
    if rule == "DEFAULT":
        return None
    digits, text, _, match, _, from_, to, everywhere, case = found.groups()
    if not digits or len(digits) > 9:
        raise ValueError(f"{rule!r} must begin with the number of parts, as RULE:[1:")
    for number in _PARAMETER.findall(text) if int(digits) <= _PARTS_MAX else ():
        if not number or int(number) > int(digits):
            raise ValueError(f"{rule!r} has ${number}, and names of {digits} parts have $0 to ${digits}")
    pattern = pieces = None
    if from_ is not None:
        pattern = java_replacements.compiled(from_)
        pieces = list(java_replacements.pieces(to, pattern, may_lack_groups=False))
    compiled = None if match is None else java_replacements.compiled(match)
    return _Rule(int(digits), text, compiled, pattern, pieces, everywhere is not None, case)


def _applied(rule: _Rule, parameters: Sequence[str]) -> str | None:
    """What a rule makes of a name; None if it does not fit."""
    if len(parameters) - 1 != rule.parts:
        return None
    base = _PARAMETER.sub(lambda found: parameters[int(found.group(1))], rule.text)
    if rule.match is not None and rule.match.fullmatch(base) is None:
        return None
    if rule.pattern is None:
        return base
    made: str = rule.pattern.sub(partial(java_replacements.filled, rule.to), base, 0 if rule.is_everywhere else 1)
    return made
