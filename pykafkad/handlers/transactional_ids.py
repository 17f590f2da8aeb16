"""The error for transactional ids, of which this broker gives out none."""

from __future__ import annotations

from pykafkad import errors


def error_of_unknown_id(transactional_id: str) -> int:
    """Kafka's code for a transactional id that it does not know."""
    return errors.INVALID_PRODUCER_ID_MAPPING if transactional_id else errors.INVALID_REQUEST
