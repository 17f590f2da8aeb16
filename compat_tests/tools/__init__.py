"""Kafka's own command-line tools, run against a real Kafka and against pykafkad; their output is compared.

`cases/*.txt` hold the command lines; `cases.py` reads them, `runner.py` runs tools in one JVM (`ToolRunner.java`),
`performance.py` performs a case on one broker, `normalise.py` makes the output comparable, `differences.py` lists the
allowed differences with reasons. Must not know: pytest, and the expected answers, because the real Kafka gives them.
Start reading: `cases/topics.txt`, then `cases.py`.
"""
