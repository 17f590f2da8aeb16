"""Two brokers side by side: what one answers to a request, and what the other does.

Start reading at `comparison.py`, which compares two answers and translates the ids of one broker into those of the
other. `tee.py` stands between a client and two brokers, or writes down what one of them answers (`recording.py`);
`replay.py` asks a broker what was asked in a recording. The package must not know any client library."""
