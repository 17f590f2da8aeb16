"""The lines of `pykafkad dump-log`: one fact each, as words for people or as JSON."""

from __future__ import annotations

from pykafkad.cli.output import print_json


class Rendered(str):
    """A text that is printed as it is, spaces and all."""

    __slots__ = ()


def print_line(kind: str, fields: dict[str, object], as_json: bool, indent: str = "") -> None:
    """One line: what it is about, and its fields; for people those without a value are left out."""
    if as_json:
        print_json({"kind": kind, **fields})
    else:
        print(
            indent + kind + "".join(f" {name}={_shown(value)}" for name, value in fields.items() if value is not None)
        )


def _shown(value: object) -> str:
    text = str(value)
    quoted = isinstance(value, str) and not isinstance(value, Rendered) and (" " in text or not text)
    return f'"{text}"' if quoted else text.replace("\n", "\\n")
