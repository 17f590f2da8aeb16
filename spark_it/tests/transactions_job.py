"""A Spark job for tests to kill: copies a topic through `foreachBatch` with transactions of confluent-kafka, exactly.

python -m spark_it.tests.transactions_job HOST:PORT SOURCE TARGET FOLDER RECORDS_PER_BATCH

It runs on a cluster whose executor is a process of its own. A file `kill-executor` or `kill-driver` in the folder
makes that one kill itself at its worst moment, once.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from spark_it.session import JAVA_OPTIONS, spark_session
from spark_it.tests.transactional_sink import Sink, is_asked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REPOSITORY = Path(__file__).resolve().parents[2]


def home() -> str:
    """A Spark home like PySpark's own, in which the cluster may write."""
    import pyspark

    directory = tempfile.mkdtemp(prefix="spark-home-")
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name != "work":
            os.symlink(each, f"{directory}/{each.name}")
    return directory


def main() -> None:
    """Run the job; a new start with the same folder continues where it was."""
    bootstrap, source, target, folder, records_per_batch = sys.argv[1:]
    os.environ["SPARK_HOME"] = home()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = {
        "spark.master": "local-cluster[1,2,1024]",
        "spark.executorEnv.PYTHONPATH": str(REPOSITORY),
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.task.maxFailures": "8",
    }
    spark = spark_session("transactions", settings)
    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", source)
    rows = rows.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", records_per_batch).load()
    sink = Sink(bootstrap, source, target, folder)

    def write(batch: DataFrame, _: int) -> None:
        batch.select("value", "partition", "offset").foreachPartition(sink)
        if is_asked(folder, "kill-driver"):
            # The transactions are committed, and the checkpoint does not know it.
            os.killpg(0, signal.SIGKILL)

    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
