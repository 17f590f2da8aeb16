"""A broker that kills itself at a step of a transaction's end: `python -m tests.crash_points serve ...`.

Two environment variables say where: `CRASH_ID` names the transactional id, and `CRASH_POINT` one of `points`. The
process sends itself SIGKILL when it has got there with that id. Without a point it is a broker like any other.

`pykafkad` knows nothing of this: the functions that make the steps are wrapped here, in this process only. The end
begins with EndTxn, or, in a broker that was killed before, with the markers that it still has to write.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from pykafkad.__main__ import main
from pykafkad.coordinator import shard
from pykafkad.coordinator.partitioning import TRANSACTION_TOPIC
from pykafkad.coordinator.transaction_events import EndTxn
from pykafkad.log.log_files import LogFiles
from pykafkad.log.partition_log import PartitionLog
from pykafkad.log.syncing import SyncJob
from pykafkad.server.coordinator_host import CoordinatorHost, ShardRunner
from pykafkad.server.reactor import Reactor
from pykafkad.server.replies import Replies
from pykafkad.server.transactions import Transactions
from pykafkad.wire import messages

POINT, ID = "CRASH_POINT", "CRASH_ID"
TAKEN, READY, SENT = "the request is taken", "the answer is ready", "the answer is sent"
DECISION, END, GROUP = "the decision", "the end", "the marker of the group"
OFFSETS = "the offsets are applied"
DECIDED = f"{DECISION} is written"
"""From this step on the transaction ends as the producer has asked."""


def points(partitions: int, *, syncs: bool) -> list[str]:
    """The steps of the end of a transaction in so many partitions and a group, in their order.

    With `syncs` everything waits for a sync, and the answer leaves before the markers are synced.
    """
    markers = [*(f"the marker of partition {index}" for index in range(partitions)), GROUP]
    begin = [TAKEN, f"{DECISION} is appended", *_stored(DECISION, syncs), READY]
    appended = [*(f"{marker} is appended" for marker in markers), OFFSETS]
    written = [step for marker in markers for step in _stored(marker, syncs)]
    return [*begin, *appended, *written, f"{END} is appended", *_stored(END, syncs), SENT]


def _stored(what: str, syncs: bool) -> list[str]:
    return [f"{what} is half written", f"{what} is written", *([f"{what} is synced"] if syncs else [])]


class Killer:
    """Follows one transaction's end and kills the process at one of its steps."""

    def __init__(self, point: str, transactional_id: str) -> None:
        self.point, self.transactional_id = point, transactional_id
        self.is_armed = False
        # By log: what is to be written, and what is to be synced.
        self.appended: dict[Any, str] = {}
        self.written: dict[Any, str] = {}
        self.is_ready = False

    def reach(self, step: str) -> None:
        """Die here, if this is the step."""
        if self.is_armed and step == self.point:
            os.kill(os.getpid(), signal.SIGKILL)

    def append(self, log: Any, what: str) -> None:
        """Something was appended to a log, and is to be written."""
        if self.is_armed:
            self.appended[log] = what
            self.reach(f"{what} is appended")

    def install(self) -> None:
        """Wrap the functions that make the steps."""
        _around(CoordinatorHost, "submit", self._submit)
        _around(Transactions, "write_markers", self._write_markers)
        _around(ShardRunner, "append", self._append)
        _around(ShardRunner, "transaction_ended", self._transaction_ended)
        _around(PartitionLog, "append_end_marker", self._append_end_marker)
        _around(LogFiles, "write_pending", self._write_pending)
        _around(SyncJob, "run", self._sync)
        _around(Replies, "reply", self._reply)
        _around(Reactor, "_send_ready", self._send_ready)

    # Each gets the wrapped function and its arguments.

    def _submit(self, call: Callable, host: Any, key: str, event: object) -> object:
        if type(event) is EndTxn and key == self.transactional_id:
            self.is_armed = True
            self.reach(TAKEN)
        return call(host, key, event)

    def _write_markers(self, call: Callable, host: Any, runner: Any, effect: Any) -> None:
        if effect.transactional_id == self.transactional_id:
            self.is_armed = True
        call(host, runner, effect)

    def _append(self, call: Callable, runner: Any, effect: Any) -> None:
        call(runner, effect)
        if self.is_armed and runner.log.topic == TRANSACTION_TOPIC:
            (record,) = effect.records
            self.append(runner.log, DECISION if record.value.transaction_partitions else END)

    def _append_end_marker(self, call: Callable, log: Any, *arguments: object, **more: object) -> object:
        result = call(log, *arguments, **more)
        self.append(log, GROUP if log.topic == shard.TOPIC else f"the marker of partition {log.partition}")
        return result

    def _transaction_ended(self, call: Callable, runner: Any, *arguments: object) -> None:
        call(runner, *arguments)
        self.reach(OFFSETS)

    def _write_pending(self, call: Callable, log: Any) -> None:
        what = self.appended.pop(log, None)
        if what is None or log._gather is None:
            call(log)
            return
        if self.point == f"{what} is half written":
            active = log._active
            active.file.pwrite(log._gather[: log._fill // 2], active.written_size)
            self.reach(self.point)
        call(log)
        self.written[log] = what
        self.reach(f"{what} is written")

    def _sync(self, call: Callable, job: Any) -> None:
        what = self.written.pop(job.log, "")
        call(job)
        self.reach(f"{what} is synced")

    def _reply(self, call: Callable, replies: Any, token: object, message: object) -> None:
        call(replies, token, message)
        if type(message) is messages.EndTxnResponse and self.is_armed:
            self.is_ready = True
            self.reach(READY)

    def _send_ready(self, call: Callable, reactor: Any) -> None:
        call(reactor)
        if self.is_ready:
            self.reach(SENT)


def _around(cls: type, name: str, wrapper: Callable) -> None:
    call = getattr(cls, name)

    @wraps(call)
    def wrapped(*arguments: object, **more: object) -> object:
        return wrapper(call, *arguments, **more)

    setattr(cls, name, wrapped)


if __name__ == "__main__":
    if os.environ.get(POINT):
        Killer(os.environ[POINT], os.environ[ID]).install()
    sys.exit(main())
