"""Tests of the command line: options, texts, and a broker as a process. As a client of brokers it is tested in
`compat_tests/`."""
