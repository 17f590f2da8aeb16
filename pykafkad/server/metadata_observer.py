"""An observer of the metadata quorum: the source of the metadata of a process that is no controller.

It fetches the metadata log from the leader, keeps a copy of it with snapshots of its own, and applies what is committed
(`metadata_source.py` says what a broker may expect of it). It has no vote and no listener."""

from __future__ import annotations

from functools import partial

from pykafkad.server.offload import Offload
from pykafkad.server.raft_member import RaftMember, open_log
from pykafkad.server.runtime import RuntimeNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.config import Settings
    from pykafkad.log.directory import LogDirectory
    from pykafkad.metadata.image import Image, MetadataDelta
    from pykafkad.server.controller_node import MetadataFollower
    from pykafkad.server.directories import Directories
    from pykafkad.server.housekeeping import Housekeeping
    from pykafkad.server.logs import Logs
    from pykafkad.server.metadata_source import ActiveController
    from pykafkad.server.runtime import Runtime


class MetadataObserver(RuntimeNode):
    """`start`, then turns until `close`."""

    member: RaftMember

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        directories: Directories,
        housekeeping: Housekeeping,
        logs: Logs | None = None,
    ) -> None:
        self.runtime = runtime
        self.settings = settings
        self.logs = logs or runtime.logs
        self.serving = False
        self.sync_offload = Offload(runtime.reactor.wake, runtime.unexpected)
        """Syncs of the metadata log: they wait for no other work."""
        self.syncs_beside_loop = False
        self._directories = directories
        self._housekeeping = housekeeping
        self._is_stopping = False
        self._followers: list[MetadataFollower] = []

    @property
    def directory(self) -> LogDirectory:
        """The directory of the metadata log."""
        return self._directories.metadata

    @property
    def cluster_id(self) -> str:
        """That of the directory."""
        return self.directory.meta["cluster.id"]

    @property
    def image(self) -> Image:
        """The cluster below the high watermark."""
        return self.member.image

    def on_committed(self, follower: MetadataFollower) -> None:
        """Tell `follower` of every change of the image from now on."""
        self._followers.append(follower)

    def metadata_changed(self, delta: MetadataDelta) -> bool:
        """Committed records changed the image. Whether new partitions wait for their logs by that."""
        opens = False
        for follower in self._followers:
            opens |= follower.metadata_changed(delta)
        return opens

    def after_opening(self, answer: Callable[[], object]) -> None:
        """Call `answer` when no partition waits for its log any more that waits now, with any follower."""
        for follower in self._followers:
            answer = partial(follower.after_opening, answer)
        answer()

    def active_controller(self) -> ActiveController | None:
        """The leader as this node knows it now."""
        return self.member.active_controller

    def on_new_controller(self, told: Callable[[], object]) -> None:
        """Call `told` in each turn in which `active_controller` has become another."""
        self.member.on_new_controller(told)

    def plan_deletions(self) -> None:
        """A file of the metadata log's directory is to be removed after its delay."""
        self._housekeeping.plan_deletions()

    # ---- start and stop

    def start(self) -> None:
        """Load the newest snapshot, and look for the leader. Raises ConfigError or StorageFailure."""
        log = open_log(self.directory, self.settings)
        self.member = RaftMember(self, log, applied_to=lambda offset, opens: None, stepped=lambda: None)
        self.member.load()
        self.member.start([], joins=False)

    def begin_serving(self) -> None:
        """From now on snapshots of the metadata are made."""
        self.member.snapshots.begin()
        self.serving = True

    def finish_work(self) -> None:
        """What is being synced is told; from now on every sync runs at once."""
        self._is_stopping = True
        self.syncs_beside_loop = False
        self.sync_offload.close()

    def close(self) -> None:
        """Leave the quorum."""
        self.member.close()

    def abandon(self) -> None:
        """Leave everything as it is, as a process does that is killed."""
        self.serving = False
        member: RaftMember | None = getattr(self, "member", None)
        if member is not None:
            # It has started.
            member.abandon()
        self.finish_work()

    # ---- one turn

    def end_turn(self, now: float) -> None:
        """Take the syncs that have ended; let the machine look at its timeouts."""
        self.syncs_beside_loop = not self._is_stopping
        self.sync_offload.finished()
        if self.member.shell is not None:
            self.member.shell.tick(now)

    def next_deadline(self) -> float | None:
        """When the machine's next timeout is due."""
        return self.member.next_deadline()
