"""One module per API, named as Kafka names it: typed request in, typed answer out.

A handler translates between the wire and the cores (`log`, `coordinator`, `metadata`). It knows no sockets, no files and
no time but `ctx.now`; it almost never looks at the version, because a field that a version lacks has its default. Each
module opens with its versions, its behaviour and its gaps. `table.py` is the only registry: one row per API.

Start reading at `table.py`, then `heartbeat.py` (a machine holds the answer), `fetch.py` (an answer that waits).
"""
