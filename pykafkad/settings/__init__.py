"""The settings table and its readers.

Knows: the rows (`broker.txt`, `topic.txt`, `group.txt`, `client_metrics.txt`) and how a row's text is parsed, checked and
printed (`rows.py`); Java's property files, the environment and the command line (`sources.py`); listeners (`listeners.py`); what
DescribeConfigs answers (`entries.py`). Must not know: the broker that is configured. Start at `pykafkad/config.py`, which
everything else imports; a new setting is a line in a text file.
"""
