"""The test suites of other projects' clients, run against a real Kafka and pykafkad, and the report card of both.

Knows for each suite: its package, how it is pointed at a broker, how its results are read, and why a test passes on
Kafka and not on pykafkad. The suites are downloaded from their registries into the cache; this repository holds no part
of them. Must not know: pytest's fixtures (`compat_tests/test_suites.py` does). Start reading: `suite.py`, what a suite
is; `catalogue.py`, all suites; `run.py`, one run; `card.py`, the report.
"""
