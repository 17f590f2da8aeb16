"""The fast paths of callers with client quotas: what they count, what they remember, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.server import quota_fast_paths
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.server.test_quotas import PRODUCER, REQUEST, USER, produced, set_quota, world
from tests.simulation.world import World

__all__ = ["world"]


def test_callers_are_forgotten_when_there_are_too_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_fast_paths, "MAX_CALLERS", 3)
    set_quota(world, {"client-id": None}, PRODUCER, 1000.0)
    made = world.broker.sessions.quotas
    plain = world.broker.fast_paths
    first = made.fast_paths("User:0", plain)
    assert made.fast_paths("User:0", plain) is first
    for number in range(10):
        made.fast_paths(f"User:{number}", plain)
    assert made.fast_paths("User:0", plain) is not first
    monkeypatch.setattr(quota_fast_paths, "MAX_REMEMBERED", 3)
    monkeypatch.setattr(quota_fast_paths, "MAX_PREAMBLES", 3)
    peer = world.connect()
    for number in range(10):
        assert produced(peer, 3000, client_id=f"client-{number}").throttle_time_ms == 0
    assert produced(peer, 15_000, client_id="client-5").throttle_time_ms > 0
    producer = peer.connection.session.fast_paths[8].__self__
    assert 0 < sum(map(len, producer._preambles)) <= 3


def test_fast_paths_with_quotas_forget_what_the_caller_may(tmp_path: Path) -> None:
    world = World(tmp_path, authorizer_class_name=STANDARD_AUTHORIZER, allow_everyone_if_no_acl_found="true")
    world.create_topic("t")
    set_quota(world, USER, PRODUCER, 1e9)
    peer = world.connect()
    codes = [produced(peer).responses[0].partition_responses[0].error_code for _ in range(3)]
    assert codes == [errors.NONE] * 3
    creation = messages.CreateAclsRequest.AclCreation(
        resource_type=2,
        resource_name="t",
        resource_pattern_type=3,
        principal="User:bob",
        host="*",
        operation=4,
        permission_type=3,
    )
    answer = world.connect().ask(messages.CreateAclsRequest(creations=[creation]), 3, "admin")
    assert answer.results[0].error_code == errors.NONE
    codes = [produced(peer).responses[0].partition_responses[0].error_code for _ in range(2)]
    assert codes == [errors.TOPIC_AUTHORIZATION_FAILED] * 2


def test_a_batch_that_is_refused_counts_once(world: World) -> None:
    """The fast path counts it, and then the general path does."""
    set_quota(world, USER, PRODUCER, 1000.0)
    set_quota(world, USER, REQUEST, 1e9)
    peer = world.connect()
    sensor = world.broker.sessions.quotas.producer_byte_rate.sensor("ANONYMOUS", "test", 0.0)
    found = []
    for broken in (False, True):
        before = sensor.at_most
        data = bytearray(peer.encode(produce("t", {0: batch(b"x" * 100)}), 8))
        if broken:
            data[-1] ^= 1
        peer.send_bytes(bytes(data))
        code = peer.answers[-1].responses[0].partition_responses[0].error_code
        assert code == (errors.CORRUPT_MESSAGE if broken else errors.NONE)
        found.append(sensor.at_most - before)
    assert found[0] == found[1] > 100


def test_the_time_of_the_fast_path_counts(world: World) -> None:
    set_quota(world, USER, REQUEST, 1e9)
    peer = world.connect()
    produced(peer)
    sensor = world.broker.sessions.quotas.request_percentage.sensor("ANONYMOUS", "test", 0.0)
    (producer,) = {serve.__self__ for word, serve in peer.connection.session.fast_paths.items() if word < 1 << 16}
    before, times = sensor.at_most, iter((3.0, 3.5))
    producer._now = times.__next__
    produced(peer)
    assert next(times, None) is None
    assert sensor.at_most - before == pytest.approx(50.0)
