"""Tests of `pykafkad.testing` with connections of their own; real clients use it in `compat_tests/test_testing.py`."""
