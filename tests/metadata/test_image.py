"""The image: every kind of record, transactions, and the delta."""

from __future__ import annotations

from pykafkad.metadata import record_codec
from pykafkad.metadata.image import TYPE_TOPIC, Image
from pykafkad.wire import messages


def picture(*values):
    image = Image()
    for value in values:
        image.apply(record_codec.record(value))
    return image


def a_topic(name="a", letter=b"a"):
    return messages.TopicRecord(name=name, topic_id=letter * 16)


def a_partition(index=0, letter=b"a", **fields):
    return messages.PartitionRecord(
        partition_id=index,
        topic_id=letter * 16,
        replicas=[1],
        isr=[1],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        **fields,
    )


def test_offsets_count_every_record():
    image = picture(messages.NoOpRecord(), a_topic())
    assert image.offset == 1
    image.apply(record_codec.control_record(messages.LeaderChangeMessage()), 7, 3)
    assert (image.offset, image.epoch) == (7, 3)


def test_a_delta_is_taken_once():
    image = picture(a_topic(), a_partition(0), a_partition(1))
    delta = image.take_delta()
    assert [topic.name for topic in delta.topics_created] == ["a"]
    assert set(delta.partitions) == {("a", 0), ("a", 1)}
    assert not image.take_delta()
    image.apply(record_codec.record(messages.PartitionChangeRecord(partition_id=1, topic_id=b"a" * 16, leader=1)))
    assert set(image.take_delta().partitions) == {("a", 1)}


def test_a_topic_that_was_created_and_deleted_is_in_no_list():
    image = picture(
        a_topic(), a_partition(),
        messages.ConfigRecord(resource_type=TYPE_TOPIC, resource_name="a", name="retention.ms", value="1"),
        messages.RemoveTopicRecord(topic_id=b"a" * 16),
    )  # fmt: skip
    assert not image.take_delta()
    assert image.partition("a", 0) is None
    assert image.configs(TYPE_TOPIC, "a") == {}


def test_a_topic_that_was_created_again_is_in_both_lists():
    image = picture(a_topic(), a_partition())
    first = image.take_delta().topics_created[0]
    for value in (messages.RemoveTopicRecord(topic_id=b"a" * 16), a_topic("a", b"b"), a_partition(0, b"b")):
        image.apply(record_codec.record(value))
    delta = image.take_delta()
    assert delta.topics_deleted == [first]
    assert [topic.id for topic in delta.topics_created] == [b"b" * 16]
    assert image.topic_by_id(b"b" * 16) is image.topics["a"]


def test_partitions_are_found_by_topic_and_index():
    image = picture(a_topic(), a_partition())
    assert image.partition("a", 0).leader == 1
    assert image.partition("a", 1) is image.partition("a", -1) is image.partition("b", 0) is None


def test_equal_replica_lists_are_one_object():
    image = picture(a_topic(), a_partition(0), a_partition(1))
    first, second = image.topics["a"].partitions
    assert first.replicas is second.replicas is first.isr


def test_a_transaction_takes_effect_as_a_whole_or_never():
    """It takes effect at its end, or never when it is aborted (KIP-868)."""
    begin, end = messages.BeginTransactionRecord(), messages.EndTransactionRecord()
    image = picture(begin, a_topic(), a_partition())
    assert not image.topics
    assert image.offset == 2
    image.apply(record_codec.record(end))
    assert len(image.topics["a"].partitions) == 1
    image = picture(begin, a_topic(), messages.AbortTransactionRecord(), a_topic("b", b"b"), end)
    assert set(image.topics) == {"b"}
    assert image.transaction is None


def test_control_records_take_effect_inside_a_transaction():
    """The control records of a new leader are between the records of a transaction that the last leader began."""
    image = picture(messages.BeginTransactionRecord(), a_topic())
    image.apply(record_codec.control_record(messages.KRaftVersionRecord(k_raft_version=1)))
    assert image.features == {"kraft.version": 1}
    assert not image.topics


def test_brokers_are_registered_fenced_and_unregistered():
    endpoint = messages.RegisterBrokerRecord.BrokerEndpoint(name="P", host="h", port=9092)
    feature = messages.RegisterBrokerRecord.BrokerFeature(
        name="metadata.version", min_supported_version=7, max_supported_version=30
    )
    register = messages.RegisterBrokerRecord(
        broker_id=3,
        broker_epoch=5,
        end_points=[endpoint],
        features=[feature],
        rack="r",
        fenced=True,
        log_dirs=[b"d" * 16],
    )
    image = picture(register)
    broker = image.brokers[3]
    assert (broker.endpoints["P"].host, broker.features, broker.rack, broker.active) == (
        "h",
        {"metadata.version": (7, 30)},
        "r",
        False,
    )
    assert image.alive_brokers() == []
    change = messages.BrokerRegistrationChangeRecord
    for record, fenced in (
        (change(broker_id=3, fenced=-1, cordoned_log_dirs=[]), False),
        (change(broker_id=3, fenced=1), True),
        (messages.UnfenceBrokerRecord(id=3, epoch=5), False),
        (messages.FenceBrokerRecord(id=3, epoch=5), True),
        (change(broker_id=3, fenced=-1, log_dirs=[b"e" * 16], cordoned_log_dirs=[b"e" * 16]), False),
    ):
        image.apply(record_codec.record(record))
        assert image.brokers[3].fenced is fenced
    assert (broker.log_dirs, broker.cordoned_log_dirs) == ([b"e" * 16], [b"e" * 16])
    assert image.alive_brokers() == [broker]
    image.apply(record_codec.record(change(broker_id=3, in_controlled_shutdown=1)))
    assert not broker.active
    generation = image.brokers_generation
    image.apply(record_codec.record(messages.UnregisterBrokerRecord(broker_id=3, broker_epoch=5)))
    assert image.brokers == {}
    assert image.brokers_generation == generation + 1
    assert list(image.take_delta().brokers) == [3]


def test_records_of_access_quotas_and_credentials_are_kept():
    quota = messages.ClientQuotaRecord
    user = quota.EntityData(entity_type="user", entity_name=None)
    image = picture(
        quota(entity=[user], key="producer_byte_rate", value=5.0),
        messages.AccessControlEntryRecord(id=b"1" * 16, principal="User:a"),
        messages.UserScramCredentialRecord(name="u", mechanism=1, iterations=4096),
        messages.DelegationTokenRecord(token_id="t", owner="User:a"),
    )
    assert (
        len(image.client_quotas) == len(image.acls) == len(image.scram_credentials) == len(image.delegation_tokens) == 1
    )
    delta = image.take_delta()
    assert list(delta.others) == ["client_quotas", "scram_credentials", "delegation_tokens"]
    assert [(entry.principal, added) for entry, added in delta.acls] == [("User:a", True)]
    for value in (
        quota(entity=[user], key="producer_byte_rate", remove=True),
        messages.RemoveAccessControlEntryRecord(id=b"1" * 16),
        messages.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        messages.RemoveDelegationTokenRecord(token_id="t"),
    ):
        image.apply(record_codec.record(value))
    assert not image.client_quotas and not image.acls and not image.scram_credentials and not image.delegation_tokens


def test_entries_with_the_same_content_count_as_one():
    """No controller writes them, but a log may have them: the last to go takes the content with it. An id that is used
    again stands for its new content."""
    first, second = (
        messages.AccessControlEntryRecord(id=bytes([number]) * 16, principal="User:a") for number in (1, 2)
    )
    image = picture(first, second)
    assert len(image.acls) == 2 and list(image.acl_contents.values()) == [2]
    image.apply(record_codec.record(messages.RemoveAccessControlEntryRecord(id=first.id)))
    assert image.take_delta().acls == [(first, True)]
    other = messages.AccessControlEntryRecord(id=second.id, principal="User:b")
    image.apply(record_codec.record(other))
    assert image.take_delta().acls == [(second, False), (other, True)]
    image.apply(record_codec.record(messages.RemoveAccessControlEntryRecord(id=first.id)))
    assert not image.take_delta() and list(image.acl_contents.values()) == [1]


def test_eligible_leaders_are_cleared_for_one_topic_or_for_all():
    image = picture(
        a_topic(), a_partition(eligible_leader_replicas=[2], last_known_elr=[3]),
        a_topic("b", b"b"), a_partition(0, b"b", eligible_leader_replicas=[2]),
    )  # fmt: skip
    assert image.partition("a", 0).elr == (2,)
    image.apply(record_codec.record(messages.ClearElrRecord(topic_name="a")))
    assert (image.partition("a", 0).elr, image.partition("a", 0).last_known_elr, image.partition("b", 0).elr) == (
        (),
        (),
        (2,),
    )
    image.apply(record_codec.record(messages.ClearElrRecord(topic_name="")))
    assert image.partition("b", 0).elr == ()


def test_unknown_records_are_counted():
    image = Image()
    image.apply(record_codec.decode(None, b"\x01\x64\x00body"))
    assert (image.unknown_records, image.offset) == (1, 0)


def test_controllers_features_and_producer_ids_are_kept():
    endpoint = messages.RegisterControllerRecord.ControllerEndpoint(name="C", host="h", port=9093)
    image = picture(
        messages.RegisterControllerRecord(controller_id=4, end_points=[endpoint]),
        messages.FeatureLevelRecord(name="group.version", feature_level=1),
        messages.ProducerIdsRecord(broker_id=1, next_producer_id=3000),
    )
    assert image.controllers[4].endpoints["C"].port == 9093
    assert (image.features, image.next_producer_id, image.features_epoch()) == ({"group.version": 1}, 3000, 2)
    image.apply(record_codec.record(messages.FeatureLevelRecord(name="group.version", feature_level=0)))
    assert image.features == {}


def test_removing_an_unknown_setting_changes_nothing():
    image = picture(messages.ConfigRecord(resource_type=TYPE_TOPIC, resource_name="a", name="retention.ms", value=None))
    assert image.configs(TYPE_TOPIC, "a") == {}
