"""Replicas of pykafkad in one quorum with a real Kafka's controller."""
