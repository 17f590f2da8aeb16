"""The table of planted bugs fits the code: each can be planted, and gives other sources that compile."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.planted.plants import PLANTS

PROJECT = Path(__file__).parents[2]


def test_there_are_enough():
    """And no two are the same."""
    assert len({(plant.file, plant.old, plant.new) for plant in PLANTS}) == len(PLANTS) >= 25


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name.replace(" ", "-"))
def test_it_can_be_planted(plant):
    """Its words stand in the file exactly once, and its tests are there."""
    source = (PROJECT / "pykafkad" / "log" / plant.file).read_text(encoding="utf-8")
    assert source.count(plant.old) == 1
    ast.parse(source.replace(plant.old, plant.new))
    assert all((PROJECT / path).is_file() for path in plant.tests)
