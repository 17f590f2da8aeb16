"""UnregisterController: a controller that is gone, unknown ids, the active one, and an older cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad import errors
from pykafkad.effects import Append
from pykafkad.handlers import unregister_controller
from pykafkad.metadata import record_codec
from pykafkad.metadata.features import METADATA_VERSION
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.simulation.world import World

Request = messages.UnregisterControllerRequest
GONE = 9


@pytest.fixture
def cluster() -> Cluster:
    """With a controller that is gone, at the level of Kafka 4.4."""
    cluster = Cluster()
    cluster.image.features[METADATA_VERSION] = 33
    record = messages.RegisterControllerRecord(controller_id=GONE)
    cluster.perform([Append(record_codec.LOG, [record_codec.record(record)])])
    return cluster


def test_a_controller_is_unregistered(cluster: Cluster) -> None:
    answer = ask(cluster, unregister_controller, Request(controller_id=GONE), 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    assert GONE not in cluster.image.controllers
    again = ask(cluster, unregister_controller, Request(controller_id=GONE), 0)
    assert again.error_code == errors.CONTROLLER_ID_NOT_REGISTERED


@pytest.mark.parametrize(
    ("controller_id", "code", "text"),
    [
        (7, errors.CONTROLLER_ID_NOT_REGISTERED, "Controller ID 7 is not currently registered."),
        (1, errors.INVALID_REQUEST, "Controller cannot unregister itself while it is active."),
    ],
)
def test_what_is_refused(cluster: Cluster, controller_id: int, code: int, text: str) -> None:
    answer = ask(cluster, unregister_controller, Request(controller_id=controller_id), 0)
    assert (answer.error_code, answer.error_message) == (code, text)
    assert GONE in cluster.image.controllers


def test_an_older_cluster_has_no_record_for_it(cluster: Cluster) -> None:
    cluster.image.features[METADATA_VERSION] = 32
    answer = ask(cluster, unregister_controller, Request(controller_id=GONE), 0)
    assert answer.error_code == errors.UNSUPPORTED_VERSION and "too old" in answer.error_message


def test_a_caller_without_permission_is_refused(cluster: Cluster) -> None:
    denied = {("Alter", "Cluster", "kafka-cluster")}
    answer = ask(cluster, unregister_controller, Request(controller_id=GONE), 0, denied=denied)
    assert answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    assert GONE in cluster.image.controllers


def test_it_is_remembered(cluster: Cluster) -> None:
    """The record is written, and read again at the next start."""
    ask(cluster, unregister_controller, Request(controller_id=GONE), 0)
    written = [record_codec.decode(*each).value for _, batch in cluster.disk.batches for each in batch]
    assert messages.UnregisterControllerRecord(controller_id=GONE) in written


def test_only_kafka_4_4_has_it(tmp_path: Path) -> None:
    assert World(tmp_path / "new", pykafkad_act_as="4.4").connect().ask(Request(controller_id=7), 0).error_code == (
        errors.CONTROLLER_ID_NOT_REGISTERED
    )
    peer = World(tmp_path / "data").connect()
    peer.send(Request(controller_id=7), 0)
    assert "is not answered here" in peer.closed
