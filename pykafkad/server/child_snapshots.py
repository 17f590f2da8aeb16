"""Snapshots of a cluster whose nodes are child processes of this one (`child_nodes.py`): all of them stop in a
controlled way, their directories are saved or go back, and other processes serve on the same ports.

Nothing runs while files change, so a snapshot shows one moment. It is listed when it is whole in every directory. A way
back that has begun is noted beside the first of them: whatever ends this process meanwhile, the next start brings all
of them to the snapshot before it starts a node. What fails before that leaves everything as it was."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError, StartFailure, StorageFailure
from pykafkad.log import snapshot_store
from pykafkad.server import data_snapshots
from pykafkad.server.asked_snapshots import SNAPSHOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.disk import Disk
    from pykafkad.server.child_nodes import ChildNode, ChildNodes
    from pykafkad.server.logs import Logs

_DO_NOT_SERVE = "the nodes do not serve again; see the log of the process"


class ChildSnapshots:
    """Performs what a node was asked for. `start_again()` starts all nodes and returns when they serve; it raises what
    `ChildNodes.wait_ready` does."""

    def __init__(
        self, nodes: ChildNodes, paths: Sequence[str], disk: Disk, logs: Logs, start_again: Callable[[], object]
    ) -> None:
        """`paths` are the directories of all nodes; the first one lists the snapshots."""
        self._nodes = nodes
        self._paths = list(paths)
        self._disk = disk
        self._logs = logs
        self._start_again = start_again

    def perform(self, asked: ChildNode) -> None:
        """Do what a node has written. Raises StorageFailure for a way back that has begun and cannot be finished now,
        and what `start_again` raises: then nothing serves any more."""
        import json

        request: dict[str, Any] = json.loads(asked.request)
        action, name = request[SNAPSHOT], request["name"]
        try:
            self._check_nodes(action, name, request["nodes"])
            self._check(action, name)
        except (KafkaError, StorageFailure) as error:
            asked.tell(*_answer(error))
            return
        answer: tuple[int, str | None] = errors.NONE, None
        try:
            killed = self._nodes.stop_all()
            # A node that served until now may have deleted it.
            self._check(action, name)
            if action == "create":
                self._create(name, killed)
            else:
                self._restore(name)
        except (KafkaError, StorageFailure, StartFailure) as error:
            answer = _answer(error)
            if snapshot_store.restoring(self._disk, self._paths[0]):
                asked.tell(*answer, is_last=True)
                raise
        try:
            self._start_again()
        except BaseException:
            asked.tell(errors.UNKNOWN_SERVER_ERROR, _DO_NOT_SERVE, is_last=True)
            raise
        self._logs.info("server", f"snapshot-{action}", name=name, error=errors.name(answer[0]))
        asked.tell(*answer, is_last=True)

    def _check_nodes(self, action: str, name: str, seen: list[int]) -> None:
        what = f"the {'snapshot' if action == 'create' else 'way back to the snapshot'} {name}"
        nodes = self._nodes.children
        down = [f"{each.role} {each.node_id}" for each in nodes if each.status is not None]
        if down:
            raise KafkaError(
                errors.INVALID_REQUEST, f"{what} needs every broker and controller, and {', '.join(down)} has ended"
            )
        strange = sorted({*seen} - {each.node_id for each in nodes})
        if strange:
            raise KafkaError(
                errors.INVALID_REQUEST,
                f"{what} needs all nodes of the cluster under one parent, and node {', '.join(map(str, strange))} is "
                "elsewhere: it would remember votes and records that the others have forgotten; stop and unregister it",
            )

    def _check(self, action: str, name: str) -> None:
        problem = snapshot_store.name_problem(name)
        if problem is not None:
            raise KafkaError(errors.INVALID_CONFIG, problem)
        known = snapshot_store.names(self._disk, self._paths[0])
        if action == "restore":
            if name not in known:
                raise KafkaError(errors.INVALID_CONFIG, snapshot_store.unknown(name, known))
            for path in self._paths:
                data_snapshots.check_directory(self._disk, path, name)
        else:
            data_snapshots.check_new(name, known)

    def _create(self, name: str, killed: list[ChildNode]) -> None:
        if killed:
            named = ", ".join(f"{each.role} {each.node_id}" for each in killed)
            raise KafkaError(
                errors.UNKNOWN_SERVER_ERROR, f"{named} did not stop in time and was killed; nothing was saved"
            )
        snapshot_store.save_closed(self._disk, self._paths, name)

    def _restore(self, name: str) -> None:
        snapshot_store.begin_restore(self._disk, self._paths, name)
        try:
            # Before nodes start, which look for the same.
            snapshot_store.remove_all(self._disk, snapshot_store.settle(self._disk, self._paths))
        except StorageFailure as failure:
            self._logs.warning("storage", "leftovers-not-removed", reason=failure)


def _answer(error: KafkaError | StorageFailure | StartFailure) -> tuple[int, str | None]:
    if isinstance(error, KafkaError):
        return error.code, error.text
    return errors.KAFKA_STORAGE_ERROR, str(error)
