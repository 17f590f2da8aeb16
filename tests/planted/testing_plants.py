"""Bugs to plant in faults on purpose and in `pykafkad/testing`."""

from __future__ import annotations

from tests.planted.plant import Plant

FAULTS = ("tests/testing/test_faults.py",)
BROKER = ("tests/testing/test_broker.py",)
WAITS = ("tests/testing/test_waits.py",)

DELIVERIES = ("tests/testing/test_deliveries.py",)
LINT = ("tests/testing/test_lint.py",)

PLANTS = (
    Plant(
        "a record that an idempotent producer was told of twice is two",
        "testing/deliveries.py",
        "if row.place not in known:",
        "if True:",
        DELIVERIES,
    ),
    Plant(
        "records of an aborted transaction are expected",
        "testing/deliveries.py",
        "told if request.committed else []",
        "told",
        DELIVERIES,
    ),
    Plant(
        "a record that is sent again stands at its last turn",
        "testing/deliveries.py",
        "turn = unresolved.popleft()",
        "unresolved.popleft()\nturn = self._turn\nself._turn += 1",
        DELIVERIES,
    ),
    Plant(
        "records before the offset that a consumer asked for count as read",
        "testing/deliveries.py",
        "if each.offset >= position",
        "if True",
        DELIVERIES,
    ),
    Plant(
        "commits without a retention of their own are told of",
        "testing/lint_upgrades.py",
        "and each.request.retention_time_ms >= 0",
        "",
        LINT,
    ),
    Plant(
        "the upgrade lens looks without being asked",
        "testing/lint.py",
        "RULES | lint_upgrades.RULES if upgrade else RULES",
        "RULES | lint_upgrades.RULES",
        LINT,
    ),
    Plant(
        "a trace that was cut off passes for all of it",
        "testing/deliveries.py",
        "if is_cut and (request is None or self._is_about(request, key)):",
        "if False:",
        DELIVERIES,
    ),
    Plant(
        "the own listener of a guarded broker is everybody's",
        "testing/guard.py",
        "Listener(CONTROL, CONTROL_HOST, control_port),",
        "Listener(CONTROL, host, control_port),",
        ("tests/testing/test_guard.py",),
    ),
    Plant(
        "ACLs of a test's broker are forgotten",
        "testing/embedded.py",
        'start_acls.add(process, words.parse(guard.acls, "acls:"))',
        "pass",
        ("tests/testing/test_guard.py",),
    ),
    Plant(
        "a test may not look into its own guarded broker",
        "testing/guard.py",
        'texts[SUPER_USERS] = ";".join(filter(None, (given.get(SUPER_USERS, ""), "User:ANONYMOUS")))',
        "pass",
        ("tests/testing/test_guard.py",),
    ),
    Plant(
        "certificates of a test's broker are never removed",
        "testing/guard.py",
        "weakref.finalize(owner, _remove, folder, os.getpid())",
        "pass",
        ("tests/testing/test_guard.py",),
    ),
    Plant(
        "a refused partition takes those beside it with it",
        "server/refused_parts.py",
        "if partition is not None and index != partition:\n    left.append(each)\n    continue",
        "",
        FAULTS,
    ),
    Plant(
        "what a lost answer told of is not written",
        "server/fault_injection.py",
        "self._commits.mark(log)",
        "pass",
        FAULTS,
    ),
    Plant(
        "a fault goes on after its last time",
        "server/fault_injection.py",
        "if fault.left == 1:\n    self.remove(fault)",
        "",
        FAULTS,
    ),
    Plant(
        "a connection that hangs is served again when the fault has ended",
        "server/fault_injection.py",
        "connection.serve = faulty.serve if faulty.is_silent(connection) else serve",
        "connection.serve = serve",
        FAULTS,
    ),
    Plant(
        "the test itself meets its faults",
        "server/fault_injection.py",
        "if client_id == EXEMPT_CLIENT_ID:\n    return None",
        "",
        FAULTS,
    ),
    Plant(
        "connections keep their fast paths beside a fault",
        "server/fault_injection.py",
        "connection.session.lend(_NO_FAST_PATHS if faulty.is_silent(connection) else fast_paths)",
        "pass",
        FAULTS,
    ),
    Plant(
        "a reset keeps changed settings",
        "testing/broker_loop.py",
        "if changes:\n    submit(events.AlterConfigs(Token(), changes, incremental=False))",
        "",
        BROKER,
    ),
    Plant(
        "a reset keeps the faults",
        "testing/broker_loop.py",
        "if self._faults is not None:\n    self._faults.clear()",
        "",
        FAULTS + BROKER,
    ),
    Plant(
        "a wait looks once",
        "testing/waits.py",
        "if left <= 0:",
        "if True:",
        WAITS,
    ),
    Plant(
        "a Fetch that waits ends its connection at the way back to a snapshot",
        "server/data_snapshots.py",
        "broker.purgatory.end_early(delayed, broker.runtime.now)",
        "pass",
        ("tests/testing/test_broker.py",),
    ),
    Plant(
        "what a peer has said of a request is lost at the way back to a snapshot",
        "server/data_snapshots.py",
        "connection.carry_on(carried.outbox, carried.pending)",
        'connection.carry_on(carried.outbox, b"")',
        ("tests/testing/test_broker.py",),
    ),
)
