"""Snapshots while the broker serves, asked for as any client can: through the settings of the broker's resource."""

import pytest

from pykafkad import errors
from pykafkad.errors import StorageFailure
from pykafkad.metadata import events
from pykafkad.metadata.brokers import Endpoint
from pykafkad.server import run as process
from pykafkad.server.wiring import Process
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.log.numbered import fill, numbers, two_topics
from tests.simulation.world import NOTHING, World

BROKER = 4
SET, DELETE = 0, 1


def request(name, value, *, operation=SET, resource="1", more=(), validate_only=False):
    entry = messages.IncrementalAlterConfigsRequest.AlterableConfig
    configs = [entry(name=f"pykafkad.snapshot.{name}", config_operation=operation, value=value), *more]
    alter = messages.IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=BROKER, resource_name=resource, configs=configs
    )
    return messages.IncrementalAlterConfigsRequest(resources=[alter], validate_only=validate_only)


def act(world, name, value, **keywords):
    """(error code, message) of one action, after what it does beside the loop."""
    peer = world.connect()
    answer = peer.ask(request(name, value, **keywords), 1)
    if answer is NOTHING:
        world.runtime.offload.close()
        world.turn()
        (answer,) = peer.answers
    (row,) = answer.responses
    return row.error_code, row.error_message


def listed(world):
    resource = messages.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=["pykafkad.snapshots"]
    )
    (result,) = world.connect().ask(messages.DescribeConfigsRequest(resources=[resource]), 4).results
    ((name, value),) = [(row.name, row.value) for row in result.configs]
    assert name == "pykafkad.snapshots"
    return value


@pytest.fixture
def world(tmp_path):
    return two_topics(tmp_path / "data")


def test_one_topic_goes_back_and_the_others_go_on(world):
    assert act(world, "create", "one") == (0, None)
    fill(world, 10, 10)
    fill(world, 10, 10, "u")
    assert act(world, "restore", "one:t") == (0, None)
    assert (numbers(world), numbers(world, "u")) == (list(range(10)), list(range(20)))
    fill(world, 50, 2)
    assert numbers(world) == [*range(10), 50, 51]
    assert act(world, "restore", "one:t") == (0, None)
    assert numbers(world) == list(range(10)), "and again"
    world.stop()


def test_what_was_rewound_survives_a_kill(world, tmp_path):
    act(world, "create", "one")
    fill(world, 10, 10)
    act(world, "restore", "one:t")
    fill(world, 70, 2)
    (tmp_path / "data" / ".lock").unlink()
    assert numbers(World(tmp_path / "data")) == [*range(10), 70, 71]


def test_what_was_checkpointed_before_a_rewind_cuts_nothing_after_it(world, tmp_path):
    """The start that DeleteRecords gave the log lies behind its new end."""
    act(world, "create", "one")
    fill(world, 10, 20)
    world.broker.partitions.get("t", 0).delete_records(12)
    world.broker.partitions.get("t", 0).flush()
    world.broker.directory.checkpoint()
    act(world, "restore", "one:t")
    fill(world, 70, 2)
    (tmp_path / "data" / ".lock").unlink()
    log = World(tmp_path / "data").broker.partitions.get("t", 0)
    assert (log.log_start_offset, log.end_offset) == (0, 6)


@pytest.mark.parametrize("what", ["deletion", "another rewind", "failure"])
def test_a_rewind_that_something_overtakes_changes_nothing(world, tmp_path, what):
    """Its names are being synced beside the loop meanwhile."""
    act(world, "create", "one")
    fill(world, 10, 10)
    peer = world.connect()
    assert peer.ask(request("restore", "one:t"), 1) is NOTHING and numbers(world) == list(range(20))
    if what == "deletion":
        world.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        world.create_topic("t", 2)
    elif what == "failure":
        world.broker.partitions.get("t", 1).fail(StorageFailure("write", "t-1", "broken"))
    else:
        other = world.connect()
        assert other.ask(request("restore", "one:t"), 1) is NOTHING
    log = world.broker.partitions.get("t", 0)
    world.runtime.offload.close()
    world.turn()
    code = peer.answers[0].responses[0].error_code
    if what == "another rewind":
        assert code == 0 and other.answers[0].responses[0].error_code == errors.KAFKA_STORAGE_ERROR
        assert numbers(world) == list(range(10))
    else:
        assert code == errors.KAFKA_STORAGE_ERROR and world.broker.partitions.get("t", 0) is log
    assert world.runtime.metrics.unexpected_errors == 0
    world.advance(600)
    world.runtime.offload.close()
    assert not list((tmp_path / "data").glob("*.fresh.tmp")) and not list((tmp_path / "data").glob("*-delete"))


def test_what_is_appended_while_names_are_synced_goes_with_the_rest(world):
    act(world, "create", "one")
    peer = world.connect()
    assert peer.ask(request("restore", "one:t"), 1) is NOTHING
    fill(world, 10, 10)
    world.runtime.offload.close()
    world.turn()
    assert peer.answers and numbers(world) == list(range(10))


def test_readers_beyond_the_new_end_are_told_so(world):
    act(world, "create", "one")
    fill(world, 10, 10)
    waiting = world.connect()
    assert waiting.ask(fetch("t", {0: 10}, max_wait_ms=60_000), 11) is NOTHING
    act(world, "restore", "one:t")
    world.turn()
    assert waiting.answers[0].responses[0].partitions[0].error_code != 0
    answer = world.connect().ask(fetch("t", {0: 10}), 11)
    assert answer.responses[0].partitions[0].error_code == errors.OFFSET_OUT_OF_RANGE


def idempotent(world, sequence):
    """The error code of one idempotent batch."""
    records = batch(b"1", producer_id=9, producer_epoch=0, base_sequence=sequence)
    return world.connect().ask(produce("t", {0: records}), 8).responses[0].partition_responses[0].error_code


@pytest.mark.parametrize("everything", [True, False])
def test_a_producer_that_lives_on_is_ahead_of_the_snapshot_and_goes_on(world, everything):
    """Its next sequence is taken, whatever it is; from there on they are checked again."""
    assert [idempotent(world, sequence) for sequence in range(3)] == [0] * 3
    act(world, "create", "one")
    assert [idempotent(world, sequence) for sequence in range(3, 6)] == [0] * 3
    if everything:
        from pykafkad.log import snapshot_store

        world.stop()
        snapshot_store.begin_restore(world.runtime.disk, [world.path], "one")
        world = World(world.path)
    else:
        assert act(world, "restore", "one:t") == (0, None)
    assert world.broker.partitions.get("t", 0).end_offset == 5 + 3
    assert [idempotent(world, sequence) for sequence in (6, 7, 9)] == [0, 0, errors.OUT_OF_ORDER_SEQUENCE_NUMBER]


def test_a_partition_that_came_later_is_empty_and_a_new_topic_of_that_name_keeps_its_id(world):
    act(world, "create", "one")
    world.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    topic_id = world.create_topic("t", 3)
    world.connect().ask(produce("t", {2: batch(b"99")}), 8)
    assert act(world, "restore", "one:t") == (0, None)
    assert numbers(world) == list(range(10))
    assert world.broker.partitions.get("t", 2).end_offset == 0
    world.stop()
    again = World(world.path)
    assert again.broker.image.topics["t"].id == topic_id
    assert numbers(again) == list(range(10))


def test_who_waits_for_records_is_told_of_a_rewind(world):
    """At once, as what comes into the new log would not wake the wait."""
    act(world, "create", "one")
    peer = world.connect()
    peer.send(fetch("t", {0: 5}, max_wait_ms=60_000), 11)
    assert not peer.answers
    act(world, "restore", "one:t")
    world.turn()
    (answer,) = peer.answers
    assert answer.responses[0].partitions[0].error_code == 0


def test_what_has_no_leader_has_none_after_a_rewind(world):
    """As the broker was told to forget itself, nobody writes there."""
    act(world, "create", "one")
    fill(world, 10, 10)
    this = world.broker.node_id
    world.controller.metadata_log.submit(events.FenceBroker(this, world.broker.image.brokers[this].epoch))
    assert act(world, "restore", "one:t") == (0, None)
    assert world.broker.partitions.get("t", 0).end_offset == 5
    answer = world.connect().ask(produce("t", {0: batch(b"1")}), 8)
    assert answer.responses[0].partition_responses[0].error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert {log.topic for log in world.broker.partitions.not_led_here if log.closed} == set()
    world.controller.metadata_log.submit(events.UnfenceBroker(this, world.broker.image.brokers[this].epoch))
    fill(world, 50, 2)
    assert numbers(world) == [*range(10), 50, 51]


def test_a_topic_that_is_partly_another_brokers_is_not_rewound(world):
    """Half of it would be as it was."""
    world.controller.metadata_log.submit(
        events.RegisterBroker(2, b"i" * 16, [Endpoint("PLAINTEXT", "other", 9)], [b"d" * 16])
    )
    world.controller.metadata_log.submit(events.UnfenceBroker(2, world.broker.image.brokers[2].epoch))
    request = messages.CreateTopicsRequest
    assignments = [
        request.CreatableReplicaAssignment(partition_index=index, broker_ids=[index + 1]) for index in range(2)
    ]
    world.connect().ask(
        request(
            topics=[
                request.CreatableTopic(name="v", num_partitions=-1, replication_factor=-1, assignments=assignments)
            ],
            timeout_ms=1000,
        ),
        7,
    )
    assert act(world, "create", "one") == (0, None)
    code, words = act(world, "restore", "one:v")
    assert (code, "another broker's" in words) == (errors.KAFKA_STORAGE_ERROR, True)


def test_a_rewind_that_cannot_be_made_ready_changes_nothing(world, monkeypatch):
    """A link that fails on the second partition: both are as they were, and nothing of the try is left."""
    act(world, "create", "one")
    fill(world, 10, 10)
    disk = world.runtime.disk
    links = []

    def link(self, source, target):
        links.append(source)
        if "t-1" in source:
            raise StorageFailure("link", source, "no more")
        return original(self, source, target)

    original = type(disk).link
    monkeypatch.setattr(type(disk), "link", link)
    code, words = act(world, "restore", "one:t")
    assert (code, "no more" in words) == (errors.KAFKA_STORAGE_ERROR, True)
    assert any("t-0" in each for each in links)
    monkeypatch.undo()
    assert numbers(world) == list(range(20))
    fill(world, 20, 2)
    assert act(world, "restore", "one:t") == (0, None)
    assert numbers(world) == list(range(10))


def test_a_snapshot_is_clean_as_soon_as_it_is_synced(world, tmp_path):
    act(world, "create", "one")
    marker = tmp_path / "data.snapshots" / "one" / ".kafka_cleanshutdown"
    world.runtime.cpu_offload.close()
    assert marker.exists()


def test_the_list_and_deletion(world):
    assert listed(world) == ""
    for name in ("b", "a"):
        act(world, "create", name)
    assert listed(world) == "a,b"
    assert act(world, "delete", "a") == (0, None)
    assert listed(world) == "b"


def test_thousands_of_files_are_removed_beside_the_loop(world, tmp_path, monkeypatch):
    """Also when one is deleted, made and deleted again before the first is gone; and what a start finds left."""
    jobs = []
    monkeypatch.setattr(type(world.runtime.cpu_offload), "submit", lambda self, job, then: jobs.append((job, then)))
    for _ in range(2):
        act(world, "create", "a")
        assert act(world, "delete", "a") == (0, None)
    assert sorted(path.name for path in (tmp_path / "data.snapshots").iterdir()) == ["a.0.gone", "a.1.gone"]
    (tmp_path / "data.snapshots" / "b.partial" / "t-0").mkdir(parents=True)
    process.remove_leftovers(world.process)
    for job, then in jobs:
        try:
            then(job())
        except StorageFailure as failure:
            # The first deletion's job came before what the start found, which is the same.
            then(failure)
    assert list((tmp_path / "data.snapshots").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "keywords", "code", "words"),
    [
        ("create", "no good", {}, errors.INVALID_CONFIG, "ASCII letters"),
        ("create", "taken", {}, errors.INVALID_CONFIG, "already"),
        ("delete", "none", {}, errors.INVALID_CONFIG, "there are: taken"),
        ("restore", "none", {}, errors.INVALID_CONFIG, "there is no snapshot none"),
        ("restore", "taken:nowhere", {}, errors.UNKNOWN_TOPIC_OR_PARTITION, "no topic nowhere"),
        ("restore", "none:t", {}, errors.INVALID_CONFIG, "there is no snapshot none"),
        ("forget", "taken", {}, errors.INVALID_CONFIG, "pykafkad.snapshot.create"),
        ("create", None, {"operation": DELETE}, errors.INVALID_CONFIG, "only SET"),
        (
            "create",
            "x",
            {"more": [messages.IncrementalAlterConfigsRequest.AlterableConfig(name="log.retention.ms", value="1")]},
            errors.INVALID_REQUEST,
            "alone",
        ),
        ("create", "x", {"resource": "7"}, errors.INVALID_REQUEST, "Unexpected broker id"),
    ],
)
def test_refusals(world, name, value, keywords, code, words):
    act(world, "create", "taken")
    error_code, message = act(world, name, value, **keywords)
    assert error_code == code and words in message
    assert listed(world) == "taken"


def test_a_directory_without_the_snapshot_keeps_everything_where_it_is(world, tmp_path):
    """Half a way back would be two states at once, and no start could finish it."""
    act(world, "create", "one")
    fill(world, 10, 10)
    world.stop()
    world = World(world.path, more_directories=[str(tmp_path / "later")])
    code, words = act(world, "restore", "one")
    assert code == errors.INVALID_CONFIG and f"has nothing of {tmp_path / 'later'}" in words
    world.broker.directories.failed[str(tmp_path / "later")] = StorageFailure("read", str(tmp_path / "later"), "gone")
    code, words = act(world, "restore", "one")
    assert code == errors.KAFKA_STORAGE_ERROR and "out of service" in words
    assert world.runtime.stopping is None and numbers(world) == list(range(20))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: (path / "meta.properties").unlink(), "no meta.properties"),
        (lambda path: (path / "meta.properties").write_bytes(b""), "no meta.properties"),
        (
            lambda path: (path / "meta.properties").write_text("version=1\ncluster.id=other\ndirectory.id=x\n"),
            "no meta.properties",
        ),
        (lambda path: (path / "__cluster_metadata-0").rename(path / "gone"), "no metadata log"),
    ],
)
def test_a_folder_from_which_nobody_could_start_is_not_gone_back_to(world, tmp_path, spoil, words):
    """The data would be away, and the broker not there."""
    act(world, "create", "one")
    spoil(tmp_path / "data.snapshots" / "one")
    code, said = act(world, "restore", "one")
    assert code == errors.INVALID_CONFIG and words in said
    assert world.runtime.stopping is None and numbers(world) == list(range(10))


def test_without_room_or_a_metadata_log_nothing_begins(world, monkeypatch):
    """The broker would stop, and could neither go back nor start again."""
    act(world, "create", "one")
    with monkeypatch.context() as full:
        full.setattr(type(world.disk), "usage", lambda self, path: (1 << 40, 100_000))
        code, words = act(world, "restore", "one")
    assert code == errors.KAFKA_STORAGE_ERROR and "make room first" in words
    world.broker.directory.logs["__cluster_metadata", 0].fail(StorageFailure("write", "x", "No space left on device"))
    code, words = act(world, "restore", "one")
    assert code == errors.KAFKA_STORAGE_ERROR and "restart the broker first" in words
    assert world.runtime.stopping is None and numbers(world) == list(range(10))


@pytest.mark.long
def test_a_node_whose_place_another_takes_leaves_no_memory_behind(monkeypatch, tmp_path, frozen_anew):
    """What is frozen for the collector at a start is garbage after the stop that goes back."""
    import gc
    import weakref

    first = World(tmp_path / "data")
    gone = weakref.ref(first.broker)
    gc.freeze()
    first.stop()
    first = None
    second = World(tmp_path / "data")
    monkeypatch.setattr(Process, "start", lambda *_, **__: None)
    process._start(second.process, [], (), (), None)
    assert gone() is None


def test_a_topic_that_came_later_keeps_its_records(world):
    """Emptied it would be neither as it was nor as anybody wants it."""
    act(world, "create", "one")
    world.create_topic("later", 2)
    fill(world, 0, 4, "later")
    code, words = act(world, "restore", "one:later")
    assert code == errors.INVALID_CONFIG and "nothing of later" in words
    assert numbers(world, "later") == list(range(4))


def test_an_action_is_not_taken_for_a_setting(world):
    """AlterConfigs, which older clients send, and the resource of all brokers would store it, and say that it is
    done."""
    code, words = act(world, "create", "one", resource="")
    assert code == errors.INVALID_REQUEST and "IncrementalAlterConfigs" in words
    entry = messages.AlterConfigsRequest.AlterableConfig(name="pykafkad.snapshot.create", value="one")
    alter = messages.AlterConfigsRequest.AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[entry])
    (row,) = world.connect().ask(messages.AlterConfigsRequest(resources=[alter]), 1).responses
    assert row.error_code == errors.INVALID_REQUEST and "IncrementalAlterConfigs" in row.error_message
    assert listed(world) == ""


def test_validate_only_does_nothing(world):
    assert act(world, "create", "one", validate_only=True) == (0, None)
    assert listed(world) == ""


def test_the_offsets_topic_goes_back_only_with_everything(world):
    world.connect().ask(messages.FindCoordinatorRequest(key="g", key_type=0), 2)
    world.advance(1)
    act(world, "create", "one")
    code, words = act(world, "restore", "one:__consumer_offsets")
    assert code == errors.INVALID_CONFIG and "everything" in words


@pytest.mark.parametrize(
    ("name", "value"), [("delete", "one"), ("create", "two"), ("restore", "zero"), ("restore", "one:t")]
)
def test_no_other_action_while_a_way_back_has_begun(world, name, value):
    """A broker that stops still serves: what deleted the snapshot then left it with no data at all."""
    act(world, "create", "zero")
    act(world, "create", "one")
    world.connect().send(request("restore", "one"), 1)
    code, words = act(world, name, value)
    assert code == errors.INVALID_REQUEST and "stops to go back to the snapshot one" in words
    assert world.broker.data_snapshots.restore_to == "one" and world.broker.data_snapshots.names() == ["one", "zero"]


def test_everything_goes_back_with_a_stop_and_the_next_node_answers(world, monkeypatch):
    """The request is parked, the loop ends, and who asked is answered on its connection by the node that serves
    then."""
    act(world, "create", "one")
    fill(world, 10, 10)
    peer = world.connect()
    assert peer.ask(request("restore", "one"), 1) is NOTHING
    runtime = world.runtime
    assert runtime.stopping == "going back to the snapshot one"
    handed = []
    world.broker.socket_server.hand_over = lambda connection: handed.append(connection) or "socket"
    runtime.run = lambda: None
    handed_over = process._serve(world.process)
    (asking,) = [each for each in handed_over.connections if each.context is not None]
    assert peer.connection in handed and asking.socket == "socket" and asking.context.connection is peer.connection
    handed_over.connections = [asking]
    from pykafkad.log import snapshot_store

    snapshot_store.begin_restore(runtime.disk, [world.path], "one")
    again = World(world.path)
    new = again.connect()
    new.expected.append((messages.IncrementalAlterConfigsResponse, 1, True))
    with monkeypatch.context() as patched:
        patched.setattr(again.broker.socket_server, "adopt", lambda socket, listener: new.connection)
        again.broker.data_snapshots.take_over(handed_over)
    again.turn()
    assert [(row.error_code, row.resource_name) for row in new.answers[0].responses] == [(0, "1")]
    assert numbers(again) == list(range(10))


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_before_the_way_back_began_ends_the_broker(world, monkeypatch, name):
    """Both in one turn: who serves afterwards would never hear of the signal."""
    import signal

    from pykafkad.log import snapshot_store

    handlers = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_DFL)
    monkeypatch.setattr(process, "_process", lambda *_: world.process)
    monkeypatch.setattr(process, "_start", lambda *_: None)
    monkeypatch.setattr(process, "tell_ready", lambda *_: None)
    monkeypatch.setattr(snapshot_store, "begin_restore", lambda *_: pytest.fail("it goes back all the same"))
    act(world, "create", "one")

    def serve(node):
        number = getattr(signal, name)
        handlers[number](number, None)
        assert world.connect().ask(request("restore", "one"), 1) is NOTHING

    monkeypatch.setattr(process, "_serve", serve)
    assert process.run(world.broker.settings, data_directories=[world.path], topics=[], ready_file=None) == 0
