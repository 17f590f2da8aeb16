"""Loads of strangers: connections that begin a handshake and never finish it, beside a producer that goes on."""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
import time

from . import loadgen, process, wire_bytes
from .request_loads import PARTITIONS, encoded_batch, produce_templates
from .security_loads import PASSWORD, USER, GuardedLoad, warm_seconds
from .session import Session

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
TOKEN_BYTES = 200
QUICK_STRANGERS = 100
LOOK_SECONDS = 0.2
IDLE_SHARE = 0.05
MOST_SECONDS = 15.0


def begun_login():
    """A handshake for PLAIN, and the beginning of the request with the token: its rest never comes."""
    handshake = wire_bytes.request(SASL_HANDSHAKE, 1, wire_bytes.string("PLAIN"))
    token = TOKEN_BYTES.to_bytes(4, "big") + b"\0" * TOKEN_BYTES
    return handshake + wire_bytes.request(SASL_AUTHENTICATE, 1, token)[: -TOKEN_BYTES // 2]


def begun_tls():
    """A whole ClientHello: the server's answer to it is never taken up."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@contextlib.contextmanager
def strangers(port, count, first_bytes):
    """Holds so many connections that have sent `first_bytes`, for the length of the `with` block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + 100
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    with contextlib.ExitStack() as held:
        for _ in range(count):
            connection = held.enter_context(socket.create_connection(("localhost", port), timeout=10))
            connection.sendall(first_bytes)
        yield


def wait_until_idle(pid):
    """Returns when the process does next to nothing: what strangers have sent is worked off, or they are gone."""
    deadline = time.monotonic() + MOST_SECONDS
    used = process.cpu_seconds(pid)
    while time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        before, used = used, process.cpu_seconds(pid)
        if used - before < IDLE_SHARE * LOOK_SECONDS:
            return
    raise loadgen.LoadFailed(f"the broker is still busy after {MOST_SECONDS:g} s")


class StrangersLoad(GuardedLoad):
    """A producer of `rate` small requests a second on the plain listener, alone and beside strangers at the listener
    that is guarded by `protocol`."""

    def __init__(self, protocol, *, rate, count):
        super().__init__()
        self.protocol = protocol
        self.rate = rate
        self.count = count

    def prepare(self, broker, bench):
        """Starts and warms a broker."""
        if self.protocol == "SSL":
            self.guard_by_tls(broker, bench)
        else:
            module = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
            mechanism = "sasl.enabled.mechanisms=PLAIN"
            self.guard(broker, bench, self.protocol, mechanism, f"plain.sasl.jaas.config={module}")
        with self._producer(broker, bench) as produce:
            produce(warm_seconds(bench), 0.0)

    def round(self, broker, bench):
        """`strangers_mb`, the memory that they hold; `beside_strangers_p50` and `beside_strangers_p99`, the producer's
        latencies beside them to the mean of before and after; and its p50 and p99 beside them."""
        options, own = bench.options, self.owned[broker.name]
        first_bytes = begun_tls() if self.protocol == "SSL" else begun_login()
        count = QUICK_STRANGERS if options.quick else self.count
        with self._producer(broker, bench) as produce:
            before = produce(options.seconds, options.warmup)
            memory_mb = process.memory_mb(own.pid)
            with strangers(self.ports[broker.name], count, first_bytes):
                wait_until_idle(own.pid)
                beside = produce(options.seconds, options.warmup)
                delta_mb = process.memory_mb(own.pid) - memory_mb
            wait_until_idle(own.pid)
            after = produce(options.seconds, options.warmup)
        return {
            "p50_us": beside["p50_us"],
            "p99_us": beside["p99_us"],
            "strangers_mb": delta_mb,
            **{
                f"beside_strangers_{name}": 2 * beside[f"{name}_us"] / (before[f"{name}_us"] + after[f"{name}_us"])
                for name in ("p50", "p99")
            },
        }

    @contextlib.contextmanager
    def _producer(self, broker, bench):
        """A function that produces for so many seconds after so many of warming, and returns the figures."""
        own, topic = self.owned[broker.name], bench.new_name("beside")
        with Session(own.port) as session:
            topic_id = session.create_topics({topic: PARTITIONS})[topic]
            path = produce_templates(bench, topic, topic_id, encoded_batch(None))
            yield lambda seconds, warmup: loadgen.run(
                own.port, path, connections=1, depth=64, rate=self.rate, seconds=seconds, warmup=warmup, pid=own.pid
            )
            session.delete_topics([topic])
        path.unlink()
        own.wait_until_deleted(topic)
