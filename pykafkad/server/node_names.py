"""The client ids by which the brokers of a cluster ask each other, as Kafka's do."""

from __future__ import annotations


def of_requests(node_id: int) -> str:
    """That of a broker's requests to others, but for those of its replicas."""
    return f"broker-{node_id}"


def of_fetcher(node_id: int) -> str:
    """That of the requests by which a broker's replicas follow."""
    return f"broker-{node_id}-fetcher-0"


def names_of_node(node_id: int) -> tuple[str, ...]:
    """All of them."""
    return of_requests(node_id), of_fetcher(node_id)
