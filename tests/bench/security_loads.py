"""Loads of security: requests by TLS, handshakes, logins by SCRAM, and what ACLs and quotas cost."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import subprocess
from functools import cache
from pathlib import Path

from pykafkad.metadata.credentials import NUMBERS
from pykafkad.sasl.scram import HASHES
from pykafkad.wire import messages

from . import loadgen, process, wire_bytes
from .asker import Asker
from .brokers import Pykafkad, free_port
from .histogram import median
from .own_broker_loads import OwnBrokerLoad
from .request_loads import PARTITIONS, FetchLoad, encoded_batch, produce_templates
from .session import Session

WARM_SECONDS, QUICK_WARM_SECONDS = 12.0, 3.0
"""How long a broker of one's own does what is measured before that counts: a JVM compiles meanwhile."""

AT_A_TIME = 8
USER, PASSWORD, SALT, ITERATIONS = "alice", "alice-secret", b"salt of the bench", 4096
ACLS = 1000
TURNS = (False, True, True, False)
"""In which order the broker without and the one with are measured within a round."""

MUCH = 1e15
"""A quota that never throttles, in bytes a second or per cent."""


@cache
def key_and_certificate():
    """A key of RSA and its own certificate as PEM, as Kafka's documentation makes them with keytool."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import NameOID

    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return key_pem + built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


class GuardedLoad(OwnBrokerLoad):
    """Has a broker of its own with a listener GUARDED at `ports[name]`."""

    def __init__(self):
        super().__init__()
        self.ports = {}

    def guard(self, broker, bench, protocol, *settings):
        """Starts the broker; `settings` are those of the listener."""
        port = self.ports[broker.name] = free_port()
        own = self.own(broker, bench)
        own.settings = (
            *own.settings,
            *own.listeners(protocol, port),
            *(f"listener.name.guarded.{setting}" for setting in settings),
        )
        own.start()
        return own

    def guard_by_tls(self, broker, bench):
        """Starts the broker with TLS."""
        path = bench.scratch / f"{broker.name}-tls.pem"
        path.write_bytes(key_and_certificate())
        return self.guard(broker, bench, "SSL", "ssl.keystore.type=PEM", f"ssl.keystore.location={path}")


def warm_seconds(bench):
    """How long to warm a broker."""
    return QUICK_WARM_SECONDS if bench.options.quick else WARM_SECONDS


class TlsProduceLoad(GuardedLoad):
    """One batch, produced by TLS again and again to a topic that is fresh in every round."""

    def __init__(self, batch_bytes, *, connections, depth):
        super().__init__()
        self.batch_bytes = batch_bytes
        self.shape = {"connections": connections, "depth": depth}

    def prepare(self, broker, bench):
        """Starts and warms a broker."""
        self.guard_by_tls(broker, bench)
        self._produce(broker, bench, warm_seconds(bench), 0.0)

    def round(self, broker, bench):
        """Rates, latencies, CPU and memory of one run of `bench.options.seconds`."""
        return self._produce(broker, bench, bench.options.seconds, bench.options.warmup)

    def _produce(self, broker, bench, seconds, warmup):
        own, topic = self.owned[broker.name], bench.new_name("tls")
        with Session(own.port) as session:
            topic_id = session.create_topics({topic: PARTITIONS})[topic]
            path = produce_templates(bench, topic, topic_id, encoded_batch(self.batch_bytes))
            figures = loadgen.run(
                self.ports[broker.name], path, seconds=seconds, warmup=warmup, pid=own.pid, tls=True, **self.shape
            )
            figures["rss_mb"] = process.memory_mb(own.pid)
            session.delete_topics([topic])
        path.unlink()
        own.wait_until_deleted(topic)
        return figures


class TlsFetchLoad(GuardedLoad):
    """Six consumers by TLS, as `FetchLoad` reads."""

    def __init__(self, max_bytes, *, batch_bytes):
        super().__init__()
        self.plain = FetchLoad(max_bytes, batch_bytes=batch_bytes)

    def prepare(self, broker, bench):
        """Starts a broker, makes and fills its topic, and warms it."""
        own = self.guard_by_tls(broker, bench)
        self.plain.prepare(own, bench)
        self._fetch(broker, warm_seconds(bench), 0.0)

    def round(self, broker, bench):
        """Rates, latencies, CPU and memory of one run of `bench.options.seconds`."""
        return self._fetch(broker, bench.options.seconds, bench.options.warmup)

    def finish(self, broker, bench):
        """Ends the broker."""
        if broker.name in self.plain.prepared:
            self.plain.prepared.pop(broker.name)[1].unlink()
        super().finish(broker, bench)

    def _fetch(self, broker, seconds, warmup):
        own = self.owned[broker.name]
        _, path = self.plain.prepared[broker.name]
        figures = loadgen.run(
            self.ports[broker.name],
            path,
            connections=PARTITIONS,
            seconds=seconds,
            warmup=warmup,
            pid=own.pid,
            tls=True,
        )
        figures["rss_mb"] = process.memory_mb(own.pid)
        return figures


def logins(port, pid, seconds, warmup, *options):
    """The figures of a run of `logingen.c`: logins and what one costs the broker. Raises LoadFailed."""
    program = loadgen.compiled(Path(__file__).with_name("logingen.c"), options=("-Wno-deprecated-declarations",))
    words = {"port": port, "pid": pid, "seconds": seconds, "warmup": warmup, "connections": AT_A_TIME}
    command = [program, *(f"--{name}={value}" for name, value in words.items()), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + warmup + 60, check=False)
    if done.returncode:
        raise loadgen.LoadFailed(done.stderr.strip() or f"the generator ended with {done.returncode}")
    raw = json.loads(done.stdout)
    return {
        "logins_per_s": raw["logins"] / raw["seconds"],
        "cpu_us_per_login": 1e6 * raw["broker_cpu_seconds"] / max(raw["logins"], 1),
        "generator_cpu_percent": 100 * raw["generator_cpu_seconds"] / raw["seconds"],
        "rss_mb": process.memory_mb(pid),
    }


class HandshakeLoad(GuardedLoad):
    """Connections by TLS, each with a full handshake and the answer to ApiVersions, eight at a time."""

    def prepare(self, broker, bench):
        """Starts and warms a broker."""
        self.guard_by_tls(broker, bench)
        (bench.scratch / "hello.request").write_bytes(wire_bytes.api_versions().request)
        self._connect(broker, bench, warm_seconds(bench), 0.0)

    def round(self, broker, bench):
        """`logins_per_s` are the connections."""
        return self._connect(broker, bench, bench.options.seconds, bench.options.warmup)

    def _connect(self, broker, bench, seconds, warmup):
        hello = f"--hello={bench.scratch / 'hello.request'}"
        return logins(self.ports[broker.name], self.owned[broker.name].pid, seconds, warmup, "--tls", hello)


class ScramLoad(GuardedLoad):
    """Connections that log in by SCRAM, eight at a time. The client knows its keys: it does not compute the 4096
    iterations again."""

    def __init__(self, mechanism):
        super().__init__()
        self.mechanism = mechanism

    def prepare(self, broker, bench):
        """Starts a broker, adds its user, and warms it."""
        module = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        name = self.mechanism.lower()
        own = self.guard(
            broker,
            bench,
            "SASL_PLAINTEXT",
            f"sasl.enabled.mechanisms={self.mechanism}",
            f"{name}.sasl.jaas.config={module}",
        )
        upsertion = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=USER, mechanism=NUMBERS[self.mechanism], iterations=ITERATIONS, salt=SALT, salted_password=self._salted
        )
        with Session(own.port) as session:
            asker = Asker(session)
            answer = asker.ask("AlterUserScramCredentials", 0, deletions=[], upsertions=[upsertion])
            if answer.results[0].error_code:
                raise loadgen.LoadFailed(f"no user: {answer.results[0].error_message}")
            while not asker.ask("DescribeUserScramCredentials", 0, users=None).results:
                pass
        self._log_in(broker, warm_seconds(bench), 0.0)

    @property
    def _salted(self):
        return hashlib.pbkdf2_hmac(HASHES[self.mechanism], PASSWORD.encode(), SALT, ITERATIONS)

    def round(self, broker, bench):
        """`logins_per_s`."""
        return self._log_in(broker, bench.options.seconds, bench.options.warmup)

    def _log_in(self, broker, seconds, warmup):
        hash_name = HASHES[self.mechanism]
        key = hmac.digest(self._salted, b"Client Key", hash_name).hex()
        words = (f"--scram={hash_name}", f"--user={USER}", f"--client-key={key}")
        return logins(self.ports[broker.name], self.owned[broker.name].pid, seconds, warmup, *words)


class CostLoad(OwnBrokerLoad):
    """Small produce requests to a broker of ours with something, beside a broker, or the same one, without it."""

    def round(self, broker, bench):
        """The requests/s of the broker with it, and `beside_without`: them to those without. Both are measured twice,
        in turn. Nothing of Kafka."""
        if broker.name != Pykafkad.name:
            return {}
        found = ([], [])
        for has_it in TURNS:
            measured = self.switched(broker, bench, has_it)
            topic = bench.new_name("cost")
            with Session(measured.port) as session:
                topic_id = session.create_topics({topic: PARTITIONS})[topic]
            path = produce_templates(bench, topic, topic_id, encoded_batch(None))
            options = bench.options
            found[has_it].append(
                loadgen.run(
                    measured.port,
                    path,
                    connections=50,
                    seconds=options.seconds,
                    warmup=options.warmup,
                    pid=measured.pid,
                )
            )
            with Session(measured.port) as session:
                session.delete_topics([topic])
            measured.wait_until_deleted(topic)
            path.unlink()
        without, having = (
            {figure: median([run[figure] for run in runs]) for figure in ("requests_per_s", "cpu_us_per_request")}
            for runs in found
        )
        return {
            **having,
            "beside_without": having["requests_per_s"] / without["requests_per_s"],
            "cpu_beside_without": having["cpu_us_per_request"] / without["cpu_us_per_request"],
        }

    def switched(self, broker, bench, has_it):
        """The broker with it or without."""
        return self.owned[broker.name] if has_it else broker


class AclsLoad(CostLoad):
    """An authorizer with a thousand entries, of which some let the client produce."""

    def prepare(self, broker, bench):
        """Starts a broker as super user, adds the entries, and starts it again as a user like others."""
        if broker.name != Pykafkad.name:
            return
        own = self.own(broker, bench, "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer")
        usual = own.settings
        own.settings = (*usual, "super.users=User:ANONYMOUS")
        own.start()
        creation = messages.CreateAclsRequest.AclCreation
        entries = [
            # Topics by prefix and by name, allowed and denied, of the client and of others.
            creation(
                resource_type=2,
                resource_name=f"orders-{number}",
                resource_pattern_type=4 if number % 3 else 3,
                principal="User:ANONYMOUS" if number % 2 else f"User:client-{number}",
                host="*",
                operation=4 if number % 5 else 3,
                permission_type=2 if number % 7 == 0 else 3,
            )
            for number in range(ACLS - 2)
        ]
        mine = {"principal": "User:ANONYMOUS", "host": "*", "operation": 2, "permission_type": 3}
        entries.append(creation(resource_type=2, resource_name="cost-", resource_pattern_type=4, **mine))
        entries.append(creation(resource_type=4, resource_name="kafka-cluster", resource_pattern_type=3, **mine))
        with Session(own.port) as session:
            answer = Asker(session).ask("CreateAcls", 3, creations=entries)
        if any(row.error_code for row in answer.results):
            raise loadgen.LoadFailed("an entry was refused")
        own.stop()
        own.settings = usual
        own.start()


class QuotasLoad(CostLoad):
    """Quotas of every client on bytes and on time, so high that they never throttle. One process has them and has them
    not, in turn: two processes differ by some per cent."""

    def prepare(self, broker, bench):
        """Starts a broker."""
        if broker.name == Pykafkad.name:
            self.own(broker, bench).start()

    def switched(self, broker, bench, has_it):
        """The one broker, after it was told so."""
        own, request = self.owned[broker.name], messages.AlterClientQuotasRequest
        names = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
        everybody = request.EntryData(
            entity=[request.EntityData(entity_type="client-id", entity_name=None)],
            ops=[request.OpData(key=name, value=MUCH, remove=not has_it) for name in names],
        )
        with Session(own.port) as session:
            answer = Asker(session).ask("AlterClientQuotas", 1, entries=[everybody], validate_only=False)
        if answer.entries[0].error_code:
            raise loadgen.LoadFailed(f"no quota: {answer.entries[0].error_message}")
        return own
