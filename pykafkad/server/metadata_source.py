"""Where a broker learns of the cluster's metadata: the interface of its two sources, and the address of the leader.

The controller of the same process is one source (`controller_node.py`). The other is an observer of the quorum, of a
process whose role is broker alone (`MetadataObserver(runtime, settings, directories, housekeeping)`, a node of the
runtime that comes before the broker): it fetches the metadata log from the leader, keeps a copy in
`__cluster_metadata-0` and applies what is committed.

* The source owns the image. It is one object for the source's whole life, also when a snapshot of the leader takes the
  place of everything before. Followers read it, and never change it.
* The image has committed records only: those below the high watermark that the leader told.
* Followers hear of each change after it is applied, in the order in which they subscribed, on the loop, never inside a
  call of their own. What a snapshot changes comes as one delta.
* An observer's `start` does not wait for a leader. Until the first is known the image is that of the newest snapshot
  on disk, and `active_controller` says None.
* Requests to the active controller go to `active_controller()`, over a connection of whoever asks. It may be wrong by
  the time they arrive: NOT_CONTROLLER, or a failed connection, means to ask again when it has changed
  (`on_new_controller`) or after a pause."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from pykafkad.metadata.image import Image
    from pykafkad.server.controller_node import MetadataFollower
    from pykafkad.server.logs import Logs

    class MetadataSource(Protocol):
        """What a broker asks of either source."""

        logs: Logs

        @property
        def image(self) -> Image:
            """The cluster below the high watermark. `image.offset` is the last applied offset, which a heartbeat tells
            as its CurrentMetadataOffset."""

        def on_committed(self, follower: MetadataFollower) -> None:
            """Tell `follower` of every change of the image from now on."""

        def active_controller(self) -> ActiveController | None:
            """The leader as this node knows it now; None while there is none."""

        def on_new_controller(self, told: Callable[[], object]) -> None:
            """Call `told` in each turn in which `active_controller` has become another, or None."""


ActiveController = namedtuple("ActiveController", ("node_id", "epoch", "host", "port"))
ActiveController.__doc__ = """The leader of the metadata quorum in its epoch, and where its listener for other nodes is.

`host` is a name or an address; its port is 0 and its host empty for a controller that listens nowhere."""
