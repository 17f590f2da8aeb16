"""The transactional ids that this broker has given out: none. The APIs of transactions need to know no more."""

from __future__ import annotations

from pykafkad import errors


def error_of_nobodys(transactional_id: str) -> int:
    """Kafka's code for a request of a producer whose transactional id it does not know."""
    return errors.INVALID_PRODUCER_ID_MAPPING if transactional_id else errors.INVALID_REQUEST
