"""What one tenant holds, and what every API of another one says: unmistakable names in the first, all of its bytes
looked for in the second's answers, log lines, trace and metrics; and the first untouched by all that was asked."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from pykafkad import uuids
from pykafkad.handlers import table
from pykafkad.testing import Broker, NewRecord, Tenants
from pykafkad.testing.waits import until
from pykafkad.wire import messages
from tests.handlers import authorization_walk as walk
from tests.testing.any_request import AnyClient

pytestmark = pytest.mark.epoll

MARK = "zq.x"
"""With a dot, which no id holds, whatever is drawn for it."""

SECONDS = 60
SHARE_STATE_KEY = b"\x00\x0f"
KINDS, SESSIONS = ("consumer", "share"), ("session.", "max.session.")
APIS = [row for row in table.ROWS if table.BROKER_LISTENER in row.listeners and row.max_version is not None]


class Marked:
    """A tenant full of names that nobody else would think of."""

    def __init__(self, tenants: Tenants) -> None:
        self.broker = broker = tenants.add(
            "acme",
            topics={f"{MARK}-topic": 2, walk.TOPIC: 3},
            users={f"{MARK}-user": f"{MARK}-password"},
            acls=[f"{MARK}-user read topic {MARK}-acl", "any read,write,describe topic *"],
            # Nobody leaves a group meanwhile, however slow the machine is.
            settings={f"group.{kind}.{name}timeout.ms": 3_600_000 for kind in KINDS for name in SESSIONS},
        )
        broker.produce(f"{MARK}-topic", NewRecord(f"{MARK}-value", f"{MARK}-key", headers=[(f"{MARK}-header", b"1")]))
        broker.produce(walk.TOPIC, f"{MARK}-value")
        broker.commit(f"{MARK}-group", {(f"{MARK}-topic", 0): 1})
        broker.commit(walk.GROUP, {(walk.TOPIC, 0): 1})
        self._ask_more()
        image = broker._running.call(lambda: broker._running._process.controller.image)
        self.topic_ids = {topic.name: topic.id for topic in image.topics.values()}
        process = broker._running._process
        texts = [process.broker.cluster_id, process.directories.metadata.meta["directory.id"]]
        self.ids = [each.encode() for each in texts] + [uuids.from_text(texts[1]), *self.topic_ids.values()]

    def _ask_more(self) -> None:
        """What the test's own calls do not make: a quota, a setting, a transactional id, members of groups."""
        host, _, port = self.broker._running.control.rpartition(":")
        client = AnyClient(self.broker, f"{MARK}-client")
        client._address = host, int(port)
        quotas = messages.AlterClientQuotasRequest
        entity = quotas.EntityData(entity_type="client-id", entity_name=f"{MARK}-client")
        op = quotas.OpData(key="producer_byte_rate", value=1e9)
        assert not client.answer(quotas(entries=[quotas.EntryData(entity=[entity], ops=[op])]), 1).entries[0].error_code
        configs = messages.IncrementalAlterConfigsRequest
        setting = configs.AlterableConfig(name="retention.ms", config_operation=0, value="77777")
        for kind, name in ((2, f"{MARK}-topic"), (16, f"{MARK}-subscription")):
            if kind == 16:
                setting.name, setting.value = "metrics", f"{MARK}.metric"
            changed = configs(
                resources=[configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[setting])]
            )
            assert not client.answer(changed, 1).responses[0].error_code
        client.answer(messages.FindCoordinatorRequest(key_type=1, coordinator_keys=[f"{MARK}-txn"]), 4)
        for name in (f"{MARK}-txn", walk.TRANSACTIONAL_ID):
            request = messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
            until(lambda request=request: client.answer(request, 4), lambda one: not one.error_code, name, SECONDS)
        heartbeat = messages.ConsumerGroupHeartbeatRequest(
            group_id=f"{MARK}-members", member_id="A" * 22, member_epoch=0, rebalance_timeout_ms=600_000,
            subscribed_topic_names=[f"{MARK}-topic"], topic_partitions=[],
        )  # fmt: skip
        assert not client.answer(heartbeat, 1).error_code
        share = messages.ShareGroupHeartbeatRequest(
            group_id=f"{MARK}-share", member_id="A" * 22, member_epoch=0, subscribed_topic_names=[f"{MARK}-topic"]
        )
        assert not client.answer(share, 1).error_code
        client.close()
        # The state of the group's partitions begins later: one record asks for it, and another says that it is there.
        until(self._share_states, lambda count: count == 2, "state of the share group", SECONDS)

    def _share_states(self) -> int:
        records = self.broker.records("__consumer_offsets")
        return sum(record.key is not None and record.key[:2] == SHARE_STATE_KEY for record in records)

    def state(self, folder: Path) -> dict[str, bytes]:
        """The logs of all its partitions, of the metadata and of its coordinators too."""
        self.broker._running.keep(str(folder))
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.log"))}


@pytest.fixture
def tenants(tmp_path: Path):
    with Tenants() as made:
        yield made


def answers(broker: Broker, topic_id: bytes):
    """(API, version, the bytes of its answer) for every case of the walk; an end of the connection is an answer too."""
    for row in APIS:
        for version, values, _ in walk.cases(row):
            if row.name == "JoinGroup":
                # Nobody waits for members that will not come again.
                values = {**values, "group_id": f"{walk.GROUP}-{version}"}
            client = AnyClient(broker)
            try:
                yield row.name, version, client.answer_bytes(walk.request(row, version, values, topic_id), version)
            except OSError:
                yield row.name, version, b""
            finally:
                client.close()


def found_in(data: bytes, marks: list[bytes]) -> list[bytes]:
    return [mark for mark in marks if mark in data]


@pytest.mark.long
def test_nothing_of_one_is_in_what_another_says(
    tenants: Tenants, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked about the names that both have, and then by the names and ids that only the first has."""
    caplog.set_level(logging.INFO)
    marked = Marked(tenants)
    other = tenants.add("other", topics={walk.TOPIC: 1})
    trace = other.trace()
    before = marked.state(tmp_path / "before")
    own = other._running.call(lambda: other._running._process.controller.image.topics[walk.TOPIC].id)
    every = [MARK.encode(), *marked.ids]
    counted = 0
    for api, version, data in answers(other, own):
        assert not found_in(data, every), (api, version)
        counted += bool(data)
    assert counted > 350
    # By names and ids that are only the first's. What was asked may stand in the answer, and nothing else.
    for name in ("TOPIC", "GROUP", "TRANSACTIONAL_ID", "SHARE_GROUP"):
        monkeypatch.setattr(walk, name, f"asked-{name.lower()}")
    asked = marked.topic_ids[f"{MARK}-topic"]
    for api, version, data in answers(other, asked):
        assert not found_in(data, [mark for mark in every if mark != asked]), (api, version)
    assert not found_in(trace.text().encode(), every)
    assert not found_in(other.metrics().encode(), every)
    assert not found_in(other.report().encode(), every)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("pykafkad")]
    assert {mark for line in lines if " tenant=acme" not in line for mark in found_in(line.encode(), every)} == set()
    assert any(" tenant=acme" in line and MARK in line for line in lines)
    assert any(" tenant=other" in line for line in lines)
    assert marked.state(tmp_path / "after") == before


@pytest.mark.long
def test_the_walk_finds_what_is_there(tenants: Tenants) -> None:
    """The same requests at the first find its marks: else the test above would find nothing anywhere."""
    broker = tenants.add("acme", topics={f"{MARK}-topic": 1, walk.TOPIC: 1})
    broker.produce(walk.TOPIC, f"{MARK}-value")
    broker.commit(f"{MARK}-group", {(f"{MARK}-topic", 0): 1})
    own = broker._running.call(lambda: broker._running._process.controller.image.topics[walk.TOPIC].id)
    found = {api for api, _, data in answers(broker, own) if MARK.encode() in data}
    assert {"Metadata", "ListGroups", "Fetch", "DescribeTopicPartitions", "DescribeLogDirs"} <= found


def test_a_log_line_names_its_tenant(tenants: Tenants, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for name in ("acme", "other"):
        tenants.add(name, topics=["orders"])
        tenants.remove(name)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("pykafkad")]
    assert len(lines) >= 8
    assert [line for line in lines if " tenant=acme" not in line and " tenant=other" not in line] == []
