"""The command line: one module per subcommand; each parses, builds values and calls.

Knows: options, exit codes, how results are printed. Must not know: how anything is done. `commands.py` lists the
subcommands, `serve.py` starts a broker, `client.py` is the only place that imports kafka-python, `output.py` prints
tables and JSON lines."""
