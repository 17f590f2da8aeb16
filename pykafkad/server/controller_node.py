"""The controller's half of a process: the metadata quorum, the controller that decides, and the metadata log.

Whoever holds the metadata (`Broker`) is added as a subscriber and told of each change below the log's high
watermark."""

from __future__ import annotations

from pykafkad import config, uuids
from pykafkad.errors import ConfigError
from pykafkad.metadata import events, quorum, quorum_states, record_codec, voters
from pykafkad.metadata.controller import Controller
from pykafkad.server.logs import logger
from pykafkad.server.metadata_log import MetadataLog
from pykafkad.server.runtime import RuntimeNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.config import Settings
    from pykafkad.log.directory import LogDirectory
    from pykafkad.metadata.image import Image, MetadataDelta
    from pykafkad.metadata.quorum import Quorum
    from pykafkad.server.broker import Broker
    from pykafkad.server.directories import Directories
    from pykafkad.server.runtime import Runtime

log_lines = logger("server")

# The metadata log is thinned by its snapshots alone.
_METADATA_LOG_SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(8 * 1024 * 1024),
}


class ControllerNode(RuntimeNode):
    """A controller that is the only voter of its quorum. `start`, then `activate`, then turns until `close`."""

    metadata_log: MetadataLog

    def __init__(self, runtime: Runtime, settings: Settings, directories: Directories) -> None:
        self.runtime = runtime
        self.settings = settings
        self.directories = directories
        self.node_id = settings.node_id
        self.serving = False
        self.broker: Broker | None = None
        """The broker that holds the same image; it is told of each change."""

    @property
    def directory(self) -> LogDirectory:
        """The directory of the metadata log."""
        return self.directories.metadata

    @property
    def image(self) -> Image:
        """The current picture of the cluster."""
        return self.metadata_log.image

    @property
    def quorum(self) -> Quorum:
        """The quorum's machine."""
        return self.metadata_log.quorum

    def submit(self, event: object) -> object:
        """Hand an event to the controller; the answer comes when its records are committed."""
        return self.metadata_log.submit(event)

    def metadata_changed(self, delta: MetadataDelta) -> None:
        """Committed records changed the image."""
        if self.broker is not None:
            self.broker.metadata_changed(delta)

    def plan_deletions(self) -> None:
        """A file of the metadata log's directory is to be removed after its delay."""
        if self.broker is not None:
            self.broker.housekeeping.plan_deletions()

    # --- start and stop -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the metadata log and elect a leader. Raises ConfigError or StorageFailure."""
        directory, settings = self.directory, self.settings
        log_settings = {**_METADATA_LOG_SETTINGS, "segment.bytes": str(settings.metadata_log_segment_bytes)}
        log_settings["segment.ms"] = str(settings.metadata_log_segment_ms)
        if settings.internal_metadata_log_segment_bytes:
            log_settings["internal.segment.bytes"] = str(settings.internal_metadata_log_segment_bytes)
        log = directory.open_partition(
            *record_codec.LOG, record_codec.TOPIC_ID, config.topic_settings(settings, log_settings)
        )
        metadata = self.metadata_log = MetadataLog(self, log)
        metadata.load()
        directory_id = uuids.from_text(directory.meta["directory.id"])
        voter_set = metadata.image.voters or [voters.Voter(self.node_id, directory_id, [])]
        is_new = metadata.image.offset < 0
        if is_new:
            metadata.format(voter_set)
        machine = quorum.Quorum(
            self.node_id,
            directory_id,
            voter_set,
            self.runtime.random,
            # A log without voters is one of a static quorum (kraft.version 0), and stays it.
            voters_in_log=not is_new,
            state_file=self._quorum_state(f"{directory.path}/{quorum.STATE_FILE}", len(voter_set)),
        )
        cluster_id = directory.meta["cluster.id"]
        metadata.start(machine, Controller(self.node_id, cluster_id, settings, metadata.image, self.runtime.random))
        if machine.state != quorum_states.LEADER:
            named = ", ".join(f"{voter.id} with directory {uuids.to_text(voter.directory_id)}" for voter in voter_set)
            raise ConfigError(
                f"{directory.path}: its metadata log names as voters {named}; this is node {self.node_id} with directory "
                f"{uuids.to_text(directory_id)} ({directory.path}/meta.properties), which cannot lead alone"
            )

    def _quorum_state(self, path: str, voter_count: int) -> bytes | None:
        """The content of `quorum-state`. A lone voter does without a damaged one: nobody else counts its votes, and the
        log has its epoch."""
        content = self.runtime.disk.read(path)
        try:
            quorum.parse_state(content)
        except ValueError as error:
            if voter_count > 1:
                raise ConfigError(f"{path} is damaged: {error}") from None
            log_lines.warning("quorum-state-damaged", path=path, reason=error)
            return None
        return content

    def activate(self, incarnation_id: bytes) -> None:
        """Begin to decide. Every broker but this process's own is fenced: nobody can tell this controller that it
        lives."""
        self.submit(events.Activate(self.quorum.epoch, incarnation_id, [], self.metadata_log.bootstrap_records()))
        for other in list(self.image.brokers.values()):
            if other.id != self.node_id:
                self.submit(events.FenceBroker(other.id, other.epoch))

    def begin_serving(self) -> None:
        """From now on snapshots of the metadata are made."""
        self.metadata_log.snapshots.begin()
        self.serving = True

    def close(self) -> None:
        """Make the snapshot that spares the next start its reading, and leave the quorum."""
        self.metadata_log.resign()

    # --- one turn -----------------------------------------------------------------------------------------------------

    def end_turn(self, now: float) -> None:
        """Let the quorum look at its timeouts."""
        deadline = self.metadata_log.next_deadline()
        if deadline is not None and deadline <= now:
            self.metadata_log.tick()

    def next_deadline(self) -> float | None:
        """When the quorum's next timeout is due."""
        return self.metadata_log.next_deadline()
