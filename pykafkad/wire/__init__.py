"""Encodes and decodes every message of Kafka 4.3.1.

A pure library: it opens no files, never sleeps, logs or reads a clock, and imports nothing of pykafkad but `errors`.

Knows: requests, responses and stored records (`schemas/`, in the notation of `notation.py`), the frames around them
(`frames.py`), record batches and their compression (`batch.py`, `records.py`, `compression.py`). Must not know:
sockets, logs on disk, who sends a request, what a message means.

Start at `messages.py`. It makes a class from a schema file on first use, and asks `compiler.py` for the decode or
encode function of one version on first use. `messages.pyi` lists every class and field; `python -m pykafkad.wire.stub`
writes it.
"""
