"""The types that a type checker sees equal those of the broker's values."""

from __future__ import annotations

import ast

import pytest

from pykafkad.config import ROWS, Settings, TopicSettings, topic_settings
from pykafkad.settings import stub

CLASSES = {"BrokerAttributes": Settings, "TopicAttributes": TopicSettings}


def _annotations(name: str) -> dict[str, str]:
    """Maps each attribute of one class of the stub to its annotation."""
    with open(stub.PATH, encoding="utf-8") as stream:
        tree = ast.parse(stream.read())
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return {each.target.id: ast.unparse(each.annotation) for each in body if isinstance(each, ast.AnnAssign)}


def test_the_stub_is_fresh() -> None:
    """`attributes.pyi` is what `python -m pykafkad.settings.stub` writes now."""
    with open(stub.PATH, encoding="utf-8") as stream:
        assert stream.read() == stub.text(), "run: python -m pykafkad.settings.stub"


@pytest.mark.parametrize("name", CLASSES)
def test_every_default_has_the_type_that_the_stub_says(name: str) -> None:
    """The stub names every slot of the class, and each default value is an instance of the annotated type."""
    settings = Settings({})
    values = settings if name == "BrokerAttributes" else topic_settings(settings, {})
    annotations = _annotations(name)
    assert tuple(annotations) == CLASSES[name].__mro__[1].__slots__
    wrong = {
        attribute: (annotation, value)
        for attribute, annotation in annotations.items()
        for value in [getattr(values, attribute)]
        if not _fits(value, annotation)
    }
    assert wrong == {}


def _fits(value: object, annotation: str) -> bool:
    """Whether a value is of the annotated type."""
    if value is None:
        return annotation.endswith(" | None")
    found = {"tuple": "tuple[str, ...]", "frozenset": "frozenset[str]"}.get(type(value).__name__, type(value).__name__)
    return found == annotation.removesuffix(" | None")


def test_every_row_of_the_two_tables_is_an_attribute() -> None:
    """No row is left out, and no attribute has no row."""
    for name, scope in (("BrokerAttributes", "broker"), ("TopicAttributes", "topic")):
        assert set(_annotations(name)) == {row.attribute for row in ROWS[scope].values()}
