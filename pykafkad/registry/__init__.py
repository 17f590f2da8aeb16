"""A schema registry: Confluent's REST interface for subjects, versions, references, modes and compatibility.

Start reading at `registry.py`, which has the operations; `state.py` is what the records of `_schemas` add up to, and
`records.py` their keys and values, as Confluent's registry writes them. `routes.py` is the table of all routes,
`application.py` answers requests by it, `server.py` serves. Each kind of schema has a module that parses schemas and
compares two of them with a library (`avro_schemas.py`, `json_schemas.py`, `protobuf_schemas.py`); the packages are the
extra `registry`.

The registry is a client of its broker: it knows HTTP, JSON, schemas and the calls of `store.py`; it must not know
Kafka's protocol.

What it does not do: contexts (`:.name:`), metadata and rules of data contracts, tags, aliases, associations,
a second registry that writes to the same topic."""
