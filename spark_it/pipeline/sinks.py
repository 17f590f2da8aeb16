"""Writes the statistics to Parquet, exactly once, and to a topic, at least once with a key that identifies repeats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery


def start(statistics: DataFrame, bootstrap: str, topic: str, output: Path) -> StreamingQuery:
    """Start the query: it reads everything in the topics, in batches, and then stops.

    `output` gets `parquet/` and `checkpoint/`. After a kill, a new start with the same folder continues: an unfinished
    batch is repeated as a whole, from the same records.
    """

    def keep(batch: DataFrame, batch_id: int) -> None:
        _keep(batch, batch_id, bootstrap, topic, output)

    return (
        statistics.writeStream.outputMode("append")
        .option("checkpointLocation", str((output / "checkpoint").absolute()))
        .foreachBatch(keep)
        .trigger(availableNow=True)
        .start()
    )


def _keep(batch: DataFrame, batch_id: int, bootstrap: str, topic: str, output: Path) -> None:
    from pyspark.sql import functions as f

    # Both sinks read the batch; without this the second would compute it, and its state, again.
    batch.persist()
    try:
        if batch.isEmpty():
            return
        # Exactly once: a repeated batch replaces the folder of its first attempt.
        batch.coalesce(1).write.mode("overwrite").parquet(str((output / "parquet" / f"batch={batch_id}").absolute()))
        key = f.concat_ws("|", f.date_format("day", "yyyy-MM-dd"), "airport", "sky")
        records = batch.select(key.alias("key"), f.to_json(f.struct("*")).alias("value"))
        records.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic).save()
    finally:
        batch.unpersist()
