"""Tests of the command line that need no broker; with a broker it is tested as a client in `compat_tests/`."""
