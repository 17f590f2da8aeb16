"""Spark against the broker: a pipeline on real data that a user can run and read, tests, and a measurement.

Knows: a bootstrap address, PySpark with its `format("kafka")`, client libraries, the command line of pykafkad.
Must not know: anything inside `pykafkad/`.
Start reading: `pipeline/__init__.py`; the tests are in `tests/`; `small_partitions.py` is the measurement.
"""
