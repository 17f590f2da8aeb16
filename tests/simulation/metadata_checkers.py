"""What must hold of the committed metadata of partitions and brokers, and of the brokers' logs beside them.

After every committed record: who leads, the ISR and the eligible leader replicas (ELR) fit each other and the brokers;
nobody leads or joins who may not; epochs rise. At every look: who is in the ISR or the ELR and runs has all that is
committed, and no broker goes back in the epochs of a partition. At every cut: nothing committed goes, and the leader
epochs are those of the batches that are left.

What an election without any replica that is known to have everything may lose is known to `replication_losses`."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.metadata.partition_changes import RECOVERING
from pykafkad.server.follower_cuts import FollowerCuts
from pykafkad.wire import messages
from tests.simulation.controller_rounds import content
from tests.simulation.replication_checkers import batches, epochs_problem
from tests.simulation.replication_losses import MIN_ISR

IMAGES_SECONDS = 10.0
"""Between two comparisons of the brokers' images."""

Known = namedtuple(
    "Known", ("leader", "isr", "elr", "last_known_elr", "leader_epoch", "partition_epoch", "adding_replicas")
)
Known.__doc__ = """A partition as it was after its last record."""


def _known(state):
    return Known(*(getattr(state, name) for name in Known._fields))


class WatchedCuts(FollowerCuts):
    """The cuts of a broker's logs, of which the checkers hear."""

    def __init__(self, node, checkers):
        super().__init__(node.broker)
        self._node, self._checkers = node, checkers

    def begin(self, log, end_offset, make, made, ended):
        """See FollowerCuts."""

        def watched():
            self._checkers.before_cut(self._node, log, end_offset)
            cut = make()
            self._checkers.after_cut(self._node, log)
            return cut

        super().begin(log, end_offset, watched, made, ended)


class MetadataCheckers:
    """`world.fail` is told what does not hold."""

    def __init__(self, world, losses, checkers):
        self.world = world
        self._losses = losses
        self._checkers = checkers
        self._partitions = {}
        """(topic id, partition) to what is known of it."""
        self._broker_epochs = {each.id: each.epoch for each in world.image.brokers.values()}
        self._replica_epochs = {}
        """(broker, topic, partition) to its log, and the epochs that it had at the last look."""
        self._images_at = 0.0
        self.joins = self.images = self.cuts = self.rejoins = 0
        self._unclean = set()
        """Brokers that stopped uncleanly, and are in no ISR since."""
        for node in world.nodes.values():
            self.started(node)

    def started(self, node):
        """A broker begins a life."""
        node.broker.replication._cuts = WatchedCuts(node, self)

    def stopped_uncleanly(self, node_id):
        """A broker was killed, its machine lost power, or its disk."""
        self._unclean.add(node_id)

    # --- after every committed record -------------------------------------------------------------------------------

    def record_committed(self, record):
        """The controller has committed and applied a record."""
        if isinstance(record, (messages.PartitionRecord, messages.PartitionChangeRecord)):
            topic = self.world.image.topic_by_id(record.topic_id)
            self._partition_changed(topic, self.world.image.partition(topic.name, record.partition_id))
        elif isinstance(record, messages.RegisterBrokerRecord):
            self._registered(record)
        elif isinstance(record, messages.BrokerRegistrationChangeRecord):
            broker = self.world.image.brokers[record.broker_id]
            if broker.fenced:
                self._has_no_place(broker.id, "fenced", ("leader", "isr"))

    def _registered(self, record):
        before = self._broker_epochs.get(record.broker_id, -1)
        if record.broker_epoch <= before:
            self.world.fail(f"broker {record.broker_id}: its epoch goes from {before} to {record.broker_epoch}")
        self._broker_epochs[record.broker_id] = record.broker_epoch
        if record.fenced:
            self._has_no_place(record.broker_id, "registered and fenced", ("leader", "isr"))
        if record.broker_id in self._unclean:
            self._unclean.discard(record.broker_id)
            self.rejoins += 1
            self._has_no_place(record.broker_id, "back after an unclean stop", ("leader", "isr", "elr"))

    def _has_no_place(self, broker_id, what, names):
        """A broker leads nothing, and is in no ISR (and ELR)."""
        for topic in self.world.image.topics.values():
            for state in topic.partitions:
                for name in names:
                    found = getattr(state, name)
                    if broker_id in ((found,) if name == "leader" else found):
                        self.world.fail(
                            f"({topic.name!r}, {state.index}): {broker_id} is {what}, and {name} is {found}"
                        )

    def _partition_changed(self, topic, state):
        key, place = (topic.id, state.index), (topic.name, state.index)
        before, now = self._partitions.get(key), _known(state)
        self._partitions[key] = now
        isr, elr = set(now.isr), set(now.elr)
        problem = None
        if now.leader >= 0 and now.leader not in isr:
            problem = "the leader is not in the ISR"
        elif not isr | elr <= set(state.replicas):
            problem = "the ISR or the ELR has who is no replica"
        elif isr & elr:
            problem = "a broker is in the ISR and in the ELR"
        elif elr and len(isr) >= min(MIN_ISR, len(state.replicas)):
            problem = "the ISR is large enough, and there is an ELR"
        elif before is not None:
            problem = self._problem_of_change(before, now, state)
        if problem:
            self.world.fail(f"{place}: {problem}: {now}, before {before}")

    def _problem_of_change(self, before, now, state):
        if now.partition_epoch != before.partition_epoch + 1:
            return "the partition epoch does not rise by one"
        if now.leader_epoch < before.leader_epoch or (
            now.leader != before.leader and now.leader_epoch == before.leader_epoch
        ):
            return "the leader epoch does not rise"
        joined = set(now.isr) - set(before.isr)
        self.joins += len(joined)
        for each in joined:
            broker = self.world.image.brokers.get(each)
            if broker is None or not broker.active:
                return f"{each} joins the ISR and is fenced or stops"
        if not set(now.elr) <= {*before.isr, *before.elr}:
            return "somebody joins the ELR who was neither in the ISR nor in the ELR"
        if now.leader not in {before.leader, -1, *before.isr, *before.elr}:
            return self._problem_of_stranger(before, now, state)
        return None

    def _problem_of_stranger(self, before, now, state):
        """Somebody leads who was not known to have everything. A reassignment that ends may make it so, because the
        leader has just said that it is in sync. Otherwise it is an unclean election, of the last known leader, after
        whoever was waited for has come back from an unclean stop."""
        if before.leader >= 0 and now.leader in before.adding_replicas and not now.adding_replicas:
            return None
        if {*before.isr, *before.elr} - self._unclean or before.last_known_elr != (now.leader,):
            return "an unclean election, where unclean elections are not allowed"
        return None if state.leader_recovery_state == RECOVERING else "an unclean election that does not say so"

    # --- at every look ----------------------------------------------------------------------------------------------

    def look(self):
        """Also what takes longer, from time to time."""
        self._look_at_members()
        self._look_at_replicas()
        if self.world.now - self._images_at >= IMAGES_SECONDS:
            self._images_at = self.world.now
            self.compare_images()

    def _look_at_members(self):
        image, nodes = self.world.image, self.world.nodes
        for place, end in self._checkers.ends.items():
            state = image.partition(*place)
            if self._losses.is_pending(place):
                continue
            for broker_id in state.isr:
                if not image.brokers[broker_id].active:
                    self.world.fail(f"{place}: {broker_id} is in the ISR {state.isr} and is fenced or stops")
            for broker_id in (*state.isr, *state.elr):
                node = nodes[broker_id]
                if not node.is_running or not node.broker.serving:
                    continue
                log = node.broker.partitions.get(*place)
                if log is None:
                    self.world.fail(f"{place}: {broker_id} is in the ISR or ELR and has no log")
                elif log.is_loaded and log.offline is None and not log.closed and log.written_end_offset < end:
                    self.world.fail(
                        f"{place}: {broker_id} is in the ISR {state.isr} or the ELR {state.elr} and ends at "
                        f"{log.written_end_offset}, where {end} is committed"
                    )

    def _look_at_replicas(self):
        for node in self.world.nodes.values():
            if not node.is_running or not node.broker.serving:
                continue
            for log in node.broker.partitions:
                key = node.node_id, log.topic, log.partition
                now = log.replica.leader_epoch, log.replica.partition_epoch
                known, before = self._replica_epochs.get(key, (None, ()))
                if known is log and (now[0] < before[0] or now[1] < before[1]):
                    self.world.fail(f"{key[1:]} at {node.node_id}: its epochs go from {before} to {now}")
                if now != before or known is not log:
                    self._replica_epochs[key] = log, now

    def compare_images(self):
        """Whoever has reached the same offset of the metadata has the same image."""
        found = {}
        controller = self.world.image
        for node in self.world.nodes.values():
            if node.is_running:
                found.setdefault(node.link.image.offset, []).append((f"broker {node.node_id}", node.link.image))
        found.setdefault(controller.offset, []).append(("the controller", controller))
        for offset, rows in found.items():
            self.images += len(rows) - 1
            if len(rows) > 1 and len({content(image) for _, image in rows}) > 1:
                self.world.fail(f"{', '.join(name for name, _ in rows)}: their images of offset {offset} differ")

    # --- at every cut -----------------------------------------------------------------------------------------------

    def before_cut(self, node, log, end_offset):
        """A log is about to be cut."""
        self.cuts += 1
        place = log.topic, log.partition
        if self._losses.is_pending(place):
            return
        committed = self._checkers.committed.get(place, {})
        for found in batches(log, max(end_offset, log.log_start_offset), log.written_end_offset):
            if committed.get(found[0]) == found:
                self.world.fail(f"{place} at {node.node_id}: a cut to {end_offset} takes {found}, which is committed")
                return

    def after_cut(self, node, log):
        """A log was cut."""
        problem = epochs_problem(log)
        if problem is None and log.epochs.entries and log.epochs.entries[-1][1] >= log.written_end_offset:
            problem = f"{log.epochs.entries} go on behind the end {log.written_end_offset}"
        if problem is not None:
            self.world.fail(f"{log} at {node.node_id}, after a cut: {problem}")
