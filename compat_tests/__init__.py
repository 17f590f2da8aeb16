"""Black-box tests: real clients and raw requests against a real Apache Kafka 4.3.1 and against pykafkad.

Knows: a bootstrap address, client libraries, Kafka's own tools, and for `scenarios/` our wire library.
Must not know: anything of `pykafkad/` except `pykafkad.wire` and the command line.
Start reading: `conftest.py` (which brokers a run uses), then `test_kafka_python.py`.

Every test runs against the real Kafka first: a test that the real Kafka fails is wrong.
"""
