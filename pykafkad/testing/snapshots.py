"""Saved states of a broker's data, as every client asks for them (`pykafkad/handlers/snapshot_actions.py`)."""

from __future__ import annotations

from pykafkad.handlers import snapshot_actions
from pykafkad.metadata.configs import SET
from pykafkad.metadata.image import TYPE_BROKER
from pykafkad.testing.wire_client import Refused, WireClient
from pykafkad.wire import messages


def act(client: WireClient, action: str, value: str) -> None:
    """Create, restore or delete a snapshot; it is done when this returns. Raises Refused."""
    # Of several brokers the first is asked, and does it for all.
    broker = min(client.ask("Metadata", topics=[]).brokers, key=lambda row: row.node_id)
    request = messages.IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name=f"{snapshot_actions.PREFIX}{action}", config_operation=SET, value=value)
    resource = request.AlterConfigsResource(
        resource_type=TYPE_BROKER, resource_name=str(broker.node_id), configs=[change]
    )
    (row,) = client.ask("IncrementalAlterConfigs", resources=[resource]).responses
    if row.error_code:
        raise Refused(f"{action} {value}", row.error_code, row.error_message)
