"""Virtual clusters: several clusters in one process, on one loop, each with everything of its own.

A tenant is a whole cluster of one broker (`wiring.Process`): controller, broker, disk, clock, log, counters, threads,
and a `Runtime` with a `Reactor`, which has a poller of its own. Nothing of them is shared, so there is nothing by which
one could see another. What is shared is the loop: `Tenants` waits for the pollers, and gives each that has something to
do one turn after another, those first that have waited longest.

A turn of a tenant is a small one (`CONNECTIONS_PER_TURN`, `RESUMES_PER_TURN`, `WAITS_PER_TURN`): who asks much has more
turns, not longer ones, and another tenant waits for one turn of each.

What takes long happens on a thread beside the loop, where a tenant has nothing to do with the others: its start, its
stop, and its way back to a snapshot. A tenant whose last log directory failed, or whose turn raised, ends alone."""

from __future__ import annotations

from functools import partial

from pykafkad.clock import Clock
from pykafkad.errors import ConfigError, StartFailure, StorageFailure
from pykafkad.log import snapshot_store
from pykafkad.platform_calls import new_poller, new_waker
from pykafkad.server import run
from pykafkad.server.logs import Logs
from pykafkad.server.network import SystemNetwork
from pykafkad.server.offload import Offload
from pykafkad.server.poll_events import READ
from pykafkad.server.reactor import Reactor
from pykafkad.server.wiring import BROKER, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.disk import Disk
    from pykafkad.platform_calls import Poller
    from pykafkad.server.data_snapshots import HandedOver
    from pykafkad.server.runtime import Runtime
    from pykafkad.server.start_acls import Creation

NAME_CHARACTERS = 63
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")

CONNECTIONS_PER_TURN = 16
"""Of so many connections a tenant takes news in one turn, each a bounded share (`connection.FRAMES_PER_TURN`)."""

RESUMES_PER_TURN = 16
"""And so many it serves what they have sent before."""

WAITS_PER_TURN = 50
"""So many delayed operations it tries."""

_MOST_EVENTS = 1024
_NEVER = float("inf")
# Rounded up to the millisecond that epoll counts in, so that a deadline is past when it wakes.
_ROUND_SECONDS = 0.0005


def check_name(name: str) -> str:
    """The name of a tenant, if it can be one: it names a directory, and stands in log lines. Raises ConfigError."""
    if not 0 < len(name) <= NAME_CHARACTERS or not _NAME.issuperset(name):
        raise ConfigError(f"tenant {name!r}: a name has 1 to {NAME_CHARACTERS} letters, digits, '-' and '_'")
    return name


class _Network(SystemNetwork):
    """The system's, which tells the poller that it gave a reactor."""

    __slots__ = ("poller",)

    poller: Poller

    def new_poller(self) -> Poller:
        """One poller, for one reactor."""
        self.poller = new_poller()
        return self.poller


class Plan:
    """What a tenant is to be: its name and settings, and what is there when it serves, as in `run.run`."""

    __slots__ = ("acls", "began", "clock", "disk", "ended", "name", "settings", "topics", "users")

    def __init__(
        self,
        name: str,
        settings: Settings,
        *,
        topics: Sequence[tuple[str, int]] = (),
        users: Sequence[tuple[str, str, str]] = (),
        acls: Sequence[tuple[str, Creation]] = (),
        clock: Clock | None = None,
        disk: Disk | None = None,
        began: Callable[[Process], object] | None = None,
        ended: Callable[[], object] | None = None,
    ) -> None:
        """`began` is called on the loop with each process that serves as this tenant, `ended` if it ends and nobody has
        asked for that. Raises ConfigError for a name that cannot be, and for settings without a broker."""
        self.name = check_name(name)
        if BROKER not in settings.process_roles:
            raise ConfigError(f"tenant {name}: process.roles has no broker, which a tenant is")
        self.settings = settings
        self.topics = topics
        self.users = users
        self.acls = acls
        self.clock = clock or Clock()
        self.disk = disk or run.new_disk(settings, self.clock)
        self.began = began
        self.ended = ended


class Tenant:
    """One cluster of the process. `begin`, then turns of `process.runtime.reactor`, then `end`."""

    process: Process
    """Of now: a way back to a snapshot makes another one."""

    def __init__(self, plan: Plan, logs: Logs) -> None:
        """Raises ConfigError."""
        self.name = plan.name
        self.logs = logs
        self._plan = plan
        settings = plan.settings
        self._directories = settings.log_directories
        self._paths = list(dict.fromkeys([settings.metadata_log_dir or self._directories[0], *self._directories]))
        self._listening = run.parse_listeners(settings)
        self._network = _Network()
        self.due = 0.0
        """When it wants its next turn if nothing happens before, in seconds of the loop's clock."""
        self.served = 0
        """The number of the loop's turn in which it had its last one."""

    @property
    def bootstrap(self) -> str:
        """Where clients reach it."""
        return self._listening[0].address()

    @property
    def listeners(self) -> list[str]:
        """All its addresses."""
        return [each.address() for each in self._listening]

    @property
    def poller(self) -> Any:
        """What knows which of its descriptors are ready; has a descriptor itself."""
        return self._network.poller

    def begin(self) -> None:
        """Make a process up to serving: on any thread, before anybody has a look at it. Raises ConfigError,
        StorageFailure or StartFailure."""
        self._start(self._plan.topics)
        in_memory = self._plan.settings.pykafkad_memory_max_bytes > 0
        run.tell_start(self.process, self._directories, in_memory=in_memory)

    def began(self) -> None:
        """It has turns from now on."""
        if self._plan.began is not None:
            self._plan.began(self.process)

    def failed(self, reason: object) -> None:
        """It is there no more, against its will."""
        self.logs.error("server", "tenant-ended", reason=reason)
        if self._plan.ended is not None:
            self._plan.ended()

    def end(self) -> None:
        """Stop it, as a process stops; its ports are free afterwards. On any thread, when it has no turns any more."""
        self.logs.info("server", "stopping", reason=self.process.runtime.stopping)
        self.process.runtime.close()
        if self.process.audit is not None:
            self.process.audit.close()
        self.logs.info("server", "stopped", **self.process.runtime.metrics.as_dict())

    def take_place(self) -> bool:
        """It has stopped itself: end, and if it goes back to a snapshot, serve again. Whether it serves. On any thread,
        as above."""
        snapshots = None if self.process.broker is None else self.process.broker.used_snapshots
        handed_over: HandedOver | None = None if snapshots is None else snapshots.hand_over()
        self.end()
        name = None if snapshots is None else snapshots.restore_to
        if not name:
            return False
        snapshot_store.begin_restore(self._plan.disk, self._paths, name)
        self._start(())
        self.logs.info("server", "snapshot-restored", name=name)
        if handed_over is not None and self.process.broker is not None:
            self.process.broker.data_snapshots.take_over(handed_over)
        return True

    def drop(self) -> None:
        """End it as it is: close its sockets, and write nothing more."""
        process = self.process
        if process.broker is not None:
            process.broker.socket_server.stop_listening()
        process.runtime.reactor.close()
        if process.broker is not None:
            process.broker.log_writer.close()
        for offload in (process.runtime.offload, process.runtime.cpu_offload, process.controller.sync_offload):
            offload.end_alone()
        for directory in process.directories.online:
            directory.close(clean=False)
        if process.audit is not None:
            process.audit.close()

    def _start(self, topics: Sequence[tuple[str, int]]) -> None:
        self._make()
        try:
            run.begin(self.process, topics, self._plan.users, self._plan.acls)
        except BaseException as error:
            # The others go on, and the one that takes its place needs its ports and directories.
            self.drop()
            if isinstance(error, OSError):
                raise StartFailure(error.strerror or str(error)) from None
            raise

    def _make(self) -> None:
        snapshot_store.finish_restore(self._plan.disk, self._paths)
        self._network = _Network()
        try:
            process = Process(
                self._plan.settings,
                self._listening,
                self._directories,
                clock=self._plan.clock,
                disk=self._plan.disk,
                logs=self.logs,
                reactor=self._reactor,
            )
        except OSError as error:
            raise StartFailure(error.strerror or str(error)) from None
        self.process = process

    def _reactor(self, runtime: Runtime) -> Reactor:
        reactor = Reactor(runtime, self._network)
        reactor.connections_per_turn, reactor.resumes_per_turn = CONNECTIONS_PER_TURN, RESUMES_PER_TURN
        runtime.waits_per_turn = WAITS_PER_TURN
        return reactor


class Tenants:
    """The tenants of a process and the loop that gives them turns: `add`, then `run` until `stop`, then `close`.

    `begin_add`, `begin_remove` and `post` are for any thread; all else is for the loop's."""

    def __init__(self, logs_of: Callable[[str], Logs], logs: Logs) -> None:
        """`logs_of(name)` is the log of a tenant, `logs` that of the process. Raises ConfigError on a system whose
        poller cannot be waited for."""
        self._poller = new_poller()
        if not hasattr(self._poller, "fileno"):
            raise ConfigError("tenants need epoll, which this system does not have")
        self._waker = new_waker()
        self._poller.register(self._waker.fileno(), READ)
        self._logs_of = logs_of
        self._logs = logs
        self._clock = Clock()
        self._turns = 0
        self._names: dict[str, Tenant] = {}
        """All of them, those too that begin or end."""
        self._served: dict[int, Tenant] = {}
        """Those that have turns, by the descriptors of their pollers."""
        self._beside: list[Offload] = []
        """One for each that begins or ends beside the loop."""
        self._posted = Offload(self._waker.wake, self._unexpected)
        self.stopping: str | None = None
        """Why the loop ends after this turn."""

    def __len__(self) -> int:
        return len(self._served)

    def tenants(self) -> list[Tenant]:
        """Those that have turns, in the order of their names."""
        return sorted(self._served.values(), key=lambda each: each.name)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Turn until told to stop."""
        while self.stopping is None:
            self.turn()

    def stop(self, reason: str) -> None:
        """End the loop after the current turn; safe from a signal handler."""
        self.stopping = reason
        self._waker.wake()

    def turn(self, timeout: float | None = None) -> None:
        """Wait until somebody has something to do, at most `timeout` seconds, and give each of those one turn."""
        due = min((each.due for each in self._served.values()), default=_NEVER)
        left = due - self._clock.now()
        wait = timeout if left == _NEVER or (timeout is not None and timeout < left) else max(0.0, left)
        ready = []
        for fileno, _ in self._poller.poll(wait, _MOST_EVENTS):
            if fileno in self._served:
                ready.append(self._served[fileno])
            else:
                self._waker.clear()
        self._turns += 1
        now = self._clock.now()
        ready += [each for each in self._served.values() if each.due <= now and each not in ready]
        # Who had no turn for longest is first: nobody gains by a low descriptor.
        ready.sort(key=lambda each: each.served)
        for each in ready:
            self._turn(each)
        for offload in [self._posted, *self._beside]:
            offload.finished()

    def _turn(self, tenant: Tenant) -> None:
        tenant.served = self._turns
        runtime = tenant.process.runtime
        try:
            runtime.reactor.turn(0)
            if runtime.stopping is not None:
                self._take_place(tenant)
                return
            at = runtime.next_turn_at()
        except Exception as error:
            # A process of its own would have ended by it.
            self._let_go(tenant)
            runtime.unexpected(error)
            self._ended(tenant, "unexpected error")
            self._next_to_loop(tenant.drop, lambda _: None)
            return
        left = _NEVER if at is None else at - runtime.clock.now()
        tenant.due = self._clock.now() + (left + _ROUND_SECONDS if left > 0 else 0)

    def close(self) -> None:
        """Stop all tenants, each as a process stops; no thread is left afterwards."""
        # Those that another thread asked for begin before all of them end.
        self._posted.finished()
        while self._beside:
            # What has begun goes on to its end, and may have to end once more.
            self._beside[0].close()
        self._posted.finished()
        for tenant in list(self._served.values()):
            self._let_go(tenant)
            tenant.process.runtime.stopping = self.stopping or "the process ends"
            self._next_to_loop(tenant.end, partial(self._was_ended, tenant))
        while self._beside:
            self._beside[0].close()
        self._names.clear()
        self._poller.close()
        self._waker.close()

    # --- who comes and goes -------------------------------------------------------------------------------------------

    def add(self, plan: Plan) -> Tenant:
        """A tenant from now on. Raises ConfigError, also for a name that is taken, StorageFailure or StartFailure."""
        tenant = self._new(plan)
        try:
            tenant.begin()
        except BaseException:
            del self._names[plan.name]
            raise
        self._serve(tenant)
        return tenant

    def begin_add(self, plan: Plan, then: Callable[[Tenant | Exception], object]) -> None:
        """The same beside the loop, which goes on; `then` gets the tenant when it has turns, or what stood in the way.
        For any thread. Raises ConfigError."""
        tenant = self._new(plan)

        def begun(result: object) -> None:
            if isinstance(result, Exception):
                del self._names[plan.name]
                then(result)
            else:
                self._serve(tenant)
                then(tenant)

        self.post(lambda: self._next_to_loop(tenant.begin, begun))

    def begin_remove(self, name: str, then: Callable[[Exception | None], object]) -> None:
        """Stop a tenant beside the loop; `then` is called when its ports are free, with an error where it has none of
        that name, or it raised. Its data stays where it is. For any thread."""

        def remove() -> None:
            tenant = self._names.get(name)
            if tenant is None or tenant not in self._served.values():
                then(ConfigError(f"there is no tenant {name} that serves"))
                return
            self._let_go(tenant)
            tenant.process.runtime.stopping = "the tenant is removed"
            self._next_to_loop(tenant.end, ended)

        def ended(result: object) -> None:
            del self._names[name]
            then(result if isinstance(result, Exception) else None)

        self.post(remove)

    def post(self, job: Callable[[], object]) -> None:
        """Have the loop call `job` between two turns. For any thread."""

        def call(_: object) -> None:
            job()

        self._posted.post(call)

    def _new(self, plan: Plan) -> Tenant:
        tenant = Tenant(plan, self._logs_of(plan.name))
        if self._names.setdefault(plan.name, tenant) is not tenant:
            raise ConfigError(f"tenant {plan.name}: there is one of that name")
        return tenant

    def _serve(self, tenant: Tenant) -> None:
        tenant.due = self._clock.now()
        self._served[tenant.poller.fileno()] = tenant
        self._poller.register(tenant.poller.fileno(), READ)
        self._share_out()
        tenant.began()

    def _let_go(self, tenant: Tenant) -> None:
        self._poller.unregister(tenant.poller.fileno())
        del self._served[tenant.poller.fileno()]
        self._share_out()

    def _share_out(self) -> None:
        """Strangers hold no more of the process, however many tenants there are; those of one take nothing of the
        others' share."""
        for each in self._served.values():
            if each.process.broker is not None:
                each.process.broker.socket_server.share_out(len(self._served))

    def _take_place(self, tenant: Tenant) -> None:
        """It has stopped itself: by a way back to a snapshot, or because it cannot go on."""
        reason = tenant.process.runtime.stopping
        self._let_go(tenant)

        def ended(result: object) -> None:
            if result is True:
                self._serve(tenant)
            else:
                self._ended(tenant, result if isinstance(result, Exception) else reason)

        self._next_to_loop(tenant.take_place, ended)

    def _was_ended(self, tenant: Tenant, result: object) -> None:
        if isinstance(result, Exception):
            self._ended(tenant, result)

    def _ended(self, tenant: Tenant, reason: object) -> None:
        del self._names[tenant.name]
        tenant.failed(reason)
        if isinstance(reason, Exception) and not isinstance(reason, (ConfigError, StorageFailure)):
            self._unexpected(reason)

    def _next_to_loop(self, job: Callable[[], object], then: Callable[[Any], object]) -> None:
        """Run `job` on a thread of its own, and `then` with its result on the loop."""
        offload = Offload(self._waker.wake, self._unexpected)

        def done(result: object) -> None:
            self._beside.remove(offload)
            offload.end_alone()
            then(result)

        self._beside.append(offload)
        offload.submit(job, done)

    def _unexpected(self, error: Exception) -> None:
        import traceback

        text = "".join(traceback.format_exception(error))
        self._logs.error("server", "unexpected-error", error=error, traceback=text)
