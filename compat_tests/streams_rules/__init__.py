"""What Kafka's coordinator and ours decide for random streams groups (KIP-1071)."""
