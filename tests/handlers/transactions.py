"""A transaction coordinator that answers what a test says, and requests of producers with transactions."""

from __future__ import annotations

from pykafkad.wire import messages


class Coordinator:
    """Keeps the questions; answers at once with `code` unless it is None."""

    def __init__(self):
        self.asked = []
        self.code = 0
        self.waiting = []

    def add_partitions(self, transactional_id, producer_id, producer_epoch, partitions, verify_only, then):
        self.asked.append((transactional_id, producer_id, producer_epoch, partitions, verify_only))
        if self.code is None:
            self.waiting.append((partitions, then))
        else:
            then(dict.fromkeys(partitions, self.code))

    def answer(self, code):
        partitions, then = self.waiting.pop(0)
        then(dict.fromkeys(partitions, code))


def marker(*places, producer_id=1, epoch=0, coordinator_epoch=0, commit=True, version=0):
    """A marker of WriteTxnMarkers for (topic, partition) pairs."""
    of = messages.WriteTxnMarkersRequest
    return of.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        transaction_result=commit,
        transaction_version=version,
        topics=[of.WritableTxnMarkerTopic(name=name, partition_indexes=[index]) for name, index in places],
    )


def write_markers(peer, *markers, version=2):
    """The answer to WriteTxnMarkers: error codes by producer id, topic and partition."""
    answer = peer.ask(messages.WriteTxnMarkersRequest(markers=list(markers)), version)
    return {
        (row.producer_id, topic.name, each.partition_index): each.error_code
        for row in answer.markers
        for topic in row.topics
        for each in topic.partitions
    }
