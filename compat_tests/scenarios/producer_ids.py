"""InitProducerId of idempotent producers."""

from __future__ import annotations

from compat_tests.scenarios.exchange import Exchange, versions
from compat_tests.scenarios.registry import scenario


@scenario
def idempotent_producers(broker: Exchange) -> None:
    """Each producer gets a new id with epoch 0, whatever it had before; an id without an epoch is INVALID_REQUEST."""
    for version in versions("InitProducerId"):
        if version > 5:
            continue
        first = broker.ask("InitProducerId", version, transactional_id=None, transaction_timeout_ms=60_000)
        second = broker.ask("InitProducerId", version, transactional_id=None, transaction_timeout_ms=0)
        assert first.producer_id != second.producer_id
        if version >= 3:
            for producer_id, epoch in ((first.producer_id, 0), (first.producer_id, -1), (-1, 0)):
                fields = {"transactional_id": None, "producer_id": producer_id, "producer_epoch": epoch}
                broker.ask("InitProducerId", version, note=f"epoch {epoch}", **fields)
        broker.ask("InitProducerId", version, note="empty id", transactional_id="")
