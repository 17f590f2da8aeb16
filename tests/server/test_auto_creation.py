"""Topics that a request creates by asking for them come in slices, one per turn of the loop."""

import pytest

from pykafkad.server import auto_creation
from pykafkad.wire import messages
from tests.simulation.world import World


def ask(world, names):
    topics = [messages.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    world.connect().ask(messages.MetadataRequest(topics=topics, allow_auto_topic_creation=True), 12)


@pytest.mark.parametrize("partitions, most", [(1, 16), (5, 3), (40, 1)])
def test_no_turn_creates_more_than_its_share(tmp_path, monkeypatch, partitions, most):
    world = World(tmp_path / "data", num_partitions=partitions)
    counts = []
    real = world.broker.partitions.apply
    monkeypatch.setattr(
        type(world.broker.partitions),
        "apply",
        lambda self, delta, image, **how: counts.append(len(delta.topics_created)) or real(delta, image, **how),
    )
    names = [f"t{number}" for number in range(20)]
    ask(world, names)
    for _ in range(20):
        before = len(counts)
        world.turn()
        assert len(counts) <= before + 1, "one slice per turn"
    assert max(counts) == most and set(names) == set(world.broker.image.topics)


def test_one_topic_is_there_at_once(tmp_path):
    world = World(tmp_path / "data")
    ask(world, ["t"])
    assert "t" in world.broker.image.topics


def test_what_waits_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(auto_creation, "MAX_WAITING", 30)
    world = World(tmp_path / "data")
    ask(world, [f"t{number}" for number in range(100)])
    for _ in range(10):
        world.turn()
    assert len(world.broker.image.topics) == 30
