"""Tests of Spark's `format("kafka")` against a broker of which they know the address only.

`pytest spark_it` tests pykafkad; `--against kafka` runs the same tests against a real Apache Kafka, which decides.
Start reading: `conftest.py`, then `test_batch.py`.
"""
