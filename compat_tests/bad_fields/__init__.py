"""Sends every field of every request at its extreme values, one at a time, to a real Kafka and to pykafkad. Both must
give the same answers.

* `bases.py`: one valid request per API, on what `cluster.py` has prepared.
* `variants.py`: walks a request's schema and yields the request with one field changed at a time.
* `encoding.py`: writes what our own codec refuses to write: nulls where none is allowed, impossible lengths.
* `run.py`: sends every variant to one broker and keeps the answers.
* `differences.py`: lists the differences that are allowed, with their reasons.

Start reading at `variants.py`.
"""
