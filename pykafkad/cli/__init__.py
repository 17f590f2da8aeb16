"""The command line: one module per subcommand. A module parses its options, builds values and calls other packages.

Knows: options, exit codes, how results are printed. Must not know: how a broker does its work. `commands.py` lists the
subcommands. `serve.py` starts a broker. Only `client.py` opens connections with kafka-python. `output.py` prints
tables and JSON lines.
"""
