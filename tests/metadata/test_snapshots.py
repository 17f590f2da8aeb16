"""Snapshots of the metadata: their content while the image changes, their form, and damaged files."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given, settings, strategies as st

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import events, record_codec, snapshots
from pykafkad.metadata.image import TYPE_TOPIC, Image
from pykafkad.metadata.voters import Voter
from pykafkad.wire import messages
from pykafkad.wire.batch import parse_header
from tests.metadata.cluster import DIRECTORY_ID, NODE_ID, Cluster, facts
from tests.metadata.test_controller import create, topic
from tests.metadata.test_registrations import append, stopped_by_kafka, with_other_broker
from tests.metadata.test_replay import ALTER, CREATE, DELETE_TOPIC, GROW, OTHERS, perform
from tests.seeds import examples


def content_of(image):
    """The file of a snapshot that is written without a pause."""
    writing = snapshots.Writing(image, 123, 456)
    content = b"".join(writing.pieces())
    writing.close()
    return content


def loaded(content, end_offset, epoch):
    image = Image()
    for record in snapshots.read(content):
        image.apply(record, end_offset - 1, epoch)
    return image


def same(image, content, end_offset, epoch):
    assert facts(loaded(content, end_offset, epoch)) == facts(image)


def test_file_names_equal_kafkas():
    assert snapshots.file_name(35, 1) == "00000000000000000035-0000000001.checkpoint"
    assert snapshots.parse_name("00000000000000000035-0000000001.checkpoint") == (35, 1)
    others = [
        "bootstrap.checkpoint",
        "00000000000000000035-0000000001-new.checkpoint.part",
        "00000000000000000035-0000000001.checkpoint.deleted",
        "00000000000000000035.log",
        "35-1.checkpoint",
        "0000000000000000003x-0000000001.checkpoint",
    ]
    assert snapshots.listed([*others, snapshots.file_name(7, 2), snapshots.file_name(0, 0)]) == [(0, 0), (7, 2)]


def test_every_kind_of_record_survives_a_snapshot():
    cluster = Cluster()
    create(cluster, topic("a", 3, retention_ms="1000"))
    create(cluster, topic("b.c", 1))
    stopped_by_kafka(cluster, "a")
    with_other_broker(cluster)
    quota = messages.ClientQuotaRecord
    append(
        cluster,
        messages.UserScramCredentialRecord(
            name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        ),
        messages.AccessControlEntryRecord(
            id=b"a" * 16,
            resource_type=2,
            resource_name="a",
            pattern_type=3,
            principal="User:u",
            host="*",
            operation=3,
            permission_type=3,
        ),
        quota(entity=[quota.EntityData(entity_type="user", entity_name=None)], key="producer_byte_rate", value=1.5),
        messages.DelegationTokenRecord(
            owner="User:u",
            requester="User:u",
            renewers=["User:r"],
            issue_timestamp=1,
            max_timestamp=2,
            expiration_timestamp=3,
            token_id="t",
        ),
        messages.ProducerIdsRecord(broker_id=1, broker_epoch=5, next_producer_id=3000),
        messages.FeatureLevelRecord(name="group.version", feature_level=1),
    )
    same(cluster.image, content_of(cluster.image), cluster.image.offset + 1, cluster.image.epoch)


@settings(max_examples=examples(25), deadline=None)
@given(
    steps=st.lists(st.one_of(CREATE, DELETE_TOPIC, GROW, ALTER, OTHERS), max_size=12),
    meanwhile=st.lists(st.one_of(CREATE, DELETE_TOPIC, GROW, ALTER), max_size=12),
    every=st.integers(1, 4),
)
def test_a_snapshot_shows_one_offset_while_the_image_changes(steps, meanwhile, every):
    """The content does not depend on changes that happen between two pieces of the file."""
    cluster = Cluster(offsets_topic_num_partitions="3")
    for step in steps:
        cluster = perform(cluster, step)
    before, end_offset, epoch = deepcopy(facts(cluster.image)), cluster.image.offset + 1, cluster.image.epoch
    records_per_step, snapshots.RECORDS_PER_STEP = snapshots.RECORDS_PER_STEP, every
    try:
        writing = snapshots.Writing(cluster.image, 0, 0)
        pieces = []
        for piece in writing.pieces():
            pieces.append(piece)
            if meanwhile:
                cluster = perform(cluster, meanwhile.pop())
    finally:
        snapshots.RECORDS_PER_STEP = records_per_step
    writing.close()
    assert cluster.image.before_change is None
    assert facts(loaded(b"".join(pieces), end_offset, epoch)) == before


def test_partitions_that_change_meanwhile_are_written_in_their_old_state():
    """After the first piece a leader fails, an ELR is cleared, a topic grows and another is deleted."""
    cluster = Cluster()
    create(cluster, topic("a", 3))
    create(cluster, topic("z", 2))
    with_other_broker(cluster)
    before, end_offset = deepcopy(facts(cluster.image)), cluster.image.offset + 1
    writing = snapshots.Writing(cluster.image, 0, 0)
    pieces = writing.pieces()
    content = next(pieces)
    stopped_by_kafka(cluster, "a")
    stopped_by_kafka(cluster, "two")
    append(cluster, messages.ClearElrRecord())
    cluster.submit(
        events.CreatePartitions(
            "t", [messages.CreatePartitionsRequest.CreatePartitionsTopic(name="z", count=4, assignments=None)]
        )
    )
    cluster.submit(events.DeleteTopics("t", {cluster.image.topics["z"].id: "z"}))
    content += b"".join(pieces)
    assert facts(loaded(content, end_offset, cluster.image.epoch)) == before


def test_the_work_of_one_step_is_bounded(monkeypatch):
    """A step encodes a limited number of records and of bytes."""
    cluster = Cluster()
    create(cluster, topic("a", 5 * snapshots.RECORDS_PER_STEP))
    encoded = []
    encode = record_codec.encode
    monkeypatch.setattr(record_codec, "encode", lambda *record: encoded.append(1) or encode(*record))
    monkeypatch.setattr(snapshots, "_PIECE_BYTES", 5000)
    counts = []
    sizes = []
    for piece in snapshots.Writing(cluster.image, 0, 0).pieces():
        counts.append(len(encoded))
        sizes.append(len(piece))
        encoded.clear()
    assert max(counts) == snapshots.RECORDS_PER_STEP
    assert max(sizes) == 5000


@pytest.mark.parametrize("batch_bytes", [1, 5000, 10**6])
def test_data_batches_are_filled_up_to_a_limit(monkeypatch, batch_bytes):
    """Offsets continue from batch to batch. Kafka's shell shows only the first data batch, so batches are long."""
    monkeypatch.setattr(snapshots, "BATCH_BYTES", batch_bytes)
    cluster = Cluster()
    create(cluster, topic("a", 300))
    content = content_of(cluster.image)
    headers = []
    position = 0
    while position < len(content):
        headers.append(parse_header(content, position))
        position += headers[-1].size_bytes
    assert [header.is_control for header in headers] == [True, *[False] * (len(headers) - 2), True]
    assert [header.base_offset for header in headers[1:]] == [header.end_offset for header in headers[:-1]]
    assert all(header.size_bytes < batch_bytes + 1000 for header in headers)
    assert (len(headers) == 3) == (batch_bytes == 10**6)
    same(cluster.image, content, cluster.image.offset + 1, cluster.image.epoch)


def test_a_snapshot_has_header_quorum_records_features_and_footer():
    """The header has the time of the last record."""
    cluster = Cluster()
    content = content_of(cluster.image)
    names = [type(record.value).__name__ for record in snapshots.read(content)]
    assert names[:4] == ["SnapshotHeaderRecord", "KRaftVersionRecord", "VotersRecord", "FeatureLevelRecord"]
    assert names[-1] == "SnapshotFooterRecord"
    records = list(snapshots.read(content))
    assert records[3].value.name == "metadata.version", "whoever reads it must know the version first"
    assert snapshots.last_timestamp_ms(content) == 123
    assert parse_header(content).leader_epoch == cluster.image.epoch
    assert snapshots.last_timestamp_ms(b"broken") == 0


def test_a_snapshot_of_kraft_version_0_has_no_voters():
    """The voters are in the settings of every node, not in the log."""
    cluster = Cluster()
    cluster.image.kraft_version = 0
    names = [type(record.value).__name__ for record in snapshots.read(content_of(cluster.image))]
    assert names[1] == "FeatureLevelRecord"


def test_formatting_writes_a_snapshot_with_the_voters():
    image = loaded(snapshots.voters_only([Voter(NODE_ID, DIRECTORY_ID, [])], 5), 0, 0)
    assert (image.offset, image.kraft_version, [voter.id for voter in image.voters]) == (-1, 1, [NODE_ID])
    levels = [record.value for record in snapshots.read(snapshots.bootstrap(5)) if not record_codec.is_control(record)]
    assert [(level.name, level.feature_level) for level in levels] == [
        ("metadata.version", 30),
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("share.version", 1),
        ("streams.version", 1),
        ("transaction.version", 2),
    ]


@pytest.mark.parametrize("damage", ["cut", "short", "flipped", "empty", "no footer"])
def test_a_damaged_snapshot_is_an_error(damage):
    cluster = Cluster()
    create(cluster, topic("a", 3))
    content = content_of(cluster.image)
    footer = parse_header(snapshots.voters_only([], 0)).size_bytes
    broken = {
        "cut": content[:-1],
        "short": content[: -len(content) + 20],
        "flipped": content[:300] + bytes([content[300] ^ 1]) + content[301:],
        "empty": b"",
        "no footer": snapshots.voters_only([], 0)[:footer],
    }[damage]
    with pytest.raises(KafkaError) as raised:
        list(snapshots.read(broken))
    assert raised.value.code == errors.CORRUPT_MESSAGE


def test_a_setting_that_is_set_and_removed_is_not_in_the_snapshot():
    cluster = Cluster()
    create(cluster, topic("a", 1, retention_ms="1000"))
    append(cluster, messages.ConfigRecord(resource_type=TYPE_TOPIC, resource_name="a", name="retention.ms", value=None))
    assert (TYPE_TOPIC, "a") not in cluster.image.all_configs()
    same(cluster.image, content_of(cluster.image), cluster.image.offset + 1, cluster.image.epoch)


def test_settings_that_change_meanwhile_are_written_with_their_old_values():
    cluster = Cluster()
    create(cluster, topic("a", 1, retention_ms="1000"), topic("b", 1, retention_ms="1"))
    before, end_offset = deepcopy(facts(cluster.image)), cluster.image.offset + 1
    writing = snapshots.Writing(cluster.image, 0, 0)
    pieces = writing.pieces()
    content = next(pieces)
    config = messages.ConfigRecord
    append(cluster, config(resource_type=TYPE_TOPIC, resource_name="a", name="retention.ms", value="2000"))
    append(cluster, config(resource_type=TYPE_TOPIC, resource_name="a", name="flush.ms", value="5"))
    append(cluster, config(resource_type=TYPE_TOPIC, resource_name="b", name="retention.ms", value=None))
    content += b"".join(pieces)
    assert facts(loaded(content, end_offset, cluster.image.epoch)) == before
