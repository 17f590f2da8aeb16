"""`Tenants`: several clusters on one thread of this process, each as a `Broker`, that see nothing of each other.

    with Tenants() as tenants:
        acme = tenants.add("acme", topics={"orders": 3})
        other = tenants.add("other", users={"alice": "secret"})
        ...
        tenants.remove("acme")

They come and go while the others serve (`pykafkad/server/tenants.py`)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pykafkad import clock, disk
from pykafkad.errors import ConfigError
from pykafkad.memory_disk import MemoryDisk
from pykafkad.server import tenants as served
from pykafkad.server.logs import tell_settings
from pykafkad.server.wiring import Process
from pykafkad.testing import log_bridge
from pykafkad.testing.broker import Broker
from pykafkad.testing.broker_loop import CALL_SECONDS, BrokerEnded, BrokerLoop
from pykafkad.testing.embedded import address_of, copy_files
from pykafkad.testing.options import Options, check_log_level
from pykafkad.testing.wire_client import connected

if TYPE_CHECKING:
    from socket import socket

MEMORY_BYTES = 64 << 20


class Tenants:
    """Clusters that share a thread and nothing else. It runs from `start` to `close`, or in a `with` block; it may be
    used from several threads."""

    def __init__(self, *, log_level: str = "info") -> None:
        """Raises ValueError for a level that there is not, and ConfigError on a system without epoll."""
        self._log_level = check_log_level(log_level)
        self._brokers: dict[str, Broker] = {}
        self._loop: served.Tenants | None = None
        self.thread: threading.Thread | None = None
        """The thread of the loop."""
        self._process_id = os.getpid()

    def __enter__(self) -> Tenants:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __getitem__(self, name: str) -> Broker:
        return self._brokers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._brokers))

    def __len__(self) -> int:
        return len(self._brokers)

    @property
    def loop(self) -> served.Tenants:
        """What gives them turns. Raises RuntimeError before the start."""
        if self._loop is None:
            raise RuntimeError("the tenants are not started; use `with Tenants() as tenants:` or `start()`")
        return self._loop

    def start(self) -> Tenants:
        """Serve whoever is added; the object itself."""
        own, _ = log_bridge.logs(self._log_level)
        loop = self._loop = served.Tenants(lambda name: log_bridge.logs(self._log_level, {"tenant": name})[0], own)
        self.thread = threading.Thread(target=self._run, args=[loop], name="pykafkad tenants", daemon=True)
        self.thread.start()
        return self

    def _run(self, loop: served.Tenants) -> None:
        try:
            loop.run()
        finally:
            loop.close()

    def add(self, name: str, *, memory_bytes: int = MEMORY_BYTES, **options: Any) -> Broker:
        """A cluster of this name, which serves; `options` are those of `Broker`, but for `own_process` and
        `brokers`. Raises what `Broker` raises, and ConfigError for a name that is taken or cannot be."""
        served.check_name(name)
        before = self._brokers.get(name)
        if before is not None:
            if before.is_running:
                raise ConfigError(f"tenant {name}: there is one of that name")
            before.close()
        broker = _Tenant(self, name, memory_bytes=memory_bytes, log_level=self._log_level, **options)
        broker.start()
        self._brokers[name] = broker
        return broker

    def remove(self, name: str) -> None:
        """Stop a cluster; its ports are free afterwards. Raises KeyError if there is none of that name."""
        self._brokers.pop(name).close()

    def close(self) -> None:
        """Stop all of them; fine if they do not run. Raises BrokerEnded if the loop does not end."""
        loop, thread = self._loop, self.thread
        if loop is None or thread is None or self._process_id != os.getpid():
            return
        try:
            for name in list(self):
                self.remove(name)
        finally:
            loop.stop("the test is done")
            thread.join(CALL_SECONDS)
            self._loop = self.thread = None
        if thread.is_alive():
            raise BrokerEnded(f"the tenants did not stop for {CALL_SECONDS:g} s")

    def wait(self, begin: Callable[[Callable[[Any], object]], object]) -> Any:
        """What `begin(then)` has called `then` with, on the loop. Raises it if it is an exception."""
        results: list[Any] = []
        done = threading.Event()

        def then(result: object) -> None:
            results.append(result)
            done.set()

        begin(then)
        if not done.wait(CALL_SECONDS):
            raise BrokerEnded(f"the tenants did not answer for {CALL_SECONDS:g} s")
        if isinstance(results[0], Exception):
            raise results[0]
        return results[0]


class _Tenant(Broker):
    """A broker that is one of the tenants."""

    def __init__(self, tenants: Tenants, name: str, **options: Any) -> None:
        self._tenants = tenants
        self._name = name
        super().__init__(**options)

    def __repr__(self) -> str:
        return f"Broker({self._name}, {self._running.bootstrap or 'not started'})"

    def _new(self, options: Options, own_process: bool) -> TenantLoop:
        if own_process:
            raise ValueError("own_process: a tenant is in the process of the others")
        if options.brokers != 1:
            raise ValueError("brokers: a tenant has one")
        return TenantLoop(self._tenants, self._name, options)


class TenantLoop(BrokerLoop):
    """One tenant: its loop as other threads see it, and its beginning and end."""

    def __init__(self, tenants: Tenants, name: str, options: Options) -> None:
        super().__init__(clock.AdvancingClock())
        self._tenants = tenants
        self._name = name
        self._options = options
        self._disk: disk.Disk | None = None
        self._serves = False
        self.control = ""
        """The address for the test's own requests, which may differ from that for clients."""

    @property
    def is_running(self) -> bool:
        """Whether it serves."""
        return self._serves and self._thread is not None and self._thread.is_alive()

    def connect(self, node_id: int | None = None) -> socket:
        """A connection for the test's own requests. Raises RuntimeError before the start, and OSError."""
        return connected(self.control)

    def start(self) -> None:
        """Serve. Raises ConfigError, StorageFailure or StartFailure (such as for a port that is taken)."""
        options = self._options
        if options.data is None and self._disk is None:
            self._disk = MemoryDisk(options.memory_bytes, self.clock)
        plan = served.Plan(
            self._name,
            options.broker_settings(),
            users=[(name, password, mechanism) for name, password, mechanism in options.guard.users]
            if options.guard is not None
            else (),
            acls=self._acls(),
            clock=self.clock,
            disk=self._disk,
            began=self._began,
            ended=self._ended,
        )
        self._thread = self._tenants.thread
        tenant = self._tenants.wait(lambda then: self._tenants.loop.begin_add(plan, then))
        tell_settings(tenant.logs.logger("config"), plan.settings.warnings, plan.settings.without_effect)

    def _acls(self) -> list[Any]:
        from pykafkad.cli import start_acls

        guard = self._options.guard
        return [] if guard is None else start_acls.parse(guard.acls, "acls:")

    def _began(self, process: Process) -> None:
        if self._options.data is None:
            process.runtime.offload.has_thread = process.controller.sync_offload.has_thread = False
        self.take(process)
        listeners = process.listeners
        self.bootstrap, self.control = address_of(listeners[0]), address_of(listeners[-1])
        if not self._serves:
            self.remember_settings()
            self._serves = True

    def _ended(self) -> None:
        self._serves = False
        self.abandon()

    def close(self) -> None:
        """Stop it, and wait until its ports are free. Fine if it does not run."""
        if not self.is_running:
            return
        # One that ends by itself at this moment is gone all the same.
        self._serves = False
        try:
            self._tenants.wait(lambda then: self._tenants.loop.begin_remove(self._name, then))
        finally:
            self.abandon()

    def restart(self, is_killed: bool = False) -> None:
        """Stop and serve again at the same port with the same data. Raises ValueError for a kill, which nothing that
        shares its process with others can survive as they do."""
        if is_killed:
            raise ValueError("a tenant cannot be killed: the others live in its process")
        self._options = self._options.at(self.bootstrap, self.control)
        self.close()
        self.start()

    def keep(self, directory: str) -> None:
        """Write what the data directory holds now to `directory`."""

        def copy() -> None:
            self._broker.commits.write_all()
            copy_files(self._process.runtime.disk, self._options.directory, directory)

        self.call(copy)
