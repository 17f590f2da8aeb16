"""Kafka's own command-line tools, run against a real Kafka and against pykafkad, their output compared.

`cases/*.txt` hold what is run, as command lines; `cases.py` reads them, `runner.py` runs tools in one JVM
(`ToolRunner.java`), `performance.py` performs a case on one broker, `normalise.py` makes what it printed comparable,
`differences.py` lists where the two may differ and why. Must not know: pytest, and what either broker should answer:
that is what the real Kafka answers. Start reading: `cases/topics.txt`, then `cases.py`."""
