"""Structured Streaming: flights join the weather of their airport and hour, and become statistics per day.

flights ──┐
          ├── join on (airport, hour) ── window of a day, airport, sky ── statistics
weather ──┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_it.pipeline.publish import Topics

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FLIGHT = "airport STRING, delay_minutes INT"
WEATHER = "airport STRING, precipitation_inches DOUBLE, visibility_miles DOUBLE, wind_mph DOUBLE"

# A batch takes the same share of every partition. Partitions hold different aircraft, so in a replay of a year they are
# up to two days apart. A record that is later than this behind the newest one is left out.
LATENESS = "5 days"

# New York's standard time: a day there starts at five o'clock UTC.
DAY_STARTS = "5 hours"

LATE_MINUTES = 15
WET, FOGGY, WINDY, CLEAR, UNKNOWN = "wet", "fog", "wind", "clear", "unknown"


def delay_statistics(spark: SparkSession, bootstrap: str, topics: Topics, *, records_per_batch: int) -> DataFrame:
    """The streaming query's result: one row per day, airport and sky.

    Columns: day (timestamp of its start), airport, sky, flights, departed, delay_minutes (their sum), late (departed
    more than 15 minutes after schedule), worst_minutes."""
    from pyspark.sql import functions as f

    flights = (
        _read(spark, bootstrap, topics.flights, FLIGHT, records_per_batch)
        .withColumn("hour", f.date_trunc("hour", "timestamp"))
        .withWatermark("hour", LATENESS)
        .drop("timestamp")
    )
    weather = (
        _read(spark, bootstrap, topics.weather, WEATHER, records_per_batch)
        .withColumnRenamed("timestamp", "hour")
        .withWatermark("hour", LATENESS)
    )
    joined = flights.join(weather, ["airport", "hour"], "left_outer").withColumn("sky", _sky())
    departed = f.col("delay_minutes").isNotNull()
    return (
        joined.groupBy(f.window("hour", "1 day", startTime=DAY_STARTS).alias("window"), "airport", "sky")
        .agg(
            f.count("*").alias("flights"),
            f.count_if(departed).alias("departed"),
            f.coalesce(f.sum("delay_minutes"), f.lit(0)).alias("delay_minutes"),
            f.count_if(f.col("delay_minutes") > LATE_MINUTES).alias("late"),
            f.max("delay_minutes").alias("worst_minutes"),
        )
        .select(
            f.col("window.start").alias("day"),
            "airport",
            "sky",
            "flights",
            "departed",
            "delay_minutes",
            "late",
            "worst_minutes",
        )
    )


def _read(spark: SparkSession, bootstrap: str, topic: str, schema: str, records_per_batch: int) -> DataFrame:
    """The topic's records from its start, with `timestamp` and the fields of `schema`."""
    from pyspark.sql import functions as f

    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", records_per_batch)
        .load()
        .select("timestamp", f.from_json(f.col("value").cast("string"), schema).alias("record"))
        .select("timestamp", "record.*")
    )


def _sky() -> Column:
    """The weather of the hour in one word; null fields compare as false and fall through."""
    from pyspark.sql import functions as f

    return (
        f.when(f.col("visibility_miles").isNull(), UNKNOWN)
        .when(f.col("precipitation_inches") > 0, WET)
        .when(f.col("visibility_miles") < 3, FOGGY)
        .when(f.col("wind_mph") >= 20, WINDY)
        .otherwise(CLEAR)
    )
