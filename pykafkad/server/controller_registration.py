"""A controller that does not lead tells the active one where it listens (KIP-919).

It asks again after a pause until the image has the registration of this start of the process."""

from __future__ import annotations

from pykafkad.metadata import features
from pykafkad.metadata.events import Activate
from pykafkad.metadata.registrations import controller_registration
from pykafkad.server import listeners
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.server.raft_controller import RaftController
    from pykafkad.server.raft_member import RaftMember

AGAIN_SECONDS = 1.0


class ControllerRegistration:
    """`look` in each step: it sends the registration if it is due."""

    __slots__ = ("_incarnation_id", "_is_waiting", "_member", "_node")

    def __init__(self, node: RaftController, member: RaftMember, incarnation_id: bytes) -> None:
        self._node = node
        self._member = member
        self._incarnation_id = incarnation_id
        self._is_waiting = False

    def look(self) -> None:
        """Register with the active controller, unless it has the registration or is this node."""
        node = self._node
        active, image = self._member.active_controller, self._member.image
        level = image.features.get(features.METADATA_VERSION, 0)
        known = image.controllers.get(node.node_id)
        if (
            self._is_waiting
            or active is None
            or active.node_id == node.node_id
            or level < features.CONTROLLERS_SINCE
            or (known is not None and known.incarnation_id == self._incarnation_id)
        ):
            return
        self._is_waiting = True
        self._member.ask(active.node_id, self._request(active.epoch), self._answered)

    def _request(self, epoch: int) -> messages.ControllerRegistrationRequest:
        event = Activate(epoch, self._incarnation_id, listeners.endpoints(self._node.listeners), [])
        record = controller_registration(self._node.node_id, self._node.settings, event)
        form = messages.ControllerRegistrationRequest
        return form(
            controller_id=record.controller_id,
            incarnation_id=record.incarnation_id,
            listeners=[
                form.Listener(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
                for each in record.end_points
            ],
            features=[
                form.Feature(
                    name=each.name,
                    min_supported_version=each.min_supported_version,
                    max_supported_version=each.max_supported_version,
                )
                for each in record.features
            ],
        )

    def _answered(self, answer: object) -> None:
        code = getattr(answer, "error_code", None)
        if code != 0:
            self._node.logs.debug("metadata", "controller-not-registered", answer=code if code is not None else answer)
        # Its record comes with the log; it is asked again if it does not.
        self._node.runtime.call_later(AGAIN_SECONDS, self._again)

    def _again(self) -> None:
        self._is_waiting = False
        if self._member.shell is not None:
            self.look()
