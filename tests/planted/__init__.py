"""Bugs of our own, planted one by one: they show that the tests would notice a real bug.

`*_plants.py` are the tables, one per package; `plants.py` joins them. `python -m tests.planted` copies the sources,
plants each bug, runs the tests that should notice it, and says which did. `test_plants.py` keeps the tables true to
the code. `plant.py` says how a row is written."""
