"""One module per API, named as Kafka names it: typed request in, typed answer out.

A handler translates between the wire and the cores (`log`, `coordinator`, `metadata`). It knows no sockets, no files
and no time but `ctx.now`; it almost never looks at the version, because a field that a version lacks has its default.
Each module opens with its versions, its behaviour and its gaps. `table.py` is the only registry: one row per API.

Beside them stand the rules of who may do what (`authorization_rules.py`, enforced by `authorization.py`), the one
handler of the APIs that are only refused (`refused.py`), what several share (`operations.py`, `acl_requests.py`, …),
and what a broker remembers of its clients between requests and nobody else needs (`fetch_sessions.py`, `telemetry.py`).
`tests/architecture/test_apis.py` lists each with what it is.

Start reading at `table.py`, then `heartbeat.py` (a machine holds the answer), `fetch.py` (an answer that waits).
"""
