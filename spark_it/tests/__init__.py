"""Tests of Spark's `format("kafka")` against a broker; they know only its address.

`pytest spark_it` tests pykafkad; `--against kafka` runs the same tests against a real Apache Kafka, which decides.
Start reading: `conftest.py`, then `test_batch.py`.
"""
