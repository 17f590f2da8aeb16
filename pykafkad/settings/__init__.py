"""The settings table and its readers.

Knows: the rows (`broker.txt`, `topic.txt`, `group.txt`, `client_metrics.txt`); how the text of a row is parsed, checked
and printed (`rows.py`); Java's property files, the environment and `--set` (`sources.py`); the answers of
DescribeConfigs (`entries.py`). Must not know: the broker that is configured, and listeners (`server/listeners.py`).

Start at `pykafkad/config.py`, which the rest of the package imports. A new setting is a line in a text file.
"""
