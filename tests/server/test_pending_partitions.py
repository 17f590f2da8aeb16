"""Logs of many new partitions are made in slices, one per turn; whoever asks for one that waits gets it at once."""

import errno

import pytest

from pykafkad import errors
from pykafkad.server.pending_partitions import AT_ONCE, BUDGET_SECONDS, PER_TURN, PendingPartitions
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World

COUNT = AT_ONCE + 5 * PER_TURN


@pytest.fixture
def world():
    made = World("/data", disk=MemoryDisk())
    yield made
    assert made.runtime.metrics.unexpected_errors == 0


def creation(name="t", partitions=COUNT):
    request = messages.CreateTopicsRequest
    return request(
        topics=[request.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)], timeout_ms=1000
    )


def growth(name, count):
    request = messages.CreatePartitionsRequest
    return request(topics=[request.CreatePartitionsTopic(name=name, count=count, assignments=None)], timeout_ms=1000)


def folders(world, name="t"):
    return sum(path.startswith(f"/data/{name}-") for path in world.disk.directories)


@pytest.mark.parametrize("grow", [False, True])
def test_no_turn_makes_more_than_its_share(world, grow):
    """The first few come with the change, then a slice each turn; the answer leaves when all are there."""
    peer = world.connect()
    if grow:
        world.create_topic("t", 1)
    began = int(grow)
    peer.send(growth("t", COUNT + 1) if grow else creation(), 3 if grow else 7)
    assert AT_ONCE + began <= folders(world) <= AT_ONCE + PER_TURN + began
    while not peer.answers:
        before = folders(world)
        assert before < COUNT + began
        world.turn()
        assert before < folders(world) <= before + PER_TURN
    assert folders(world) == COUNT + began == len(world.broker.partitions) and not world.broker.partitions.pending
    rows = peer.answers[0].results if grow else peer.answers[0].topics
    assert [row.error_code for row in rows] == [0]


def test_a_few_are_there_at_once(world):
    """No answer waits for a turn that it does not need."""
    assert world.connect().ask(creation(partitions=AT_ONCE), 7).topics[0].error_code == 0
    assert folders(world) == AT_ONCE


def test_who_asks_for_a_log_gets_it(world):
    """By name and by id, produced into, before its turn; it is made once."""
    world.connect().send(creation(), 7)
    topic_id = world.broker.image.topics["t"].id
    last, other = COUNT - 1, COUNT - 2
    assert f"/data/t-{last}" not in world.disk.directories
    peer = world.connect()
    answer = peer.ask(produce("t", {last: batch(b"x")}), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    log = world.broker.partitions.get("t", last)
    assert world.broker.partitions.get_by_id(topic_id, other) is world.broker.partitions.get("t", other)
    assert world.broker.partitions.get("t", COUNT) is world.broker.partitions.get_by_id(topic_id, COUNT) is None
    assert world.broker.partitions.get_by_id(bytes(16), 0) is None
    for _ in range(10):
        world.turn()
    assert world.broker.partitions.get("t", last) is log and log.end_offset == 1
    assert folders(world) == COUNT


def test_others_are_answered_meanwhile(world):
    """What makes no logs does not wait, a second creation waits for its own."""
    first, second, other = world.connect(), world.connect(), world.connect()
    first.send(creation("t"), 7)
    change = messages.IncrementalAlterConfigsRequest
    setting = change.AlterableConfig(name="retention.ms", config_operation=0, value="1000")
    asked = change(resources=[change.AlterConfigsResource(resource_type=2, resource_name="t", configs=[setting])])
    assert other.ask(asked, 1).responses[0].error_code == 0
    second.send(creation("u", PER_TURN), 7)
    while not first.answers:
        assert not second.answers
        world.turn()
    while not second.answers:
        world.turn()
    assert folders(world, "u") == PER_TURN
    # The setting came before the log.
    assert world.broker.partitions.get("t", COUNT - 1).settings.retention_ms == 1000


def test_a_topic_goes_before_its_logs_came(world):
    """Nothing is made of it any more, and who created it is answered nevertheless."""
    first = world.connect()
    first.send(creation(), 7)
    request = messages.DeleteTopicsRequest
    answer = world.connect().ask(request(topics=[request.DeleteTopicState(name="t")], timeout_ms=1000), 6)
    assert answer.responses[0].error_code == 0
    for _ in range(10):
        world.turn()
    assert first.answers[0].topics[0].error_code == 0
    assert len(world.broker.partitions) == 0 and f"/data/t-{COUNT - 1}" not in world.disk.directories
    world.create_topic("t", COUNT)
    assert len(world.broker.partitions) == COUNT


def test_a_stop_makes_the_rest(world):
    """A clean stop leaves all folders, and the answer."""
    peer = world.connect()
    peer.send(creation(), 7)
    world.stop()
    assert folders(world) == COUNT and not world.broker.partitions.pending
    world.disk.kill()
    again = world.restart()
    assert len(again.broker.partitions) == COUNT and not again.broker.partitions.pending


def test_a_kill_in_between_is_made_good_by_the_start(world):
    """The metadata has the partitions; the start makes what lacks."""
    world.connect().send(creation(), 7)
    world.disk.kill()
    again = world.restart()
    assert len(again.broker.partitions) == folders(again) == COUNT


def test_what_cannot_be_made_is_offline(world):
    """A full disk costs the partitions that it befell; the others, and the metadata, go on."""
    peer = world.connect()
    peer.send(creation(), 7)
    world.disk.fail("create directory", at=2, error=errno.ENOSPC)
    while not peer.answers:
        world.turn()
    assert peer.answers[0].topics[0].error_code == 0
    offline = [log.partition for log in world.broker.partitions if log.offline is not None]
    assert len(offline) == 1
    answer = peer.ask(produce("t", {offline[0]: batch(b"x"), offline[0] + 1: batch(b"x")}), 9)
    rows = answer.responses[0].partition_responses
    assert [row.error_code for row in rows] == [errors.KAFKA_STORAGE_ERROR, 0]
    world.create_topic("u", 1)


def test_answers_keep_their_order_in_time():
    """An answer leaves when those before it were made, whatever is added meanwhile."""
    planned, made, said = [], [], []
    pending = PendingPartitions(planned.append, lambda: 0.0, lambda topic, index: made.append((topic, index)))
    pending.after(lambda: said.append("none waits"))
    for index in range(PER_TURN + 1):
        pending.add("t", index)
    pending.after(lambda: said.append("t"))
    for index in range(PER_TURN):
        pending.add("u", index)
    pending.after(lambda: said.append("u"))
    assert said == ["none waits"] and len(planned) == 1
    pending.fired("")
    assert said == ["none waits"] and len(made) == PER_TURN and len(planned) == 2
    pending.fired("")
    assert said == ["none waits", "t"] and len(made) == 2 * PER_TURN
    pending.finish()
    assert said == ["none waits", "t", "u"] and len(made) == 2 * PER_TURN + 1


@pytest.mark.parametrize(("cost", "expected"), [(0.0, PER_TURN), (BUDGET_SECONDS / 3, 3), (1.0, 1)])
def test_a_slow_disk_gets_less_done(cost, expected):
    """A turn ends when its time is over, and makes at least one."""
    clock = [0.0]
    made = []

    def make(topic, index):
        made.append(index)
        clock[0] += cost

    pending = PendingPartitions(lambda key: None, lambda: clock[0], make)
    for index in range(2 * PER_TURN):
        pending.add("t", index)
    pending.fired("")
    assert made == list(range(expected))
    pending.finish()
    assert made == list(range(2 * PER_TURN))
