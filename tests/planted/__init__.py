"""Bugs of our own, planted one by one: what shows that the tests of the storage would see a real one.

`plants.py` is the table; `python -m tests.planted` copies the sources, plants each, runs the tests that should notice,
and says which did. `test_plants.py` keeps the table true to the code."""
