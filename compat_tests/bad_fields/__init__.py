"""Every field of every request at its extremes, one at a time, to a real Kafka and to pykafkad: the answers must be the
same.

* `bases.py`: one valid request per API, on what `cluster.py` has prepared.
* `variants.py`: walks a request's schema and yields it with one field changed at a time.
* `encoding.py`: writes what our own codec refuses to write: nulls where none may be, impossible lengths.
* `run.py`: sends all of it to one broker and keeps what came back; `differences.py` says which differences are allowed,
  and why.

Start reading at `variants.py`.
"""
