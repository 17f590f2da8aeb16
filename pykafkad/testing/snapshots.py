"""Saved states of a broker's data, as every client asks for them (`pykafkad/handlers/snapshot_actions.py`)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import snapshot_actions
from pykafkad.metadata.configs import SET
from pykafkad.metadata.image import TYPE_BROKER
from pykafkad.testing.wire_client import Refused, WireClient
from pykafkad.wire import messages


def act(client: WireClient, action: str, value: str) -> None:
    """Create, restore or delete a snapshot; it is done when this returns. Raises Refused."""
    broker, *others = client.ask("Metadata", topics=[]).brokers
    if others:
        text = "several brokers of one process have no snapshots of their data yet"
        raise Refused(f"{action} {value}", errors.INVALID_REQUEST, text)
    request = messages.IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name=f"{snapshot_actions.PREFIX}{action}", config_operation=SET, value=value)
    resource = request.AlterConfigsResource(
        resource_type=TYPE_BROKER, resource_name=str(broker.node_id), configs=[change]
    )
    (row,) = client.ask("IncrementalAlterConfigs", resources=[resource]).responses
    if row.error_code:
        raise Refused(f"{action} {value}", row.error_code, row.error_message)
