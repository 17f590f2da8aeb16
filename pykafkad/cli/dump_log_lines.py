"""The lines of `pykafkad dump-log`, each as `kind name=value …` or as a JSON object."""

from __future__ import annotations

from pykafkad.cli.output import print_json


class Rendered(str):
    """A text that is printed without quotes, even when it has spaces."""

    __slots__ = ()


def print_line(kind: str, fields: dict[str, object], as_json: bool, indent: str = "") -> None:
    """Prints one line: its kind and its fields. Only JSON shows the fields that have no value."""
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
