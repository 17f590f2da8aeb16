"""Bytes that nobody meant: whatever comes in, an answer that can be read goes out, or the connection ends.

`decoders.py` and `directories.py` hold one target per decoder: any bytes give a value, or the error that the decoder promises. Three
engines feed them: mutations of valid bytes (`mutation.py`, `python -m tests.fuzz --inputs 10000000`), atheris, which is led by the
branches that an input reaches (`python -m tests.fuzz --engine atheris`), and Hypothesis (`test_decoders.py`). `test_requests.py` and
`test_batches.py` send to a whole broker.
"""
