"""Bytes to values and back. A library: it opens nothing, never sleeps, logs or reads a clock, and imports nothing of
ours but `errors`.

Knows: every request, response and stored record of Kafka 4.3.1 (`schemas/`, in the notation of `notation.py`), the
frames around them (`frames.py`), record batches and their compression (`batch.py`, `records.py`, `compression.py`).
Must not know: sockets, logs on disk, who asks, what a message means.

Start at `messages.py`: it makes a class from a schema file on first use, and asks `compiler.py` for one decode or
encode function per (message, version) on first use. `messages.pyi` lists every class and field; `python -m
pykafkad.wire.stub` writes it."""
