"""Compares our codec with Kafka's own message classes: every message, every version, both directions."""
