"""Clients of all kinds that use a cluster while its brokers come, go, move and die, and the checks of what they saw.

Knows: clients, a bootstrap address, and a history. Must not know: which brokers there are, and what happens to them.
Start reading: `load.py`.
"""
