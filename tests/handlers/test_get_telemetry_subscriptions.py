"""GetTelemetrySubscriptions: the subscription, the times of requests, and the limit of remembered clients."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import telemetry
from pykafkad.wire import messages
from tests.handlers.telemetry_surroundings import ID, get, push, subscribe


def test_subscription_ids_are_those_of_kafka():
    """The ids are from Kafka 4.3.1, for the same metrics, intervals and instance."""
    metrics = telemetry.java_set_order(["a.b", "c.d", "e.f", "x", "metric.10"])
    assert metrics == ["a.b", "metric.10", "c.d", "x", "e.f"]
    assert telemetry.subscription_id(ID, metrics, 1000) == -1944947146
    assert telemetry.subscription_id(ID, [], 300_000) == -725132322
    assert telemetry.subscription_id(ID, ["*"], 5000) == 1235845962


def test_the_answer_has_the_subscription(world, peer):
    subscribe(peer, "one", metrics="a.b,c", interval_ms="1000")
    subscribe(peer, "two", metrics="c,d", interval_ms="2000")
    subscribe(peer, "not mine", metrics="e", interval_ms="500", match="client_id=other")
    answer = get(peer)
    assert (answer.error_code, answer.client_instance_id, answer.push_interval_ms) == (0, ID, 1000)
    assert sorted(answer.requested_metrics) == ["a.b", "c", "d"]
    assert answer.telemetry_max_bytes == 1048576 and answer.delta_temporality
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    subscribe(peer, "all", metrics="*")
    assert get(peer).requested_metrics == ["*"]


def test_a_client_without_an_id_gets_one(peer):
    first, second = get(peer, bytes(16)), get(peer, bytes(16))
    assert first.client_instance_id != second.client_instance_id and bytes(16) not in (
        first.client_instance_id,
        second.client_instance_id,
    )
    assert (first.requested_metrics, first.push_interval_ms) == ([], 300_000)


def test_a_client_may_ask_once_per_interval(world, peer):
    subscribe(peer, "one", metrics="a", interval_ms="1000")
    assert get(peer).error_code == 0
    assert get(peer).error_code == errors.THROTTLING_QUOTA_EXCEEDED
    world.advance(1)
    assert get(peer).error_code == 0
    # A client may ask at once after a change of subscriptions, and after a push with an outdated subscription id.
    subscribe(peer, "two", metrics="b")
    changed = get(peer)
    assert changed.error_code == 0 and sorted(changed.requested_metrics) == ["a", "b"]
    assert push(peer, changed.subscription_id + 1) == errors.UNKNOWN_SUBSCRIPTION_ID
    assert get(peer).error_code == 0
    assert get(peer).error_code == errors.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_id=test", True), ("client_id=te", False), ("client_id=te.*", True),
        ("client_software_name=lib,client_software_version=1", True),
        ("client_software_name=lib,client_id=x", False), ("client_source_address=127.0.0.1", True),
        ("client_source_port=50000", True),
        ("client_id=x,client_id=test", True), ("client_id=test,client_id=x", False), (" client_id = test ", True),
        ("client_instance_id=AAECAwQFBgcICQoLDA0ODw", True),
    ],
)  # fmt: skip
def test_a_subscription_matches_by_attributes(world, match, matches):
    peer = world.connect()
    peer.ask(messages.ApiVersionsRequest(client_software_name="lib", client_software_version="1"), 3)
    subscribe(peer, "one", metrics="a", match=match)
    assert get(peer).requested_metrics == (["a"] if matches else [])


def test_a_pattern_that_only_kafka_can_match_matches_no_client():
    class Taken:
        def all_configs(self):
            return {(16, "one"): {}, (16, "two"): {}}

        def configs(self, _kind, name):
            return {
                "one": {"metrics": "a", "match": r"client_id=\p{Alpha}+"},
                "two": {"metrics": "b", "match": "client_id=t.*"},
            }[name]

    assert telemetry.subscribed(Taken(), {"client_id": "test"}) == (["b"], 300_000)


def test_a_client_without_a_software_name_is_matched(peer):
    subscribe(peer, "one", metrics="a", match="client_software_name=unknown,client_software_version=unknown")
    assert get(peer).requested_metrics == ["a"]


def test_instances_are_forgotten(world, peer, monkeypatch):
    """When their connection ends, after a time without requests, and when there are too many."""
    other = world.connect()
    subscribe(peer, "one", metrics="a", interval_ms="3600000")
    assert get(other).error_code == 0
    assert get(peer).error_code == errors.THROTTLING_QUOTA_EXCEEDED
    other.connection.close("test")
    world.turn()
    assert get(peer).error_code == 0
    world.advance(3 * 3600 + 1)
    assert get(peer).error_code == 0
    monkeypatch.setattr(telemetry, "MAX_INSTANCES", 3)
    for number in range(4):
        assert get(peer, bytes([number + 1]) * 16).error_code == 0
    assert len(world.broker.client_metrics.telemetry) == 3
    assert get(peer, b"\4" * 16).error_code == errors.THROTTLING_QUOTA_EXCEEDED
    assert get(peer).error_code == 0


def test_the_api_is_advertised_only_where_metrics_are_stored(world, tmp_path):
    def keys(of):
        return {row.api_key for row in of.connect().ask(messages.ApiVersionsRequest(), 0).api_keys}

    assert not {71, 72} & keys(world)
    world.stop()
    assert {71, 72} <= keys(world.restart(pykafkad_client_telemetry_enable="true"))
