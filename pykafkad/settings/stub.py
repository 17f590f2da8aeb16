"""Writes `attributes.pyi`, the types of the settings: `python -m pykafkad.settings.stub`.

At run time `config.py` makes the same classes from the rows. A test compares the file with `text()`, so it cannot
become stale.
"""

from __future__ import annotations

import os

from pykafkad.settings.rows import BROKER, ROWS, TOPIC, Row

PATH = os.path.join(os.path.dirname(__file__), "attributes.pyi")

_HEAD = '''"""Types of the settings: written by `python -m pykafkad.settings.stub`, not by hand.

Each class has one attribute for each row of a settings table: the setting's name with underscores in place of dots.
There is no module `attributes.py`: `config.py` makes these classes from the rows when it is imported.
"""
'''

_TYPES = {
    "boolean": "bool",
    "int": "int",
    "long": "int",
    "short": "int",
    "double": "float",
    "string": "str",
    "class": "str",
    "password": "str",
}


def _annotation(row: Row) -> str:
    if row.type == "list":
        annotation = "frozenset[str]" if row.is_choice else "tuple[str, ...]"
    else:
        annotation = _TYPES[row.type]
    return annotation if row.default is not None else f"{annotation} | None"


def text() -> str:
    """The stub's content."""
    lines = [_HEAD]
    for name, scope in (("BrokerAttributes", BROKER), ("TopicAttributes", TOPIC)):
        lines.append(f"class {name}:")
        lines += [f"    {row.attribute}: {_annotation(row)}" for row in ROWS[scope].values()]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    with open(PATH, "w", encoding="utf-8") as stream:
        stream.write(text())
