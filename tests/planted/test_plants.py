"""The tables of planted bugs fit the code: each bug can be planted, and the source with it still compiles."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests import seeds
from tests.planted.__main__ import main
from tests.planted.plant import Plant
from tests.planted.plants import PLANTS
from tests.rows import in_turn

PROJECT = Path(__file__).parents[2]


def test_there_are_enough_bugs_and_no_two_are_the_same():
    assert len({(plant.file, plant.old, plant.new) for plant in PLANTS}) == len(PLANTS) >= 140
    assert len({plant.name for plant in PLANTS}) == len(PLANTS)


def test_a_choice_of_no_bug_is_refused(monkeypatch, capsys):
    """It ran all tests, and said that one fails without a bug."""
    monkeypatch.setattr("sys.argv", ["planted", "--only", "no such file"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and "no bug has 'no such file' in its name or file" in capsys.readouterr().err


@cache
def source(file: str) -> str:
    """A module's source."""
    return (PROJECT / "pykafkad" / file).read_text(encoding="utf-8")


@cache
def dumped(file: str) -> str:
    """The dump of a module's syntax tree."""
    return ast.dump(ast.parse(source(file)))


@in_turn("plant", PLANTS, name_of=lambda plant: plant.name)
def test_the_bug_can_be_planted(plant):
    """Its code stands in the file exactly once, and its tests are there."""
    assert plant.planted_in(source(plant.file)) != source(plant.file)
    assert all((PROJECT / path).is_file() for path in plant.tests)


@pytest.mark.long
@in_turn("plant", seeds.sampled(PLANTS, 30), name_of=lambda plant: plant.name)
def test_the_bug_changes_what_the_code_does(plant):
    """The source with the bug compiles to something else."""
    assert ast.dump(ast.parse(plant.planted_in(source(plant.file)))) != dumped(plant.file)


FORMS = {
    "on one line": "class A:\n    def f(self):\n        return g(a, b, [1, 2])\n",
    "on many lines": "class A:\n    def f(self):\n        return g(\n            a, b, [1, 2],\n        )\n",
    "with a comment": "class A:\n    def f(self):\n        return g(  # Why.\n            a, b, [1, 2]\n        )\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_code_is_found_however_it_is_formatted(form):
    bug = Plant("a bug", "x.py", "return g(a, b, [1, 2])", "if a:\n    return 1\nreturn 2", ())
    expected = "class A:\n    def f(self):\n        if a:\n            return 1\n        return 2\n"
    assert bug.planted_in(FORMS[form]) == expected


@pytest.mark.parametrize("source", ["offset = 1\noffset = 1\n", "end_offset = 1\n", "offset = 10\n"])
def test_code_that_stands_there_twice_or_only_as_a_part_of_other_names_is_refused(source):
    with pytest.raises(ValueError, match="a bug"):
        Plant("a bug", "x.py", "offset = 1", "offset = 2", ()).planted_in(source)
