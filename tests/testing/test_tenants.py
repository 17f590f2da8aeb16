"""Tenants on one loop: what befalls one leaves the others serving, and they come and go while those serve."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafkad.errors import ConfigError, StartFailure, StorageFailure
from pykafkad.server import tenants as served
from pykafkad.server.connection import FRAMES_PER_TURN
from pykafkad.server.login_bytes import LARGE_TOKENS_BYTES
from pykafkad.testing import Broker, Refused, Tenants
from pykafkad.testing.waits import until
from pykafkad.wire import messages
from tests.testing.any_request import AnyClient, address, encoded

pytestmark = pytest.mark.epoll

MANY = 60
REQUESTS = 400
SECONDS = 60
PORTS = 20
ANNOUNCED = 500_000


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[Tenants]:
    """They end before the folder does."""
    with Tenants() as made:
        yield made


def take(connected: socket.socket) -> bytes:
    """The next answer."""
    size = struct.unpack(">i", _take(connected, 4))[0]
    return _take(connected, size)


def _take(connected: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connected.recv(size - len(data))
        assert piece, "the broker has closed the connection"
        data += piece
    return data


def wait_until_closed(broker: Broker) -> None:
    """Wait until nobody listens at a tenant's address."""

    def is_closed() -> bool:
        try:
            socket.create_connection(address(broker), SECONDS).close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:
            # It was in the queue of the listener that has just ended; only the next one is refused.
            pass
        return False

    until(is_closed, bool, "the end of the tenant", SECONDS)


# --- the same names ---------------------------------------------------------------------------------------------------


def test_the_same_topics_and_groups_do_not_meet(tenants: Tenants) -> None:
    first, second = tenants.add("acme", topics={"orders": 2}), tenants.add("other", topics={"orders": 1})
    first.produce("orders", "of acme")
    assert second.records("orders") == []
    second.produce("orders", "of other", "and one more")
    first.commit("group", {("orders", 0): 1})
    assert second.groups() == []
    second.commit("group", {("orders", 0): 2})
    assert [record.value for record in first.records("orders")] == [b"of acme"]
    assert first.group("group").offsets == {("orders", 0): 1}
    assert second.group("group").offsets == {("orders", 0): 2}
    second.delete_topic("orders")
    assert first.topics() == {"orders": 2}


def producer_epoch(client: AnyClient) -> int:
    """The epoch of one more producer of the transactional id."""
    # Who asks for the coordinator has its topic created.
    client.answer(messages.FindCoordinatorRequest(key_type=1, coordinator_keys=["same"]), 4)
    request = messages.InitProducerIdRequest(transactional_id="same", transaction_timeout_ms=60_000)
    answer = until(
        lambda: client.answer(request, 4), lambda found: not found.error_code, "a producer id", SECONDS, repr
    )
    return int(answer.producer_epoch)


def test_producers_of_the_same_transactional_id_do_not_fence_each_other(tenants: Tenants) -> None:
    first, second = (AnyClient(tenants.add(name), "same") for name in ("acme", "other"))
    assert [producer_epoch(each) for each in (first, second, first, second, first)] == [0, 0, 1, 1, 2]
    first.close()
    second.close()


def logs_in(broker: Broker, password: str) -> bool:
    """Whether alice may in, by PLAIN."""
    client = AnyClient(broker)
    client.answer(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    answer = client.answer(messages.SaslAuthenticateRequest(auth_bytes=f"\0alice\0{password}".encode()), 2)
    client.close()
    return not answer.error_code


def test_the_same_user_has_another_password_and_other_rights(tenants: Tenants) -> None:
    topics = {"orders": 1}
    first = tenants.add("acme", topics=topics, users={"alice": "one"}, acls=["alice read topic orders"])
    second = tenants.add("other", topics=topics, users={"alice": "two"}, acls=["alice read topic nothing"])
    assert [logs_in(each, password) for each in (first, second) for password in ("one", "two")] == [
        True,
        False,
        False,
        True,
    ]
    seen = []
    for broker, password in ((first, "one"), (second, "two")):
        client = AnyClient(broker)
        client.answer(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1)
        client.answer(messages.SaslAuthenticateRequest(auth_bytes=f"\0alice\0{password}".encode()), 2)
        seen.append([each.name for each in client.answer(messages.MetadataRequest(topics=None), 9).topics])
        client.close()
    assert seen == [["orders"], []]


def stranger(broker: Broker) -> socket.socket:
    """A connection that has announced half a megabyte for its login, and sends no more."""
    connected = socket.create_connection(address(broker), SECONDS)
    connected.sendall(encoded(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1))
    take(connected)
    connected.sendall(struct.pack(">i", ANNOUNCED) + bytes(100))
    return connected


def taken(tenants: Tenants, name: str) -> int:
    """What the strangers of a tenant have announced."""
    process = next(each.process for each in tenants.loop.tenants() if each.name == name)
    assert process.broker is not None
    return sum(logins.bytes_taken.total for logins in process.broker.socket_server.logins.values())


def test_strangers_have_a_share_of_what_all_may_hold(tenants: Tenants) -> None:
    """However many tenants there are, the process holds no more. Who is greedy at one ends strangers there, and none at
    another; with fewer tenants each has more."""
    users = {"alice": "secret"}
    first, second = tenants.add("acme", users=users), tenants.add("other", users=users)
    quiet = stranger(second)
    fitting = LARGE_TOKENS_BYTES // 2 // ANNOUNCED
    greedy = [stranger(first) for _ in range(fitting + 1)]
    greedy[0].settimeout(SECONDS)
    assert greedy[0].recv(1) == b""
    until(lambda: taken(tenants, "acme"), lambda found: found == fitting * ANNOUNCED, "the share", SECONDS, str)
    assert taken(tenants, "other") == ANNOUNCED
    quiet.close()
    tenants.remove("other")
    greedy += [stranger(first) for _ in range(3)]
    until(lambda: taken(tenants, "acme"), lambda found: found == (fitting + 3) * ANNOUNCED, "all", SECONDS, str)
    for each in greedy:
        each.close()


def test_handshakes_are_shared_out_too(tenants: Tenants) -> None:
    """At each listener with TLS."""
    broker = tenants.add("acme", tls=True)
    for count in (1, 2, 3):
        if count > 1:
            tenants.add(f"other-{count}")
        found = [
            endpoint.sharers
            for each in tenants.loop.tenants()
            if each.process.broker is not None
            for endpoint in each.process.broker.socket_server._tls.values()
        ]
        assert found == [count] and broker.is_running


# --- what befalls one -------------------------------------------------------------------------------------------------


def test_a_bug_in_one_ends_it_alone(tenants: Tenants, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    first, second = tenants.add("acme"), tenants.add("other", topics=["orders"])
    client = AnyClient(second)
    client.answer(messages.MetadataRequest(topics=[]), 9)

    def broken(_timeout: object) -> None:
        raise RuntimeError("planted")

    first._running._process.runtime.reactor.turn = broken
    first._running._process.runtime.reactor.wake()
    wait_until_closed(first)
    assert not client.answer(messages.MetadataRequest(topics=[]), 9).topics
    client.close()
    second.produce("orders", "x")
    (line,) = [each.getMessage() for each in caplog.records if "tenant-ended" in each.getMessage()]
    assert line == 'tenant-ended tenant=acme reason="unexpected error"'


def test_the_last_directory_of_one_fails(tenants: Tenants, tmp_path: Path) -> None:
    settings = {"metadata.log.dir": str(tmp_path / "metadata")}
    first = tenants.add("acme", data=tmp_path / "acme", topics=["orders"], settings=settings)
    second = tenants.add("other", data=tmp_path / "other", topics=["orders"])

    def fail() -> None:
        directories = first._running._process.directories
        (directory,) = directories.online
        directories.report(directory, StorageFailure("write", "file", OSError(errno.EIO, "planted")))

    first._running.call(fail)
    wait_until_closed(first)
    second.produce("orders", "x")
    assert len(second.records("orders")) == 1
    # Its name, its directory and its port are free again.
    host, port = address(first)
    again = until(
        lambda: added(tenants, "acme", data=tmp_path / "acme", host=host, port=port, settings=settings),
        bool,
        "a new start",
        SECONDS,
    )
    assert again is not None and again.topics() == {"orders": 1}


def added(tenants: Tenants, name: str, **options) -> Broker | None:
    try:
        return tenants.add(name, **options)
    except ConfigError:
        return None


def test_the_memory_of_one_is_full(tenants: Tenants) -> None:
    first = tenants.add("acme", topics=["orders"], memory_bytes=1 << 20)
    second = tenants.add("other", topics=["orders"], memory_bytes=1 << 20)
    with pytest.raises(Refused):
        for _ in range(40):
            first.produce("orders", b"x" * 65536)
    second.produce("orders", b"x" * 65536)
    assert len(second.records("orders")) == 1


def test_ways_back_and_resets_of_one(tenants: Tenants) -> None:
    first, second = tenants.add("acme", topics=["orders"]), tenants.add("other", topics=["orders"])
    client = AnyClient(second)
    client.answer(messages.MetadataRequest(topics=[]), 9)
    first.produce("orders", "kept")
    first.save("here")
    first.produce("orders", "lost")
    second.produce("orders", "of other")
    first.rewind("here")
    assert [each.value for each in first.records("orders")] == [b"kept"]
    first.reset()
    assert first.records("orders") == []
    # On the connection of before.
    sock = client._socket
    client.answer(messages.MetadataRequest(topics=[]), 9)
    assert client._socket is sock
    client.close()
    assert [each.value for each in second.records("orders")] == [b"of other"]


def test_faults_clock_and_trace_are_those_of_one(tenants: Tenants) -> None:
    first, second = tenants.add("acme", topics=["orders"]), tenants.add("other", topics=["orders"])
    trace = first.trace()
    first.clock.advance(3600)
    assert second.clock.ahead_seconds == 0
    with first.faults.answer("Metadata", 7):
        client = AnyClient(second, "of other")
        client.answer(messages.MetadataRequest(topics=[]), 9)
        client.close()
    assert "of other" not in trace.text()
    client = AnyClient(first, "of acme")
    client.answer(messages.MetadataRequest(topics=[]), 9)
    client.close()
    assert "of acme" in trace.text()


# --- who comes and goes -----------------------------------------------------------------------------------------------


def test_one_is_added_and_removed_while_others_serve(tenants: Tenants) -> None:
    stays = tenants.add("stays", topics=["orders"])
    client = AnyClient(stays)
    client.answer(messages.MetadataRequest(topics=[]), 9)
    connected = client._socket
    for _ in range(3):
        other = tenants.add("comes", topics=["orders"])
        other.produce("orders", "x")
        assert sorted(tenants) == ["comes", "stays"]
        tenants.remove("comes")
        wait_until_closed(other)
    client.answer(messages.MetadataRequest(topics=[]), 9)
    assert client._socket is connected
    client.close()
    assert stays.topics() == {"orders": 1}


def test_a_restart_keeps_port_and_data(tenants: Tenants, tmp_path: Path) -> None:
    for name, data in (("memory", None), ("disk", tmp_path / "data")):
        broker = tenants.add(name, topics=["orders"], data=data)
        before = broker.bootstrap
        broker.produce("orders", "x")
        broker.restart()
        assert broker.bootstrap == before
        assert len(broker.records("orders")) == 1
        with pytest.raises(ValueError, match="cannot be killed"):
            broker.restart(is_killed=True)


def test_what_cannot_be_a_tenant_leaves_nothing_behind(tenants: Tenants, tmp_path: Path) -> None:
    first = tenants.add("acme", data=tmp_path / "acme")
    host, port = address(first)
    for name in ("", "a/b", "..", "x" * 64, "a b", "ü"):
        with pytest.raises(ConfigError, match="a name has 1 to 63 letters"):
            tenants.add(name)
    with pytest.raises(ConfigError, match="there is one of that name"):
        tenants.add("acme")
    with pytest.raises(StartFailure, match="cannot listen"):
        tenants.add("other", host=host, port=port, data=tmp_path / "other")
    with pytest.raises((StartFailure, StorageFailure), match="lock"):
        tenants.add("other", data=tmp_path / "acme")
    with pytest.raises(ValueError, match="own_process"):
        tenants.add("other", own_process=True)
    with pytest.raises(ValueError, match="a tenant has one"):
        tenants.add("other", brokers=2)
    assert tenants.add("other", data=tmp_path / "other").topics() == {}
    with pytest.raises(KeyError):
        tenants.remove("nobody")


def test_two_that_begin_at_once_with_one_name(tenants: Tenants) -> None:
    """The name is taken as soon as the first has begun to start."""
    settings = tenants.add("acme")._running._options.broker_settings()
    plans = [served.Plan("twin", settings) for _ in range(2)]
    results: list[object] = []
    tenants.loop.begin_add(plans[0], results.append)
    with pytest.raises(ConfigError, match="there is one of that name"):
        tenants.loop.begin_add(plans[1], results.append)
    until(lambda: len(results), bool, "the first", SECONDS)
    assert isinstance(results[0], served.Tenant)
    with pytest.raises(ConfigError, match="no tenant twain"):
        tenants.wait(lambda then: tenants.loop.begin_remove("twain", then))


def test_a_stop_while_one_begins_and_one_ends() -> None:
    tenants = Tenants().start()
    first = tenants.add("first")
    settings = first._running._options.broker_settings()
    results: list[object] = []
    tenants.loop.begin_add(served.Plan("second", settings), results.append)
    tenants.loop.begin_remove("first", results.append)
    tenants._brokers.clear()
    tenants.close()
    assert {type(each).__name__ for each in results} <= {"Tenant", "NoneType"}
    with pytest.raises(OSError):
        socket.create_connection(address(first), SECONDS)


# --- a share of the loop ----------------------------------------------------------------------------------------------


class Loop:
    """Two tenants whose loop is turned by hand: the first is asked much."""

    def __init__(self) -> None:
        self.tenants = Tenants()
        self.loop = served.Tenants(lambda _: quiet(), quiet())
        self.busy, self.calm = (self.loop.add(served.Plan(name, settings())) for name in ("busy", "calm"))
        self.sockets: list[socket.socket] = []

    def connect(self, tenant: served.Tenant) -> socket.socket:
        host, _, port = tenant.bootstrap.rpartition(":")
        made = socket.create_connection((host, int(port)), SECONDS)
        made.settimeout(SECONDS)
        self.sockets.append(made)
        return made

    def requests(self, tenant: served.Tenant) -> int:
        """How many it has served."""
        return tenant.process.runtime.metrics.requests

    def close(self) -> None:
        for each in self.sockets:
            each.close()
        self.loop.close()


def quiet():
    from pykafkad.server.logs import Logs, Sink

    return Logs("error", Sink(len))


def settings():
    from pykafkad.testing.options import Options

    return Options().broker_settings()


@pytest.fixture
def world() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


@pytest.mark.long
def test_one_that_is_asked_much_has_more_turns_and_not_longer_ones(world: Loop) -> None:
    asking = encoded(messages.MetadataRequest(topics=[]), 9)
    for _ in range(MANY):
        world.connect(world.busy).sendall(asking * REQUESTS)
    calm = world.connect(world.calm)
    # All are accepted.
    while len(world.busy.process.broker.socket_server) < MANY or not len(world.calm.process.broker.socket_server):
        world.loop.turn(0.1)
    calm.sendall(asking)
    most = (served.CONNECTIONS_PER_TURN + served.RESUMES_PER_TURN) * FRAMES_PER_TURN
    turns = 0
    while not world.requests(world.calm):
        before = world.requests(world.busy)
        world.loop.turn(0.1)
        turns += 1
        assert world.requests(world.busy) - before <= most
    take(calm)
    assert turns <= 3
    # It was behind a share of the others' requests, and not behind all.
    assert world.requests(world.busy) < MANY * REQUESTS / 2
    while world.requests(world.busy) < MANY * REQUESTS:
        world.loop.turn(0.1)


@pytest.mark.long
def test_large_requests_of_one_take_turns_with_small_ones_of_another(world: Loop) -> None:
    names = [
        messages.CreateTopicsRequest.CreatableTopic(name=f"t{n}", num_partitions=1, replication_factor=-1)
        for n in range(3000)
    ]
    busy, calm = world.connect(world.busy), world.connect(world.calm)
    busy.sendall(encoded(messages.CreateTopicsRequest(topics=names, timeout_ms=60_000, validate_only=True), 7))
    small = encoded(messages.MetadataRequest(topics=[]), 9)
    while not world.requests(world.busy) and not len(world.busy.process.runtime.tasks):
        world.loop.turn(0.1)
    served_meanwhile = 0
    calm.sendall(small)
    while len(world.busy.process.runtime.tasks):
        before = world.requests(world.calm)
        world.loop.turn(0.1)
        if world.requests(world.calm) > before:
            served_meanwhile += 1
            take(calm)
            calm.sendall(small)
    assert served_meanwhile >= 3


def test_bytes_that_tls_keeps_are_served_without_news(tenants: Tenants, tmp_path: Path) -> None:
    """More requests in one read than a turn serves, and nothing after them that would wake the loop."""
    broker = tenants.add("acme", tls=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(address(broker), SECONDS) as plain, context.wrap_socket(plain) as connected:
        connected.sendall(encoded(messages.MetadataRequest(topics=[]), 9) * 2000)
        for _ in range(2000):
            take(connected)


def test_what_one_more_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """Printed; the limit is far above."""
    count = 30
    with Tenants() as tenants:
        tenants.add("first")
        before, began = resident_bytes(), time.monotonic()
        for number in range(count):
            tenants.add(f"t{number}")
        seconds, grown = time.monotonic() - began, resident_bytes() - before
    with capsys.disabled():
        print(f"\none more tenant: {seconds / count * 1000:.1f} ms, {grown / count / 1e6:.2f} MB")
    assert grown / count < 8e6


def resident_bytes() -> int:
    import resource

    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
