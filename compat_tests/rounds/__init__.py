"""Rounds of trouble for a cluster of processes: brokers that are killed or paused, links that are cut, while clients of
all kinds write and read; then the whole history is checked.

`python -m compat_tests.rounds --rounds 100` runs them. Start reading: `troubles.py`, and `network.py` for what is cut.
"""
