"""One module per API, named as Kafka names it: typed request in, typed answer out.

A handler translates between the wire and the cores (`log`, `coordinator`, `metadata`). It knows no sockets, no files
and no time but `ctx.now`; it almost never looks at the version, because a field that a version lacks has its default.
Each module opens with its versions, its behaviour and its gaps. `table.py` is the only registry: one row per API.

Beside them stand what several share (`refusals.py`, `operations.py`, `acl_requests.py`, …), the fast paths of Produce
and Fetch (`produce_fast_path.py`, `fetch_fast_path.py`, `partition_key_cache.py`), and what a broker remembers of its
clients between requests and nobody else needs (`fetch_sessions.py`, `telemetry.py`). `tests/architecture/test_apis.py`
lists each with what it is.

Start reading at `table.py`, then `heartbeat.py` (a machine holds the answer), `fetch.py` (an answer that waits).
"""
