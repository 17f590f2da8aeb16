"""Removing the registration of a controller (KIP-1312, since Kafka 4.4)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.effects import Append, Reply
from pykafkad.metadata import features, record_codec
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.metadata import events
    from pykafkad.metadata.image import Image

_TOO_OLD = "The current MetadataVersion is too old to support controller unregistration."
_ACTIVE = "Controller cannot unregister itself while it is active."


def unregister(image: Image, active_id: int, event: events.UnregisterBroker) -> list[object]:
    """Remove a controller; `active_id` is the one that decides."""
    controller_id = event.broker_id
    code, text = errors.NONE, ""
    if controller_id == active_id:
        code, text = errors.INVALID_REQUEST, _ACTIVE
    elif image.features.get(features.METADATA_VERSION, 0) < features.UNREGISTRATION_SINCE:
        code, text = errors.UNSUPPORTED_VERSION, _TOO_OLD
    elif controller_id not in image.controllers:
        code, text = errors.CONTROLLER_ID_NOT_REGISTERED, f"Controller ID {controller_id} is not currently registered."
    reply = Reply(event.token, messages.UnregisterControllerResponse(error_code=code, error_message=text))
    if code:
        return [reply]
    record = record_codec.record(messages.UnregisterControllerRecord(controller_id=controller_id))
    return [Append(record_codec.LOG, [record]), reply]
