"""Brokers under test, all with one interface: a real Kafka (container or process) and pykafkad (process).

Knows: how to start, stop, kill and restart each, and which settings both get.
Must not know: pytest, clients.
Start reading: `broker.py`, the interface; `choose.py`, which real Kafka a machine gets.
"""
