"""Where the registry keeps its records: the topic `_schemas`, by the calls that tests have for records."""

from __future__ import annotations

from typing import Protocol

from pykafkad import errors
from pykafkad.registry.records import Pair
from pykafkad.testing.operations import Operations
from pykafkad.testing.records import NewRecord, Record
from pykafkad.testing.wire_client import Refused

TOPIC = "_schemas"


class Store(Protocol):
    """Keeps records in their order."""

    def read(self) -> list[tuple[bytes | None, bytes | None]]:
        """Every record that there is. Raises OSError and Refused."""

    def last(self) -> object:
        """What tells the last record from every other one; None without records. It is another one when somebody else
        has changed the records. Raises OSError and Refused."""

    def append(self, records: list[Pair]) -> object:
        """Keep more; they are kept when this returns. What `last` is then. Raises OSError and Refused."""


class TopicStore:
    """The topic, which is made with the first record: compacted, of one partition, as Confluent's registry makes it."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def read(self) -> list[tuple[bytes | None, bytes | None]]:
        """See `Store`."""
        if self.last() is None:
            return []
        return [(record.key, record.value) for record in self._operations.records(TOPIC)]

    def last(self) -> Record | None:
        """See `Store`."""
        try:
            found = self._operations.records(TOPIC, limit=1, last=True)
        except Refused as refused:
            if refused.code != errors.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None
        return found[-1] if found else None

    def append(self, records: list[Pair]) -> Record:
        """See `Store`."""
        if TOPIC not in self._operations.topics():
            self._operations.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
        return self._operations.produce(TOPIC, *(NewRecord(value, key) for key, value in records))[-1]
