"""The test suites of other projects' clients, run against a real Kafka and against pykafkad, and the report card of
both.

Knows: per suite which package carries it, how it is pointed at a broker, how its results are read, and why a test of it
passes on Kafka and not here. The suites themselves are fetched from their registries into the cache; nothing of them is
here. Must not know: pytest's fixtures (`compat_tests/test_suites.py` does). Start reading: `suite.py`, what a suite is;
`catalogue.py`, all of them; `run.py`, one run; `card.py`, what is printed."""
