"""The control API: what `pykafkad.testing` can do to a broker, over HTTP for programs in any language.

Start reading at `routes.py`, the table of all routes: requests are checked by its rows, `/openapi.json` is made of
them, and each names the function that it calls. The package knows HTTP, JSON and the calls of
`pykafkad/testing/operations.py`; it must not know Kafka's protocol. The server library
(waitress, of the extra `control`) is known to `pykafkad/http_server.py`, which nothing imports before somebody asks for
HTTP."""
