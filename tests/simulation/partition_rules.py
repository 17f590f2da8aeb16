"""Rules of replicated partitions that are about what the controller says, and about logs that are cut: looked at in a
world of brokers under faults, beside what `replication_checkers.py` looks at.

* Who is in the ISR, or an eligible leader, and runs, has everything that is committed.
* A log is never cut below that; its leader epochs are those of its batches after each cut.
* The leader is in the ISR, which is a part of the replicas. No fenced broker is in it or leads. Eligible leaders are
  not in it, and there are none while it is large enough.
* Epochs of a partition and of a broker never fall; one change of a partition is one partition epoch.
* Whoever leads without having been in the ISR or eligible is marked as recovering.
* Nodes that have read equally far in the metadata have the same image."""

from __future__ import annotations

from pykafkad.metadata.partition_changes import RECOVERING
from pykafkad.wire import messages
from tests.simulation.controller_rounds import content
from tests.simulation.replication_checkers import Violation
from tests.simulation.replication_faults import FaultyWorld

TOPIC = 2
_CHANGES = messages.PartitionRecord, messages.PartitionChangeRecord


class PartitionRules:
    """`committed` for each record of the controller, `look` at any time, `finish` at the end."""

    def __init__(self, world):
        self.world = world
        self.looks = self.cuts = self.elections = self.eligible = 0
        self._known = {}
        """(topic, partition) to (partition epoch, leader epoch, leader, ISR and eligible leaders) before the record."""
        self._ends = {}
        """(node, topic, partition) to the log, its end and its high watermark at the last look."""
        self._broker_epochs = {}

    # --- what the controller says -----------------------------------------------------------------------------------

    def committed(self, value):
        """The controller has applied a record."""
        if isinstance(value, messages.RegisterBrokerRecord):
            before = self._broker_epochs.get(value.broker_id, -1)
            if value.broker_epoch <= before:
                raise Violation(f"broker {value.broker_id}: epoch {value.broker_epoch} after {before}")
            self._broker_epochs[value.broker_id] = value.broker_epoch
        if not isinstance(value, _CHANGES):
            return
        topic = self.world.image.topic_by_id(value.topic_id)
        state = topic.partitions[value.partition_id]
        place = topic.name, state.index
        before = self._known.get(place)
        holders = {*state.isr, *state.elr}
        self._known[place] = state.partition_epoch, state.leader_epoch, state.leader, holders
        if before is None:
            return
        epoch, leader_epoch, leader, holders = before
        if state.partition_epoch != epoch + 1 or state.leader_epoch < leader_epoch:
            raise Violation(f"{place}: {state} after the epochs {epoch} and {leader_epoch}")
        if state.leader not in (-1, leader):
            self.elections += 1
            if state.leader_epoch == leader_epoch:
                raise Violation(f"{place}: {state.leader} leads in the epoch of {leader}")
            # A change of replicas may be the end of a move, which makes a replica lead that joins the ISR with it.
            is_moved = getattr(value, "replicas", None) is not None
            if state.leader not in holders and not is_moved and state.leader_recovery_state != RECOVERING:
                raise Violation(f"{place}: {state.leader} is elected, and only {holders} were known to have everything")

    def look(self):
        """Look at the controller's image, and at all logs."""
        self.looks += 1
        image = self.world.image
        for topic in image.topics.values():
            for state in topic.partitions:
                self._look_at(topic, state, image.brokers)
        for producer in self.world.producers:
            self._look_at_logs((producer.topic, producer.index))

    def _look_at(self, topic, state, brokers):
        where = f"{topic.name}-{state.index}: leader {state.leader}, ISR {state.isr}, eligible {state.elr}"
        isr, replicas = set(state.isr), set(state.replicas)
        self.eligible += len(state.elr)
        if state.leader >= 0 and state.leader not in isr:
            raise Violation(f"{where}: the leader is not in the ISR")
        if not isr <= replicas or not replicas >= {*state.elr} or len(isr) != len(state.isr):
            raise Violation(f"{where}: of the replicas {state.replicas}")
        if isr & {*state.elr}:
            raise Violation(f"{where}: eligible leaders are in the ISR")
        if state.elr and len(isr) >= self.world.min_isr_of(topic.name, len(replicas)):
            raise Violation(f"{where}: there are eligible leaders although the ISR is large enough")
        fenced = [each for each in isr if brokers[each].fenced]
        if fenced:
            raise Violation(f"{where}: {fenced} are fenced")

    # --- what the logs have -----------------------------------------------------------------------------------------

    def _look_at_logs(self, place):
        world = self.world
        state, committed = world.state(*place), world.checkers.ends.get(place, 0)
        # Without any holder the leader may have less, as in Kafka (`replication_losses.py`).
        known = world.losses._known[place]
        is_known = bool(known.holders) and known.elected is None
        for node in world.nodes.values():
            log = node.broker.partitions.get(*place) if node.is_running and node.broker.serving else None
            if log is None or not log.is_loaded or log.offline is not None or log.closed:
                self._ends.pop((node.node_id, *place), None)
                continue
            before, end, high_watermark = self._ends.get((node.node_id, *place), (None, 0, 0))
            now = log.end_offset
            self._ends[(node.node_id, *place)] = log, now, log.high_watermark
            if before is log and now < end:
                self.cuts += 1
                world.checkers._check_epochs(node, log)
                if is_known and now < high_watermark:
                    raise Violation(f"{place} at {node.node_id}: cut from {end} to {now} below {high_watermark}")
            if is_known and node.node_id in (*state.isr, *state.elr) and now < committed:
                raise Violation(
                    f"{place} at {node.node_id}: it ends at {now}, with {committed} committed, ISR {state.isr}, "
                    f"eligible {state.elr}"
                )

    def finish(self):
        """All nodes have the same metadata."""
        world = self.world
        wanted = content(world.image)
        for node in world.nodes.values():
            if node.link.applied == len(world.committed) and content(node.link.image) != wanted:
                raise Violation(f"node {node.node_id} has another image at offset {world.image.offset}")


class RuledWorld(FaultyWorld):
    """A world in which these rules are looked at, too."""

    rules = None

    def __init__(self, seed, without=(), brokers=None):
        super().__init__(seed, without, brokers)
        self.rules = PartitionRules(self)

    def min_isr_of(self, topic, replicas):
        """How many replicas in sync are enough."""
        return min(replicas, int(self.image.configs(TOPIC, topic).get("min.insync.replicas", 1)))

    def record_committed(self, record, offset, epoch):
        super().record_committed(record, offset, epoch)
        if self.rules is not None:
            try:
                self.rules.committed(record.value)
            except Violation as violation:
                # In the middle of the controller's turn.
                self.fail(str(violation))

    def look(self):
        super().look()
        if self.rules is not None:
            self.rules.look()

    def finish(self):
        super().finish()
        self.rules.look()
        self.rules.finish()
