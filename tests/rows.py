"""Tests of tables with many rows, in which one row takes less time than a test of its own costs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def in_turn(
    names: str, rows: Iterable[Any], name_of: Callable[[Any], object] = repr
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, as one test: it goes through all rows and names each one that fails.

    The rows share the test's fixtures.
    """
    arguments = [name.strip() for name in names.split(",")]
    table = list(rows)
    assert table, "a test without rows tests nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def test_of_all_rows(**fixtures: Any) -> None:
            errors: list[BaseException] = []
            for row in table:
                values = dict(zip(arguments, row if len(arguments) > 1 else (row,), strict=True))
                try:
                    test(**values, **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"The row is {name_of(row)}.")
                    errors.append(error)
            if len(errors) == 1:
                raise errors[0]
            if errors:
                raise BaseExceptionGroup(f"{len(errors)} of {len(table)} rows", errors)

        others = [each for each in signature.parameters.values() if each.name not in arguments]
        test_of_all_rows.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return test_of_all_rows

    return decorate
