"""Bugs to plant in the wire trace and in the clock of a test's broker."""

from __future__ import annotations

from tests.planted.plant import Plant

TRACE = ("tests/server/test_trace.py",)
TRACES = ("tests/testing/test_traces.py",)

CHILD = ("tests/testing/test_child.py",)
CLOCKS = ("tests/testing/test_clocks.py",)

PLANTS = (
    Plant(
        "connections are idle for the time that a clock jumps",
        "testing/broker_loop.py",
        "connection.transport.last_active += moved",
        "pass",
        CLOCKS,
    ),
    Plant(
        "a clock jumps over what is due in between",
        "testing/broker_loop.py",
        "left if left <= least else min(left, max(until_due, least))",
        "left",
        CLOCKS,
    ),
    Plant(
        "records of the test have the real time when the broker's clock is ahead",
        "testing/records.py",
        "time.time() + ahead_seconds",
        "time.time()",
        CLOCKS,
    ),
    Plant(
        "passwords stand in a trace",
        "server/trace_secrets.py",
        "row.value = HIDDEN",
        "pass",
        TRACE,
    ),
    Plant(
        "tokens of logins stand in a trace",
        "server/trace_secrets.py",
        'message.auth_bytes = b""',
        "pass",
        TRACE,
    ),
    Plant(
        "the value of an unknown setting is shown",
        "server/trace_secrets.py",
        "row is None or row.type == _TYPE_PASSWORD or any(each in name.lower() for each in _TELLING)",
        "row is not None and row.type == _TYPE_PASSWORD",
        TRACE,
    ),
    Plant(
        "a frame with secrets that cannot be read is kept as it is",
        "server/trace_secrets.py",
        'except (ProtocolError, StructError, IndexError, ValueError):\n    return b""',
        "except (ProtocolError, StructError, IndexError, ValueError):\n    return frame",
        TRACE,
    ),
    Plant(
        "a trace serves connections whose login is under way",
        "server/trace.py",
        "if connection.serve == before:\n    connection.serve = serve",
        "connection.serve = serve",
        TRACE,
    ),
    Plant(
        "connections that log in, and silent ones, have fast paths under a trace",
        "server/trace.py",
        "connection.session.lend_again()",
        "connection.session.lend(sessions.fast_paths)",
        TRACE,
    ),
    Plant(
        "the ring of a trace has no limit of exchanges",
        "server/trace.py",
        "left > most or ",
        "",
        TRACES,
    ),
    Plant(
        "the ring of a trace has no limit of bytes",
        "server/trace.py",
        "(ring_bytes > most_bytes and left > 1)",
        "False",
        TRACES,
    ),
    Plant(
        "fast paths are not traced",
        "server/trace.py",
        "ring.append(short)",
        "",
        TRACES,
    ),
    Plant(
        "a trace leaves its fast paths behind",
        "server/trace.py",
        "self._reroute(self.inner, None)",
        "self._reroute(self.inner, self._traced_fast_paths)",
        TRACES,
    ),
    Plant(
        "the last fault takes a trace with it",
        "server/fault_injection.py",
        "serve = serve if trace is None else trace.around(broker, serve)",
        "pass",
        TRACES,
    ),
    Plant(
        "a request that a trace cannot tell of loses its answer",
        "server/trace.py",
        "except Exception:",
        "except KeyError:",
        TRACE,
    ),
    Plant(
        "requests of the test itself are traced",
        "server/trace.py",
        "if end - name < 2 or view[name : name + len(_EXEMPT)] == _EXEMPT:",
        "if end - name < 2:",
        TRACES,
    ),
    Plant(
        "the sequence numbers of a capture stand still",
        "server/pcap.py",
        "(self._sequences[from_server] + size) & 0xFFFFFFFF",
        "self._sequences[from_server]",
        TRACE,
    ),
    Plant(
        "the connections of a restarted broker are the old ones in a capture",
        "server/pcap.py",
        "which = exchange.connection_id, exchange.peer",
        'which = exchange.connection_id, ""',
        TRACE,
    ),
    Plant(
        "a capture says of a cut packet that it is whole",
        "server/pcap.py",
        "len(packet) + missing) + packet",
        "len(packet)) + packet",
        TRACE,
    ),
    Plant(
        "a trace takes clients out of their quotas",
        "server/session.py",
        "if quotas is not None:",
        "if quotas is not None and traced is None:",
        TRACE,
    ),
    Plant(
        "a trace does not learn of a write that failed behind a fast path",
        "server/commits.py",
        "trace.rewritten(connection, answer)",
        "pass",
        TRACE,
    ),
    Plant(
        "a trace does not learn of a write that failed",
        "server/commits.py",
        "trace.rewritten(connection, whole)",
        "pass",
        TRACE,
    ),
    Plant(
        "of a request with secrets everything is kept",
        "server/trace.py",
        "exchange.request = whole[: self.frame_bytes]",
        "exchange.request = whole",
        TRACE,
    ),
    Plant(
        "an answer that may have secrets is cut before they are looked for",
        "server/trace.py",
        "None if may_have_secrets else most + 4",
        "most + 4",
        TRACE,
    ),
    Plant(
        "a killed process takes the clock with it",
        "testing/child.py",
        '"ahead_seconds": self._ahead_seconds',
        '"ahead_seconds": 0.0',
        CHILD,
    ),
    Plant(
        "a killed process takes the trace with it",
        "testing/child.py",
        '"is_traced": self._is_traced',
        '"is_traced": False',
        CHILD,
    ),
    Plant(
        "the checksums of a capture leave out an odd byte",
        "server/pcap.py",
        'data += b"\\0"',
        "data = data[:-1]",
        TRACE,
    ),
)
