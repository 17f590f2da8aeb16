"""One module per API, named as Kafka names it: typed request in, typed response out.

A handler translates between the wire and the cores (`log`, `coordinator`, `metadata`). It knows no sockets, no files
and no time but `ctx.now`. It rarely looks at the version, because a field that a version lacks has its default. Each
module's docstring states its versions, its behaviour and its gaps. `table.py` is the only registry: one row per API.

The package also holds the authorization rules (`authorization_rules.py`, enforced by `authorization.py`), code that
several handlers share (`operations.py`, `acl_requests.py`, …), and state of clients that the broker keeps between
requests (`fetch_sessions.py`, `telemetry.py`). `tests/architecture/test_apis.py` lists each of these modules with its
purpose.

Start reading at `table.py`, then `heartbeat.py` (a coordinator answers), then `fetch.py` (an answer that is delayed).
"""
