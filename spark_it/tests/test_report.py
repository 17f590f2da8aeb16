"""The pipeline's picture says what days it is of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_it.pipeline import report

if TYPE_CHECKING:
    from pandas import DataFrame


def statistics(first: str, days: int) -> DataFrame:
    """Made-up statistics of so many days."""
    import pandas

    rows = [
        {"day": day, "airport": airport, "sky": sky, "flights": 9, "departed": 8, "delay_minutes": day.day, "late": 1}
        for day in pandas.date_range(f"{first} 05:00", periods=days)
        for airport in report.AIRPORTS
        for sky in report.SKIES
    ]
    return pandas.DataFrame(rows)


@pytest.mark.parametrize(
    ("days", "words", "line", "label"),
    [
        (1, "1 January 2013", "Mean delay per day", "Jan"),
        (14, "1 to 14 January 2013", "Mean delay per day", "02 Jan"),
        (60, "1 January to 1 March 2013", "Mean delay per day (thin) and over 14 days (bold)", "15 Jan"),
        (365, "2013", "Mean delay per day (thin) and over 14 days (bold)", "Feb"),
    ],
)
def test_the_picture_names_its_days(
    days: int, words: str, line: str, label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture of two weeks has no year as its title, no axis of months, and no mean over all of it."""
    from matplotlib import pyplot

    shown = statistics("2013-01-01", days)
    assert report.period(shown) == words
    kept = []
    monkeypatch.setattr(pyplot, "close", kept.append)
    report.draw(shown, tmp_path / "delays.png")
    (figure,) = kept
    top = figure.axes[0]
    assert figure.get_suptitle().endswith(f", {words}") and top.get_title(loc="left") == line
    labels = [each.get_text() for each in top.get_xticklabels()]
    assert any(label in each for each in labels)
    assert (tmp_path / "delays.png").stat().st_size > 10_000
