"""What transactional clients were told, and whether what is in the logs fits that (reliability: invariants 28 to 46).

A client notes what it does in a `History`. At the end `anomalies` compares that with the batches of the logs, with what
a reader with read_committed finds, with every poll of such a reader, and with the offsets of the groups. Nothing here
knows brokers: all is values."""

from __future__ import annotations

from bisect import bisect_left
from collections import namedtuple

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"
"""What is known of a transaction's end. Of an unknown one all or nothing is there."""

PLAIN, TRANSACTIONAL, COMMIT, ABORT = "plain", "transactional", "commit marker", "abort marker"

Batch = namedtuple("Batch", ("offset", "kind", "producer_id", "epoch", "sequence", "values"))
Batch.__doc__ = """A batch of a log. The offset is that of its first record."""

Poll = namedtuple("Poll", ("start", "end", "records"))
Poll.__doc__ = """What one Fetch with read_committed gave: it reached from `start` up to `end`. The records are pairs
of offset and value."""

NO_PRODUCER = -1


class Transaction:
    """One transaction. `writes` are the values sent to each partition, in their order; `offset` is what it commits for
    its group, or None. Until an end is asked for it is one that must never be seen."""

    def __init__(self, number, transactional_id):
        self.number = number
        self.transactional_id = transactional_id
        self.writes = {}
        self.offset = None
        self.outcome = ABORTED

    def __repr__(self):
        return f"transaction {self.number} of {self.transactional_id} ({self.outcome})"

    def sent(self, place, values):
        self.writes.setdefault(place, []).extend(values)


class History:
    """The transactions of a run in the order in which they began, and the partitions of which nothing can be said."""

    def __init__(self):
        self.transactions = []
        self.problems = []
        """What was wrong with an answer when it came."""
        self.spoiled = set()
        """Partitions that have lost committed records: also their markers and the state of their producers."""
        self.forgotten = set()
        """Transactional ids whose coordinator has lost committed records."""
        self.without_offsets = set()
        """Groups whose coordinator has lost committed records."""

    def begin(self, transactional_id):
        transaction = Transaction(len(self.transactions), transactional_id)
        self.transactions.append(transaction)
        return transaction

    def judged(self):
        return [each for each in self.transactions if each.transactional_id not in self.forgotten]

    def fail(self, text):
        self.problems.append(text)


def anomalies(history, logs, views, polls, offsets):
    """What does not fit, as sentences.

    `logs` maps partitions to their batches, `views` to the (offset, value) pairs that a reader with read_committed
    finds in the end, `polls` to the polls that there were; `offsets` maps groups, which are named as the transactional
    ids, to what they have committed."""
    found = list(history.problems)
    sent = {}
    for transaction in history.transactions:
        for place, values in transaction.writes.items():
            sent.update({(place, value): transaction for value in values})
    for place in sorted(set(logs) - history.spoiled):
        found += log_anomalies(place, logs[place], _forgotten_producers(history, place, logs[place], sent))
        found += _unknown_values(place, logs[place], sent)
    views = {place: view for place, view in views.items() if place not in history.spoiled}
    visible = {place: {value for _, value in view} for place, view in views.items()}
    for transaction in history.judged():
        found += _torn(transaction, visible)
    for place, view in sorted(views.items()):
        found += _disordered(place, view, sent, history.forgotten)
        found += _misread(place, dict(view), polls.get(place, ()))
    for group, offset in sorted(offsets.items()):
        if group not in history.forgotten | history.without_offsets:
            ours = [each for each in history.transactions if each.transactional_id == group]
            found += _wrong_offset(group, offset, ours, visible)
    return found


def _forgotten_producers(history, place, batches, sent):
    """The producer ids of transactional ids whose coordinator has lost committed records."""
    return {
        batch.producer_id
        for batch in batches
        if batch.kind == TRANSACTIONAL
        for value in batch.values
        if (place, value) in sent and sent[place, value].transactional_id in history.forgotten
    }


def log_anomalies(place, batches, forgotten=()):
    """What is wrong with one partition's log: sequences, epochs, markers, values that are there twice.

    A coordinator that has lost a transaction writes no marker for it and begins the next one. That is allowed for the
    producer ids in `forgotten`."""
    found, values = [], set()
    sequences, epochs, begun = {}, {}, {}
    for batch in batches:
        for value in batch.values:
            if value in values:
                found.append(f"{place}: {value} is there twice, again at {batch.offset}")
            values.add(value)
        producer_id = batch.producer_id
        if producer_id == NO_PRODUCER:
            continue
        if batch.epoch < epochs.get(producer_id, 0):
            found.append(f"{place}: {batch} comes after epoch {epochs[producer_id]} of its producer")
        epochs[producer_id] = max(batch.epoch, epochs.get(producer_id, 0))
        if batch.kind in (COMMIT, ABORT):
            # A marker may be written again, by a coordinator that does not know that it was written.
            begun.pop(producer_id, None)
            continue
        expected = sequences.get((producer_id, batch.epoch), 0)
        if batch.sequence != expected:
            found.append(f"{place}: {batch}, where sequence {expected} is due")
        sequences[producer_id, batch.epoch] = batch.sequence + len(batch.values)
        if batch.kind == TRANSACTIONAL:
            first = begun.setdefault(producer_id, batch)
            if first.epoch != batch.epoch and producer_id not in forgotten:
                found.append(f"{place}: {batch} follows {first}, whose transaction has not ended")
        elif producer_id in begun:
            found.append(f"{place}: {batch} is in the transaction of {begun[producer_id]}")
    found += [f"{place}: the transaction of {first} hangs" for first in begun.values()]
    return found


def outcomes_anomalies(logs, bumping):
    """Transactions that are committed in one partition and aborted in another, of producers whose epoch rises with each
    end. `bumping` are their producer ids."""
    ends = {}
    for place in sorted(logs):
        for batch in logs[place]:
            if batch.kind in (COMMIT, ABORT) and batch.producer_id in bumping:
                ends.setdefault((batch.producer_id, batch.epoch), {}).setdefault(batch.kind, (place, batch.offset))
    in_two_ways = {key: both for key, both in ends.items() if len(both) > 1}
    return [f"producer {key[0]} ends with epoch {key[1]} in two ways: {both}" for key, both in in_two_ways.items()]


def _unknown_values(place, batches, sent):
    return [
        f"{place}: {value} at {batch.offset} was not sent in a transaction"
        for batch in batches
        if batch.kind == TRANSACTIONAL
        for value in batch.values
        if (place, value) not in sent
    ]


def _torn(transaction, visible):
    """A transaction is visible as a whole or not at all, and as its client was told."""
    there, missing = [], []
    for place, values in transaction.writes.items():
        if place in visible:
            for value in values:
                (there if value in visible[place] else missing).append((place, value))
    if transaction.outcome is COMMITTED and missing:
        return [f"{transaction} lacks {missing[0]}, of {len(missing) + len(there)} records {len(missing)}"]
    if transaction.outcome is ABORTED and there:
        return [f"{transaction} is seen: {there[0]}"]
    if there and missing:
        return [f"{transaction} is torn: {there[0]} is seen, and {missing[0]} is not"]
    return []


def _disordered(place, view, sent, forgotten):
    """The records of a transactional id are in the order in which they were sent."""
    found, last = [], {}
    for offset, value in view:
        transaction = sent.get((place, value))
        if transaction is None or transaction.transactional_id in forgotten:
            continue
        position = transaction.number, transaction.writes[place].index(value)
        if position < last.get(transaction.transactional_id, (-1, -1)):
            found.append(f"{place}: {value} of {transaction} is at {offset}, behind what was sent after it")
        last[transaction.transactional_id] = position
    return found


def _misread(place, view, polls):
    """Each poll has found what is there in the end."""
    found, offsets = [], sorted(view)
    for poll in polls:
        records = dict(poll.records)
        for offset, value in poll.records:
            if view.get(offset) != value:
                found.append(f"{place}: {value} was read as committed at {offset}, where {view.get(offset)} is")
        for offset in _between(offsets, poll.start, poll.end):
            if offset not in records:
                found.append(f"{place}: the read from {poll.start} to {poll.end} left out {view[offset]} at {offset}")
    return found


def _between(offsets, start, end):
    return offsets[bisect_left(offsets, start) : bisect_left(offsets, end)]


def _wrong_offset(group, offset, transactions, visible):
    """The offset is that of the last transaction that was committed. `transactions` are those of the group."""
    with_offsets = [each for each in transactions if each.offset is not None]
    possible = [-1]
    for transaction in with_offsets:
        is_seen = any(
            value in visible[place]
            for place, values in transaction.writes.items()
            if place in visible
            for value in values
        )
        if transaction.outcome is COMMITTED or is_seen:
            possible = [transaction.offset]
        elif transaction.outcome is UNKNOWN and not any(place in visible for place in transaction.writes):
            possible.append(transaction.offset)
    if offset in possible:
        return []
    owner = next((each for each in with_offsets if each.offset == offset), "no transaction")
    return [f"group {group} has offset {offset} of {owner}, where {possible} is due"]
