"""Tests of the command line: options, messages, and a broker as a process.

The commands that talk to brokers are tested in `compat_tests/`.
"""
