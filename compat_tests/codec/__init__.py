"""Kafka's own message classes as the judge of our codec: every message, every version, both directions."""
