"""The controller: new and restarted clusters, topics, settings, producer ids."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.errors import ConfigError, KafkaError
from pykafkad.metadata import configs, controller as controller_module, creation, events, features, record_codec
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.image import TYPE_BROKER, TYPE_TOPIC
from pykafkad.wire import messages
from tests.metadata.cluster import DIRECTORY_ID, NODE_ID, Cluster

Request = messages.CreateTopicsRequest


def topic(name, partitions=1, replication_factor=1, assignments=(), **configs):
    return Request.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            Request.CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in assignments
        ],
        configs=[
            Request.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


def create(cluster, *topics, **fields):
    return cluster.submit(events.CreateTopics("token", list(topics), **fields)).topics


def codes(results):
    return {result.name: result.error_code for result in results}


# ---- the cluster


def test_a_new_cluster_begins_with_the_same_records_as_kafka():
    """Feature levels inside a metadata transaction, and the cluster-wide min.insync.replicas that ELR needs."""
    cluster = Cluster(min_insync_replicas="2")
    _, first = cluster.disk.batches[1]
    names = [type(record_codec.decode(*record).value).__name__ for record in first]
    assert names[0] == "BeginTransactionRecord"
    assert names[-2:] == ["EndTransactionRecord", "RegisterControllerRecord"]
    assert cluster.image.features == {
        "kraft.version": 1,
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert cluster.image.configs(TYPE_BROKER, "") == {"min.insync.replicas": "2"}


def test_no_feature_is_finalized_that_is_not_served():
    """Clients rely on what is finalized."""
    image = Cluster().image
    assert all(low <= image.features[name] <= high for name, (low, high) in features.SUPPORTED.items())


def with_feature(cluster, name, level):
    """The cluster's log, with one more feature level at its end."""
    feature = messages.FeatureLevelRecord(name=name, feature_level=level)
    cluster.disk.batches.append((1, [record_codec.encode(record_codec.record(feature))]))


@pytest.mark.parametrize(
    ("name", "level"),
    [("transaction.version", 3), ("metadata.version", 31), ("metadata.version", 6), ("new.version", 1)],
)
def test_a_cluster_with_unsupported_features_is_refused(name, level):
    """The error of the start names the unsupported features."""
    cluster = Cluster()
    with_feature(cluster, name, level)
    with pytest.raises(ConfigError, match=f"{name}={level}"):
        cluster.restart()


def test_a_new_cluster_has_the_features_of_a_new_kafka():
    """And keeps them when it starts again."""
    image = Cluster().restart().image
    assert image.finalized_features() == {
        "kraft.version": 1,
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_an_interrupted_bootstrap_is_aborted_and_written_again():
    """Records between Begin and a crash never take effect (KIP-868)."""
    cluster = Cluster()
    del cluster.disk.batches[1:]
    cut = [
        messages.BeginTransactionRecord(name="Bootstrap records"),
        messages.FeatureLevelRecord(name="metadata.version", feature_level=30),
    ]
    cluster.disk.batches.append((1, [record_codec.encode(record_codec.record(each)) for each in cut]))
    again = cluster.restart()
    names = [type(record_codec.decode(*record).value).__name__ for record in again.disk.batches[3][1]]
    assert names[:2] == ["AbortTransactionRecord", "BeginTransactionRecord"]
    assert again.image.features["metadata.version"] == 30
    assert again.image.transaction is None


def test_broker_epoch_is_the_offset_of_the_registration():
    cluster = Cluster()
    create(cluster, topic("a", 3))
    for clean in (True, False):
        again = cluster.restart(clean=clean)
        broker = again.image.brokers[NODE_ID]
        offset = broker.epoch
        records = [record for _, batch in again.disk.batches for record in batch]
        registration = record_codec.decode(*records[offset]).value
        assert type(registration).__name__ == "RegisterBrokerRecord"
        assert registration.fenced
        assert not broker.fenced


def test_leader_epochs_rise_only_after_an_unclean_stop():
    """After an unclean stop the offsets that clients have seen may hold other records. After a clean stop they
    cannot."""
    cluster = Cluster()
    create(cluster, topic("a", 2))
    clean = cluster.restart(clean=True)
    assert [state.leader_epoch for state in clean.image.topics["a"].partitions] == [0, 0]
    unclean = clean.restart(clean=False)
    # One epoch without a leader and one with it, as in Kafka.
    assert [(state.leader, state.leader_epoch) for state in unclean.image.topics["a"].partitions] == [(1, 2), (1, 2)]


def test_unfencing_needs_the_current_broker_epoch():
    """An event with an older broker epoch changes nothing, and neither does a repeated one."""
    cluster = Cluster()
    epoch = cluster.image.brokers[NODE_ID].epoch
    listener = Endpoint("PLAINTEXT", "localhost", 9092)
    cluster.submit(
        events.RegisterBroker(NODE_ID, b"c" * 16, [listener], [DIRECTORY_ID], rack="r", previous_broker_epoch=epoch)
    )
    assert cluster.image.brokers[NODE_ID].fenced
    assert cluster.image.brokers[NODE_ID].rack == "r"
    count = len(cluster.disk.batches)
    cluster.submit(events.UnfenceBroker(NODE_ID, epoch))
    cluster.submit(events.UnfenceBroker(7, epoch))
    assert len(cluster.disk.batches) == count
    cluster.submit(events.UnfenceBroker(NODE_ID, cluster.image.brokers[NODE_ID].epoch))
    assert not cluster.image.brokers[NODE_ID].fenced
    assert len(cluster.disk.batches) == count + 1


# ---- topics


def test_a_created_topic_has_its_id_partitions_and_settings():
    cluster = Cluster()
    (result,) = create(cluster, topic("a", 3, retention_ms="1000"))
    made = cluster.image.topics["a"]
    assert (result.error_code, result.num_partitions, result.replication_factor, result.topic_id) == (0, 3, 1, made.id)
    assert {config.name: config.config_source for config in result.configs}["retention.ms"] == 1
    assert [config.name for config in result.configs] == sorted(config.name for config in result.configs)
    assert [(state.index, state.replicas, state.isr, state.leader, state.directories) for state in made.partitions] == [
        (index, (1,), (1,), 1, (DIRECTORY_ID,)) for index in range(3)
    ]
    assert cluster.image.configs(TYPE_TOPIC, "a") == {"retention.ms": "1000"}
    assert cluster.delta.topics_created == [made]
    assert set(cluster.delta.partitions) == {("a", 0), ("a", 1), ("a", 2)}
    assert list(cluster.delta.configs) == [(TYPE_TOPIC, "a")]


def test_each_topic_has_its_own_error():
    """An invalid topic does not fail the others."""
    cluster = Cluster()
    create(cluster, topic("a"), topic("x.y_z"))
    results = create(
        cluster,
        topic("a"), topic(""), topic("a/b"), topic("x_y.z"), topic("p0", 0), topic("p-2", -2), topic("r0", 1, 0),
        topic("r2", 1, 2),
        topic("c1", nope="1"), topic("c2", retention_ms="x"), topic("c3", retention_ms=None), topic("good", -1, -1),
        topic("__cluster_metadata"),
    )  # fmt: skip
    assert codes(results) == {
        "a": errors.TOPIC_ALREADY_EXISTS,
        "": errors.INVALID_TOPIC_EXCEPTION,
        "a/b": errors.INVALID_TOPIC_EXCEPTION,
        "x_y.z": errors.INVALID_TOPIC_EXCEPTION,
        "p0": errors.INVALID_PARTITIONS,
        "p-2": errors.INVALID_PARTITIONS,
        "r0": errors.INVALID_REPLICATION_FACTOR,
        "r2": errors.INVALID_REPLICATION_FACTOR,
        "c1": errors.INVALID_CONFIG,
        "c2": errors.INVALID_CONFIG,
        "c3": errors.INVALID_CONFIG,
        "good": 0,
        # The metadata log has the folder of this name.
        "__cluster_metadata": errors.INVALID_TOPIC_EXCEPTION,
    }
    assert set(cluster.image.topics) == {"a", "x.y_z", "good"}
    assert len(cluster.image.topics["good"].partitions) == cluster.settings.num_partitions


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "assignments", "code"),
    [
        (-1, -1, [(0, [1]), (1, [1])], 0),
        (-1, -1, [(1, [1]), (0, [1])], 0),
        (2, -1, [(0, [1])], errors.INVALID_REQUEST),
        (-1, 1, [(0, [1])], errors.INVALID_REQUEST),
        (-1, -1, [(1, [1])], errors.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [1]), (0, [1])], errors.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [])], errors.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [2])], errors.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [1, 1])], errors.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_manual_assignments_are_checked(partitions, replication_factor, assignments, code):
    cluster = Cluster()
    (result,) = create(cluster, topic("a", partitions, replication_factor, assignments))
    assert result.error_code == code
    assert ("a" in cluster.image.topics) == (code == 0)


def test_manual_assignments_need_equally_many_replicas_and_an_active_broker():
    cluster = Cluster()
    for number, log_dir in ((2, b"e" * 16), (3, b"f" * 16)):
        cluster.submit(events.RegisterBroker(number, b"c" * 16, [], [log_dir]))
    (result,) = create(cluster, topic("a", -1, -1, [(0, [1, 2]), (1, [1])]))
    assert result.error_code == errors.INVALID_REPLICA_ASSIGNMENT
    assert "consistent" in result.error_message
    (result,) = create(cluster, topic("a", -1, -1, [(0, [2, 3])]))
    assert result.error_code == errors.INVALID_REPLICA_ASSIGNMENT
    assert "fenced" in result.error_message
    (result,) = create(cluster, topic("a", -1, -1, [(0, [2, 1])]))
    assert result.error_code == 0
    assert cluster.image.partition("a", 0).leader == 1
    assert cluster.image.partition("a", 0).isr == (1,)


def test_validating_creates_nothing():
    cluster = Cluster()
    count = len(cluster.disk.batches)
    (result,) = create(cluster, topic("a", 2), validate_only=True)
    assert (result.error_code, result.num_partitions) == (0, 2)
    assert len(cluster.disk.batches) == count
    assert not cluster.image.topics


def test_too_many_partitions_are_refused_as_a_whole():
    """The limits of a request are 10 000 partitions, and 10 000 records together with the records of the topics."""
    cluster = Cluster()
    results = create(cluster, topic("a", creation.MAX_PARTITIONS_PER_REQUEST), topic("b"))
    assert codes(results) == {"a": errors.POLICY_VIOLATION, "b": errors.POLICY_VIOLATION}
    assert {row.error_message for row in results} == {"Excessively large number of partitions per request."}
    results = create(cluster, topic("a", record_codec.MAX_RECORDS_PER_CHANGE), validate_only=True)
    assert codes(results) == {"a": errors.POLICY_VIOLATION}
    results = create(cluster, topic("a", record_codec.MAX_RECORDS_PER_CHANGE - 1), validate_only=True)
    assert codes(results) == {"a": 0}
    assert not cluster.image.topics


def test_values_that_do_not_fit_one_batch_are_refused_as_a_whole(monkeypatch):
    """The records of one change are written as one batch."""
    monkeypatch.setattr(record_codec, "MAX_CHANGE_BYTES", 20_000)
    cluster = Cluster()
    value = ",".join(["0:1"] * 1000)
    topics = [topic(f"t{number}", follower_replication_throttled_replicas=value) for number in range(5)]
    assert set(codes(create(cluster, *topics)).values()) == {errors.POLICY_VIOLATION}
    assert not cluster.image.topics
    assert set(codes(create(cluster, *topics[:3])).values()) == {0}

    def alter(count):
        name = "leader.replication.throttled.replicas"
        changes = [(TYPE_TOPIC, f"t{number}", [(name, 0, value * (number < 3))]) for number in range(count)]
        return {row.error_code for row in cluster.submit(events.AlterConfigs("t", changes, incremental=True)).responses}

    assert alter(3) == {0}
    create(cluster, topic("t3"), topic("t4"))
    monkeypatch.setattr(record_codec, "MAX_CHANGE_BYTES", 10_000)
    count = len(cluster.disk.batches)
    value += ",1:1"
    assert alter(5) == {errors.POLICY_VIOLATION}
    assert len(cluster.disk.batches) == count


def test_settings_beyond_the_limit_are_not_checked(monkeypatch):
    """A request that is refused as a whole costs no more than the largest one that is accepted."""
    cluster = Cluster()
    monkeypatch.setattr(record_codec, "MAX_RECORDS_PER_CHANGE", 10)
    checked = []
    real = configs.Alteration.resource
    monkeypatch.setattr(
        configs.Alteration, "resource", lambda self, *arguments: checked.append(arguments) or real(self, *arguments)
    )
    changes = [
        (configs.TYPE_GROUP, f"g{number}", [("consumer.session.timeout.ms", 0, "50000")]) for number in range(100)
    ]
    answer = cluster.submit(events.AlterConfigs("t", changes, incremental=True))
    assert [row.error_code for row in answer.responses] == [errors.POLICY_VIOLATION] * 100
    assert len(checked) == 11 and not any(kind == configs.TYPE_GROUP for kind, _ in cluster.image.all_configs())


def test_configs_are_returned_only_to_callers_that_may_see_them():
    cluster = Cluster()
    hidden, shown = create(cluster, topic("a"), topic("b"), describable=frozenset("b"))
    assert (hidden.topic_config_error_code, hidden.configs, hidden.num_partitions) == (
        errors.TOPIC_AUTHORIZATION_FAILED,
        [],
        -1,
    )
    assert (shown.topic_config_error_code, shown.num_partitions) == (0, 1)


def test_topics_are_created_automatically():
    """Client topics get the default settings, and internal topics their own. Existing and invalid names are ignored."""
    cluster = Cluster(num_partitions="4", offsets_topic_num_partitions="7", offsets_topic_replication_factor="3")
    create(cluster, topic("old"))
    cluster.submit(
        events.AutoCreateTopics(
            ["new", "old", "a/b", "new", "__consumer_offsets", "__transaction_state", "__share_group_state"]
        )
    )
    topics = cluster.image.topics
    assert {name: len(made.partitions) for name, made in topics.items()} == {
        "old": 1, "new": 4, "__consumer_offsets": 7, "__transaction_state": 50, "__share_group_state": 50,
    }  # fmt: skip
    assert topics["__consumer_offsets"].partitions[0].replicas == (1,)
    assert cluster.image.configs(TYPE_TOPIC, "__consumer_offsets") == {
        "cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600",
    }  # fmt: skip
    assert cluster.image.configs(TYPE_TOPIC, "__share_group_state") == {
        "cleanup.policy": "delete", "compression.type": "producer", "min.insync.replicas": "1", "retention.ms": "-1",
        "segment.bytes": "104857600",
    }  # fmt: skip
    assert not cluster.replies[1:]


def test_topics_are_deleted():
    cluster = Cluster()
    create(cluster, topic("a", 2, retention_ms="5"), topic("b"))
    first = cluster.image.topics["a"]
    response = cluster.submit(events.DeleteTopics("token", {first.id: "a", b"?" * 16: None}, refused=["refused"]))
    assert [(row.name, row.error_code) for row in response.responses[:2]] == [("a", 0), (None, errors.UNKNOWN_TOPIC_ID)]
    assert response.responses[2] == "refused"
    assert set(cluster.image.topics) == {"b"}
    assert cluster.image.topic_by_id(first.id) is None
    assert cluster.image.configs(TYPE_TOPIC, "a") == {}
    assert cluster.delta.topics_deleted == [first]
    (result,) = create(cluster, topic("a"))
    assert result.error_code == 0
    assert cluster.image.topics["a"].id != first.id


def test_a_deleted_name_no_longer_collides():
    cluster = Cluster()
    create(cluster, topic("a.b"))
    cluster.submit(events.DeleteTopics(None, {cluster.image.topics["a.b"].id: "a.b"}))
    # As in Kafka, the names in one request are not compared with each other.
    assert codes(create(cluster, topic("a_b"), topic("a.b"))) == {"a_b": 0, "a.b": 0}
    cluster.submit(events.DeleteTopics(None, {cluster.image.topics["a.b"].id: "a.b"}))
    assert codes(create(cluster, topic("a.b"))) == {"a.b": errors.INVALID_TOPIC_EXCEPTION}


def grow(cluster, name, count, assignments=None, **fields):
    part = messages.CreatePartitionsRequest
    rows = None if assignments is None else [part.CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    event = events.CreatePartitions(
        "token", [part.CreatePartitionsTopic(name=name, count=count, assignments=rows)], **fields
    )
    (row,) = cluster.submit(event).results
    return row.error_code


def test_topics_grow():
    cluster = Cluster()
    create(cluster, topic("a", 2))
    assert grow(cluster, "nope", 3) == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert grow(cluster, "a", 2) == errors.INVALID_PARTITIONS
    assert grow(cluster, "a", 1) == errors.INVALID_PARTITIONS
    assert grow(cluster, "a", 4, [[1]]) == errors.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, "a", 3, [[2]]) == errors.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, "a", 3, [[1, 1]]) == errors.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, "a", 1_000_000) == errors.POLICY_VIOLATION
    assert grow(cluster, "a", 5, validate_only=True) == 0
    assert len(cluster.image.topics["a"].partitions) == 2
    assert grow(cluster, "a", 4, [[1], [1]]) == 0
    assert grow(cluster, "a", 5) == 0
    assert [state.index for state in cluster.image.topics["a"].partitions] == [0, 1, 2, 3, 4]
    assert set(cluster.delta.partitions) == {("a", 4)}
    assert cluster.delta.topics_created == []


def test_growing_needs_an_active_broker():
    cluster = Cluster()
    create(cluster, topic("a"))
    cluster.image.brokers[NODE_ID].fenced = True
    assert grow(cluster, "a", 2) == errors.INVALID_REPLICATION_FACTOR


def test_growing_by_too_many_partitions_is_refused_as_a_whole():
    cluster = Cluster()
    create(cluster, topic("a"), topic("b"))
    part = messages.CreatePartitionsRequest
    topics = [part.CreatePartitionsTopic(name=name, count=6000, assignments=None) for name in "ab"]
    response = cluster.submit(events.CreatePartitions("token", topics))
    assert {row.error_code for row in response.results} == {errors.POLICY_VIOLATION}
    assert len(cluster.image.topics["a"].partitions) == 1


# ---- producer ids


def test_a_block_of_producer_ids_is_assigned_only_once():
    cluster = Cluster()
    epoch = cluster.image.brokers[1].epoch
    blocks = [cluster.submit(events.AllocateProducerIds("token", 1, epoch)) for _ in range(2)]
    again = cluster.restart()
    blocks.append(again.submit(events.AllocateProducerIds("token", 1, again.image.brokers[1].epoch)))
    assert [(each.producer_id_start, each.producer_id_len) for each in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]


def test_no_producer_ids_are_assigned_beyond_64_bits():
    cluster = Cluster()
    cluster.image.next_producer_id = controller_module.MAX_PRODUCER_ID - 5
    with pytest.raises(KafkaError):
        cluster.submit(events.AllocateProducerIds("token", 1, cluster.image.brokers[1].epoch))
