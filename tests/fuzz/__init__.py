"""Bytes that nobody meant: whatever comes in, an answer that can be read goes out, or the connection ends.

`decoders.py` and `directories.py` hold one target per decoder: any bytes give a value, or the error that the decoder
promises. Three engines feed them: mutations of valid bytes (`mutation.py`, `python -m tests.fuzz --inputs 10000000`),
atheris, which is led by the branches that an input reaches (`python -m tests.fuzz --engine atheris`), and Hypothesis
(`test_decoders.py`). `test_requests.py` and `test_batches.py` send to a whole broker.

Run once: 10 000 000 mutations (messages 6 585 395, batches 942 325, headers 376 171, stored records 469 531, append
rules 470 468, compressed bodies 375 827, small files 375 124, frames in pieces 282 725, subscriptions 94 152,
directories 28 282), of which 4 070 367 gave a value, the slowest took 9 ms and the process grew by 14 MB; and 2 000 000
inputs of atheris on all targets, instrumented functions of the schemas included, at a peak of 103 MB. Neither found
anything in the decoders."""
