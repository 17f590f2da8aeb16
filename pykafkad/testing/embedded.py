"""A broker on a thread of this process.

The thread is a daemon: it never keeps a process from ending. A forked child has copies of the broker's sockets and no
broker: the copies are closed there, so that clients of the parent see its connections end when they end."""

from __future__ import annotations

import os
import threading
import traceback
import weakref
from typing import TYPE_CHECKING

from pykafkad import clock, disk
from pykafkad.errors import StartFailure
from pykafkad.log import snapshot_store
from pykafkad.memory_disk import MemoryDisk
from pykafkad.server.directories import Directories
from pykafkad.server.logs import tell_settings
from pykafkad.server.wiring import Process
from pykafkad.testing import log_bridge
from pykafkad.testing.broker_loop import CALL_SECONDS, BrokerEnded, BrokerLoop
from pykafkad.testing.options import Options
from pykafkad.testing.wire_client import connected_to

if TYPE_CHECKING:
    from socket import socket

    from pykafkad.config import Settings
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logs import Logs
    from pykafkad.server.socket_server import SocketServer
    from pykafkad.testing.guard import Guard


class EmbeddedBroker(BrokerLoop):
    """A broker of this process: `start`, then `close`. Also what a broker in a process of its own has inside."""

    def __init__(
        self, options: Options, ahead_seconds: float = 0.0, is_traced: bool = False, keeps_timeline: bool = False
    ) -> None:
        """One that takes the place of a killed one has its clock, so far ahead of real time, and is traced if that one
        was."""
        super().__init__(clock.AdvancingClock())
        if keeps_timeline:
            self.keep_timeline()
        self._options = options
        self.has_several = options.brokers > 1
        self.clock.ahead_seconds = ahead_seconds
        self._is_traced = is_traced
        self.control = ""
        """The address for the test's own requests, which may differ from that for clients."""
        self._process_id = os.getpid()

    def start(self) -> None:
        """Serve. Raises ConfigError, StorageFailure or StartFailure (such as for a port that is taken)."""
        options = self._options
        self._disk = MemoryDisk(options.memory_bytes, self.clock) if options.data is None else disk.Disk()
        self._begin(options)
        if self._is_traced:
            self._record()
        self.remember_settings()
        self._begin_turning()

    def _make(self, options: Options, settings: Settings, node_logs: Logs) -> Process:
        return Process(
            settings, options.listeners(), [options.directory], clock=self.clock, disk=self._disk, logs=node_logs
        )

    def _begin(self, options: Options) -> None:
        """Make a process on the disk, up to serving."""
        settings = options.broker_settings()
        node_logs, sink = log_bridge.logs(options.log_level)
        process = self._make(options, settings, node_logs)
        try:
            process.start()
            if options.guard is not None:
                self._add_guard(process, options.guard)
        except Exception as error:
            process.runtime.reactor.close()
            if isinstance(error, OSError):
                raise StartFailure(error.strerror or str(error)) from None
            raise
        self.take(process)
        self._find_addresses(process)
        sink.bootstrap = self.bootstrap
        if options.data is None:
            self._do_without_threads(process)
        tell_settings(node_logs.logger("config"), settings.warnings, settings.without_effect)

    def _do_without_threads(self, process: Process) -> None:
        """Memory needs no syncs."""
        process.runtime.offload.has_thread = process.controller.sync_offload.has_thread = False

    def _find_addresses(self, process: Process) -> None:
        self.bootstrap = address_of(process.listeners[0])
        self.control = address_of(process.listeners[-1])

    def _add_guard(self, process: Process, guard: Guard) -> None:
        """Store the users and the ACLs that are not stored yet."""
        from pykafkad.cli import start_acls as words
        from pykafkad.server import scram_users, start_acls

        if guard.users:
            scram_users.add(process, [(name, password, mechanism) for name, password, mechanism in guard.users])
        if guard.acls:
            start_acls.add(process, words.parse(guard.acls, "acls:"))

    def _begin_turning(self) -> None:
        self._is_killed = self._is_ending = False
        self._thread = threading.Thread(target=self._run, name=f"pykafkad {self.bootstrap}", daemon=True)
        _LIVE.add(self)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                self._process.runtime.run()
                if self._is_killed:
                    self._drop()
                    return
                snapshots, paths = self._process.used_snapshots, self._snapshot_paths()
                name = None if snapshots is None else snapshots.restore_to
                handed_over = None if snapshots is None else snapshots.hand_over()
                self._process.runtime.close()
                self._close_audit()
                if not name or self._is_ending:
                    if handed_over is not None:
                        handed_over.close()
                    return
                snapshot_store.begin_restore(self._disk, paths, name)
                snapshot_store.finish_restore(self._disk, paths)
                self._begin(self._where_it_was)
                left = snapshot_store.leftovers(self._disk, paths)
                self._process.open_data_snapshots().remove(left)
                if handed_over is not None:
                    self._process.open_data_snapshots().take_over(handed_over)
        except BaseException:
            self._failure = f":\n{traceback.format_exc()}"
        finally:
            self.abandon()

    def _snapshot_paths(self) -> list[str]:
        return [self._options.directory]

    def _drop(self) -> None:
        """End as a process does that is killed: nothing more is written, and no client is told."""
        self._broker.socket_server.stop_listening()
        self._process.runtime.reactor.close()
        self._broker.log_writer.close()
        self._process.runtime.cpu_offload.close()
        self._close_audit()

    def _close_audit(self) -> None:
        if self._process.audit is not None:
            self._process.audit.close()

    @property
    def _where_it_was(self) -> Options:
        """The options of the broker that takes this one's place."""
        return self._options.at(self.bootstrap, self.control)

    @property
    def is_running(self) -> bool:
        """Whether it serves."""
        return self._thread is not None and self._thread.is_alive() and self._process_id == os.getpid()

    def socket_servers(self) -> list[SocketServer]:
        """Those of all nodes."""
        return [broker.socket_server for broker in self._process.brokers]

    def connect(self, node_id: int | None = None) -> socket:
        """A connection for the test's own requests, to that one of several brokers. Raises RuntimeError before the
        start, and OSError."""
        return connected_to(self.control, None if node_id is None else self._process.node_ids.index(node_id))

    def close(self) -> None:
        """Stop it for good, and wait until its port is free. Raises what has ended its loop, if anything has."""
        self._stop(is_last=True)

    def _stop(self, *, is_last: bool) -> None:
        thread = self._thread
        if thread is None or self._process_id != os.getpid():
            return
        self._is_ending = True
        if is_last and self._options.data is None:
            self._forget_data()
        self._process.runtime.stop("the test is done")
        thread.join(CALL_SECONDS)
        if thread.is_alive():
            raise BrokerEnded(f"the broker on {self.bootstrap} did not stop for {CALL_SECONDS:g} s")
        self._thread = None
        _LIVE.discard(self)
        if self._failure:
            raise BrokerEnded(f"the broker on {self.bootstrap} ended by an error{self._failure}")

    def _forget_data(self) -> None:
        """Nobody reads the memory again: what the next start would need is not written."""
        for node in self._process.runtime.nodes:
            if isinstance(node, Directories):
                node.are_kept = False

    def restart(self, is_killed: bool = False) -> None:
        """Stop and serve again on the same port with the same data; after a kill, with what was written by then.
        Raises ValueError for a kill of one that has its data in a directory, which only a process of its own can
        leave in an instant."""
        if is_killed and self._options.data is not None:
            raise ValueError("a broker with its data in a directory can only be killed with own_process=True")
        self._is_killed = is_killed
        self._stop(is_last=False)
        self._begin(self._where_it_was)
        self._begin_turning()

    # --- what is left of it -------------------------------------------------------------------------------------------

    def keep(self, directory: str) -> None:
        """Write what the data directory holds now to `directory`, for `pykafkad serve --data` or `dump-log`."""

        def copy() -> None:
            for broker in self._process.brokers:
                broker.commits.write_all()
            copy_files(self._disk, self._options.directory, directory)

        self.call(copy)


def address_of(listener: Listener) -> str:
    """The `host:port` by which a test's own requests reach a listener."""
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    return f"{host or 'localhost'}:{listener.port}"


def copy_files(source: disk.Disk, path: str, target: str) -> None:
    """Write what a directory holds to another one of the real disk."""
    os.makedirs(target, exist_ok=True)
    for name in source.listdir(path):
        if source.is_directory(f"{path}/{name}"):
            copy_files(source, f"{path}/{name}", f"{target}/{name}")
        elif name != ".lock":
            disk.Disk().write(f"{target}/{name}", source.read(f"{path}/{name}") or b"")


def embedded(options: Options) -> type[EmbeddedBroker]:
    """The class for one broker or for several."""
    if options.brokers == 1:
        return EmbeddedBroker
    if options.controllers > 1:
        from pykafkad.testing.embedded_quorum import EmbeddedQuorum

        return EmbeddedQuorum
    from pykafkad.testing.embedded_cluster import EmbeddedCluster

    return EmbeddedCluster


_LIVE: weakref.WeakSet[EmbeddedBroker] = weakref.WeakSet()
"""The brokers that run in this process: for forked children alone."""


def _close_copies() -> None:
    for each in list(_LIVE):
        for server in each.socket_servers():
            for copy in server.sockets():
                copy.close()
    _LIVE.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)
