"""The one case in which replicated partitions may lose what was committed, as in Kafka (KIP-966).

A partition survives the loss of any of its replicas as long as one is left that is known to have everything: a holder.
Every broker of an ISR of at least `min.insync.replicas` is one, until it leaves the ISR for another ISR of that size,
or stops uncleanly. Nobody can know what a broker has kept after an unclean stop, so it is one no longer, whether its
process was killed or its machine lost power.

Without any holder the last known leader leads again. It has everything that was committed, unless its own machine lost
power. That loss, and no other, is allowed: with `min.insync.replicas` 2 it takes two unclean stops.

All of this is computed from the records of the controller and from what really happened to the machines, not from the
eligible leader replicas that the controller keeps."""

from __future__ import annotations

from pykafkad.metadata.partition_changes import RECOVERING
from pykafkad.wire import messages

MIN_ISR = 2
"""The `min.insync.replicas` of all topics in a world with this check."""


class _Known:
    """What is known of one partition."""

    def __init__(self, isr):
        self.isr = set(isr)
        self.holders = set(isr)
        self.unclean = set()
        """Those that stopped uncleanly, and did not join the ISR since."""
        self.without_power = set()
        """Those of them that lost power."""
        self.replaced = set()
        """Those with an empty disk in place of theirs, until they join the ISR."""
        self.elected = None
        """(leader epoch, whether it may have lost something) of elections without a holder that nobody has seen yet."""


class Losses:
    """`world.record_committed` tells of records, `stopped_uncleanly` of machines."""

    def __init__(self, world):
        self.world = world
        self._known = {}
        self._down = {}
        """Brokers that stopped uncleanly and have not registered since, to whether they lost power."""
        self.unclean_elections = self.losses = 0

    def record_committed(self, record):
        """The controller has committed and applied a record."""
        if isinstance(record, messages.RegisterBrokerRecord):
            self._down.pop(record.broker_id, None)
        if not isinstance(record, (messages.PartitionRecord, messages.PartitionChangeRecord)):
            return
        topic = self.world.image.topic_by_id(record.topic_id)
        place = topic.name, record.partition_id
        state = self.world.state(*place)
        known = self._known.get(place)
        if known is None:
            self._known[place] = _Known(state.isr)
            return
        if record.isr is not None and state.leader >= 0 and not known.isr and state.leader not in known.holders:
            self._elected_without_holder(place, state, known)
        for joined in set(state.isr) - known.isr:
            # With everything, whatever happened to it before.
            known.unclean.discard(joined)
            known.without_power.discard(joined)
            if joined in self._down:
                # It was proposed while it lived.
                self._stopped(known, joined)
            else:
                known.replaced.discard(joined)
        known.isr = set(state.isr)
        if len(known.isr) >= MIN_ISR:
            known.holders = known.isr - known.unclean
        else:
            known.holders = (known.holders | (known.isr - known.unclean)) & set(state.replicas)

    def _elected_without_holder(self, place, state, known):
        self.unclean_elections += 1
        if known.holders:
            self.world.fail(f"{place}: {state.leader} is elected, although {known.holders} have everything")
        if state.leader_recovery_state != RECOVERING:
            self.world.fail(f"{place}: {state.leader} is elected as if it had everything")
        may_have_lost = state.leader in known.without_power
        epoch = state.leader_epoch
        if known.elected is not None:
            epoch, may_have_lost = known.elected[0], may_have_lost or known.elected[1]
        known.elected = epoch, may_have_lost
        # From here on its log is the partition's.
        known.unclean, known.without_power = set(), set()

    def stopped_uncleanly(self, node_id, *, power):
        """A broker was killed, or its machine lost power."""
        self._down[node_id] = power
        for known in self._known.values():
            self._stopped(known, node_id)

    def unknown(self):
        """The brokers that stopped uncleanly and have not registered since. They may still be in ISRs, and others may
        leave those as if they had everything."""
        return set(self._down)

    def disk_replaced(self, node_id):
        """A broker that was killed has an empty disk from now on."""
        for place, known in self._known.items():
            if node_id in self.world.state(*place).replicas:
                known.replaced.add(node_id)

    def can_lose(self, node_id, beside=None):
        """Whether others have everything that a broker has, should it stop uncleanly. With `beside`, a broker whose
        disk was replaced, only what this one has not copied yet counts. A machine that fails is no other: a log that
        is out of service there leads nothing until the machine is killed, which it cannot be as the last one."""
        failing = {each.node_id for each in self.world.failing}
        for place, known in self._known.items():
            replicas = self.world.state(*place).replicas
            if node_id not in replicas or (beside is not None and beside not in known.replaced.intersection(replicas)):
                continue
            if not known.holders - failing - {node_id}:
                return False
        return True

    def _stopped(self, known, node_id):
        known.holders.discard(node_id)
        known.unclean.add(node_id)
        if self._down[node_id]:
            known.without_power.add(node_id)

    def are_pending(self):
        """Whether something may be lost, and it is not known yet how much."""
        return any(each.elected is not None for each in self._known.values())

    def is_pending(self, place):
        """Whether something of a partition may be lost, and it is not known yet how much."""
        known = self._known.get(place)
        return known is not None and known.elected is not None

    def taken(self, place, leader_epoch):
        """The epoch of an election without a holder that may have lost something. None if there was none, or the
        leader of `leader_epoch` was elected before it. Told once."""
        known = self._known[place]
        if known.elected is None or known.elected[0] > leader_epoch:
            return None
        epoch, may_have_lost = known.elected
        known.elected = None
        self.losses += may_have_lost
        return epoch if may_have_lost else None
