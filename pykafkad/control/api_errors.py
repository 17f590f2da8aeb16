"""Errors of the control API: what each exception becomes, as status and JSON."""

from __future__ import annotations

from typing import Any

from pykafkad import errors
from pykafkad.errors import StartFailure, StorageFailure
from pykafkad.testing.broker_loop import BrokerEnded
from pykafkad.testing.waits import NotInTime
from pykafkad.testing.wire_client import Refused

BAD_REQUEST, UNAUTHORIZED, NOT_FOUND, NOT_ALLOWED, CONFLICT = 400, 401, 404, 405, 409
TOO_LARGE, TOO_MANY, HEADERS_TOO_LARGE, UNEXPECTED, UNAVAILABLE, NOT_IN_TIME = 413, 429, 431, 500, 503, 504

_STATUS_OF_REFUSED = {
    errors.UNKNOWN_TOPIC_OR_PARTITION: NOT_FOUND,
    errors.GROUP_ID_NOT_FOUND: NOT_FOUND,
    errors.TOPIC_ALREADY_EXISTS: CONFLICT,
    errors.NON_EMPTY_GROUP: CONFLICT,
    errors.UNKNOWN_MEMBER_ID: CONFLICT,
}
"""Statuses of what the broker refuses, where they are not 400."""


class ApiError(Exception):
    """A request that is not done: `what` is wrong, `where` in it, and what is `allowed` there."""

    def __init__(self, status: int, what: str, where: str = "", allowed: str = "") -> None:
        super().__init__(what)
        self.status = status
        self.what = what
        self.where = where
        self.allowed = allowed
        self.kafka_error = ""

    def as_json(self) -> dict[str, Any]:
        """The body of the answer."""
        fields = {"what": self.what, "where": self.where, "allowed": self.allowed, "kafka_error": self.kafka_error}
        return {"error": fields}


def of(error: Exception) -> ApiError | None:
    """What an exception of a call becomes; None for a bug."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, Refused):
        found = ApiError(_STATUS_OF_REFUSED.get(error.code, BAD_REQUEST), str(error))
        found.kafka_error = errors.name(error.code)
        return found
    if isinstance(error, NotInTime):
        return ApiError(NOT_IN_TIME, str(error))
    if isinstance(error, BrokerEnded | StartFailure | StorageFailure | OSError):
        return ApiError(UNAVAILABLE, str(error))
    if isinstance(error, ValueError | TypeError):
        # The calls check what they are given, and begin with the name of what is wrong.
        return ApiError(BAD_REQUEST, str(error))
    return None
