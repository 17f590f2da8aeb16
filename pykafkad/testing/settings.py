"""Settings of the broker and of topics as DescribeConfigs tells them."""

from __future__ import annotations

from typing import Any

from pykafkad.testing.wire_client import Refused, WireClient
from pykafkad.wire import messages

TOPIC, BROKER = 2, 4
"""Kafka's types of resources."""

SOURCES = {
    1: "topic",
    2: "broker, dynamic",
    3: "cluster, dynamic",
    4: "broker, file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
"""Kafka's numbers of where a setting comes from."""


def describe(client: WireClient, topic: str | None) -> list[dict[str, Any]]:
    """Name, value, source and so on of each setting, by name; the value of a secret is null. Raises Refused."""
    kind, name = (BROKER, _broker_id(client)) if topic is None else (TOPIC, topic)
    asked = messages.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    (row,) = client.ask("DescribeConfigs", resources=[asked]).results
    if row.error_code:
        raise Refused(f"settings of {topic or 'the broker'}", row.error_code, row.error_message)
    found = [
        {
            "name": each.name,
            "value": each.value,
            "source": SOURCES.get(each.config_source, str(each.config_source)),
            "is_read_only": each.read_only,
            "is_sensitive": each.is_sensitive,
        }
        for each in row.configs
    ]
    return sorted(found, key=lambda each: each["name"])


def _broker_id(client: WireClient) -> str:
    return str(client.ask("Metadata", topics=[]).brokers[0].node_id)
