"""The settings table and its readers.

Knows: the rows (`broker.txt`, `topic.txt`, `group.txt`, `client_metrics.txt`) and how a row's text is parsed, checked
and printed (`rows.py`); Java's property files, the environment and `--set` (`sources.py`); what DescribeConfigs answers
(`entries.py`). What listeners mean is in `server/listeners.py`. Must not know: the broker that is configured. Start at
`pykafkad/config.py`, which everything else imports; a new setting is a line in a text file."""
