"""pykafkad: a broker that speaks Apache Kafka 4.3.1's wire protocol, in plain Python."""

__version__ = "0.1.0"
