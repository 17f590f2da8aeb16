"""Snapshots of a broker that is a process of its own beside the other nodes of its cluster: its parent makes them.

The parent (`child_snapshots.py`) stops all nodes, saves their directories or puts them back, and starts other processes
in their places. The process that was asked ends as the others do, but for the connection that asked: it answers when
the parent says how it went, and then it is gone. If the parent is gone first, the connection ends without an answer."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.handlers import snapshot_actions
from pykafkad.log import snapshot_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Connection

SNAPSHOT = "snapshot"
"""The field of the action in what a node writes to its parent."""


class AskedSnapshots:
    """See `data_snapshots.DataSnapshots`. `paths` are the directories of all nodes, `tell(line)` writes to the
    parent."""

    def __init__(self, broker: Broker, paths: Sequence[str], tell: Callable[[str], None]) -> None:
        self._broker = broker
        self._paths = paths
        self._tell = tell
        self._token: Any = None
        self._left: tuple[Connection, Any] | None = None
        self.making: str | None = None
        """What the parent was asked to save."""
        self.restore_to: str | None = None
        """What it was asked to go back to."""

    @property
    def has_kept(self) -> bool:
        """Whether somebody waits for an answer of this process, which has stopped."""
        return self._left is not None

    def names(self) -> list[str]:
        """All that are whole."""
        return snapshot_store.names(self._broker.runtime.disk, self._paths[0])

    def create(self, name: str, token: object = None) -> bool:
        """Ask the parent, which answers later."""
        self.making = name
        self._ask("create", name, token)
        return False

    def restore(self, name: str, asking: Any) -> None:
        """Ask the parent, which answers later."""
        self.restore_to = name
        self._ask("restore", name, asking.token)

    def _ask(self, action: str, name: str, token: object) -> None:
        import json

        self._token = token
        image = self._broker.image
        self._tell(json.dumps({SNAPSHOT: action, "name": name, "nodes": sorted({*image.brokers, *image.controllers})}))

    def delete(self, name: str) -> None:
        """Raises KafkaError when there is none of that name."""
        known = self.names()
        if name not in known:
            raise KafkaError(errors.INVALID_CONFIG, snapshot_store.unknown(name, known))
        runtime = self._broker.runtime
        gone: list[str | None] = []
        try:
            # The first one first: what it has is listed.
            for path in self._paths:
                gone.append(snapshot_store.put_away(runtime.disk, path, name))
        except StorageFailure as failure:
            raise KafkaError(errors.KAFKA_STORAGE_ERROR, str(failure)) from None
        finally:
            runtime.cpu_offload.submit(lambda: snapshot_store.remove_all(runtime.disk, gone), self._removed)
        self._broker.logs.info("storage", "snapshot-deleted", name=name)

    def _removed(self, result: object) -> None:
        if isinstance(result, Exception):
            self._broker.logs.warning("storage", "leftovers-not-removed", reason=result)

    def rewind(self, name: str, topic_name: str, token: object) -> NoReturn:
        """Refused. Raises KafkaError."""
        snapshot_actions.none_of_one_topic(name, topic_name)

    # --- what the parent says -----------------------------------------------------------------------------------------

    def refused(self, code: int, text: str) -> None:
        """The parent has not begun."""
        self._broker.runtime.replies.reply(self._token, snapshot_actions.answer(self._broker.node_id, code, text))
        self._token = self.making = self.restore_to = None

    def keep_connection(self) -> None:
        """The process stops: whoever asked is answered after it."""
        broker, token = self._broker, self._token
        connection = None if token is None else broker.socket_server.connection(token.connection_id)
        if connection is not None and connection.in_service is not None and connection.sequence == token.sequence:
            self._left = connection, connection.in_service
            broker.socket_server.hand_over(connection)

    def answer(self, code: int, text: str | None) -> None:
        """The parent is done, and the process has ended but for this. A peer that is gone hears nothing."""
        if self._left is None:
            return
        connection, context = self._left
        chunks = self._broker.dispatcher.encode(context, snapshot_actions.answer(self._broker.node_id, code, text))
        transport: Any = connection.transport
        outbox = [*connection.outbox, *(chunks or ())]
        transport.socket.settimeout(_ANSWER_SECONDS)
        try:
            while outbox:
                transport.flush(outbox)
            # Clients that find the end of the connection behind an answer drop the answer. What they ask meanwhile is
            # read, too: with a byte unread the connection is reset.
            now = self._broker.runtime.clock.now
            until = now() + _END_SECONDS
            while now() < until:
                transport.socket.settimeout(max(until - now(), _LEAST_SECONDS))
                if not transport.socket.recv(_READ_BYTES):
                    break
        except TimeoutError:
            # It listens on.
            pass
        except OSError as error:
            self._broker.logs.warning("server", "snapshot-not-answered", peer=connection.peer, reason=error)
        transport.close()


_ANSWER_SECONDS = 10.0
_END_SECONDS = 2.0
_LEAST_SECONDS = 0.001
_READ_BYTES = 65536
