"""A Spark job for tests to kill: copies a topic into Parquet files and ends when it has all.

python -m spark_it.tests.copy_job HOST:PORT TOPIC FOLDER RECORDS_PER_BATCH
"""

from __future__ import annotations

import sys

from spark_it.session import spark_session


def main() -> None:
    """Run the job; a new start with the same folder continues where it was."""
    bootstrap, topic, folder, records_per_batch = sys.argv[1:]
    spark = spark_session("copy")
    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    rows = rows.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", records_per_batch).load()
    rows = rows.selectExpr("CAST(CAST(value AS STRING) AS LONG) AS number", "partition", "offset")
    writer = (
        rows.writeStream.format("parquet")
        .option("path", f"{folder}/files")
        .option("checkpointLocation", f"{folder}/checkpoint")
    )
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
