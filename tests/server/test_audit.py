"""What an audit tells of the authorizer's decisions, and what it does not."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.errors import ConfigError
from pykafkad.server import audit, logs
from pykafkad.server.session import Session
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.metadata.test_acls import chosen, entry
from tests.server.sasl_world import log_in, sasl_world
from tests.simulation.world import World

READ, WRITE, CREATE, DESCRIBE = 3, 4, 5, 8
DENY = 2
EVERYBODY = "User:ANONYMOUS"


def audited(path: Path, name: str = "audit.txt", **settings: object) -> World:
    """A broker that tells of its decisions, with the topics `t` and `u`."""
    made = World(
        path / "data",
        authorizer_class_name=STANDARD_AUTHORIZER,
        allow_everyone_if_no_acl_found="true",
        pykafkad_audit_file=path / name,
        **settings,
    )
    made.create_topic("t")
    made.create_topic("u")
    return made


def lines(path: Path) -> list[str]:
    """The lines that came since, without their time and the address of the peer."""
    found = [line.partition("Z ")[2] for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("")
    return found


def add(peer, *entries) -> None:
    """Create ACLs."""
    answer = peer.ask(messages.CreateAclsRequest(creations=list(entries)), 3)
    assert [row.error_code for row in answer.results] == [0] * len(entries)


def produced(peer, topic: str = "t") -> int:
    """The error of a small batch."""
    return peer.ask(produce(topic, {0: batch(b"x")}), 8).responses[0].partition_responses[0].error_code


def described(peer, topic: str) -> int:
    """The error of a look at a topic, which no fast path serves."""
    wanted = messages.MetadataRequest.MetadataRequestTopic(name=topic)
    return peer.ask(messages.MetadataRequest(topics=[wanted]), 9).topics[0].error_code


def host(peer) -> str:
    """The peer's address as lines have it."""
    return peer.connection.peer.rpartition(":")[0]


def test_every_denied_row_is_told_with_its_rule(tmp_path: Path) -> None:
    """Also when it is asked again, and the session knows already; permissions are not told."""
    world = audited(tmp_path)
    peer = world.connect()
    add(peer, entry("t", principal="User:x", operation=READ), entry("u", principal=EVERYBODY, operation=WRITE,
                                                                    permission_type=DENY))  # fmt: skip
    world.create_topic("open")
    for _ in range(2):
        assert produced(peer) == produced(peer, "u") == errors.TOPIC_AUTHORIZATION_FAILED
        assert described(peer, "open") == produced(peer, "open") == 0
    before = f"INFO audit denied principal={EVERYBODY} address={host(peer)} operation=Write resource=Topic"
    assert (
        lines(tmp_path / "audit.txt")
        == [
            f'{before} name=t request=Produce rule="no entry allows it"',
            f'{before} name=u request=Produce rule="deny {EVERYBODY} Write Topic LITERAL u from *"',
        ]
        * 2
    )


def test_what_the_controller_denies_is_told_once(tmp_path: Path) -> None:
    """By a rule that allows the operation on two resources, the first is named."""
    world = audited(tmp_path)
    peer = world.connect()
    add(peer, entry("kafka-cluster", resource_type=4, principal="User:x", operation=CREATE),
        entry("n", principal="User:x", operation=CREATE))  # fmt: skip
    topic = messages.CreateTopicsRequest.CreatableTopic(name="n", num_partitions=1, replication_factor=1)
    peer.ask(messages.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
    (line,) = lines(tmp_path / "audit.txt")
    assert "denied" in line and "operation=Create" in line and "request=CreateTopics" in line


def test_what_only_shapes_an_answer_is_not_told(tmp_path: Path) -> None:
    """Topics that a list leaves out, and the operations that an answer names; who names the topic is told of."""
    world = audited(tmp_path, pykafkad_audit_allowed="true")
    peer = world.connect()
    add(peer, entry("t", principal="User:x", operation=READ))
    lines(tmp_path / "audit.txt")
    answer = peer.ask(messages.MetadataRequest(topics=None, include_topic_authorized_operations=True), 12)
    assert [topic.name for topic in answer.topics] == ["u"]
    (seen,) = lines(tmp_path / "audit.txt")
    assert "allowed" in seen and "operation=Describe" in seen and "name=u" in seen
    peer.ask(messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="t")]), 12)
    (denied,) = lines(tmp_path / "audit.txt")
    assert "denied" in denied and "name=t request=Metadata" in denied


def test_permissions_are_told_once_until_acls_change(tmp_path: Path) -> None:
    """For each connection, operation and resource, and again for a fast path that remembers it."""
    world = audited(tmp_path, pykafkad_audit_allowed="true")
    path = tmp_path / "audit.txt"
    peer, other = world.connect(), world.connect()
    lines(path)
    add(peer, entry("t", principal=EVERYBODY, operation=WRITE))
    (created,) = lines(path)
    assert created.startswith("DEBUG audit allowed") and "operation=Alter resource=Cluster" in created
    assert "request=CreateAcls" in created and "rule=allow.everyone.if.no.acl.found" in created
    line = f"DEBUG audit allowed principal={EVERYBODY} address={host(peer)} operation=Write resource=Topic name=t "
    line += f'rule="allow {EVERYBODY} Write Topic LITERAL t from *"'
    for _ in range(4):
        assert produced(peer) == 0
    assert set(told := lines(path)) == {line} and 1 <= len(told) <= 2
    assert produced(other) == 0
    assert line in lines(path)
    peer.ask(messages.DeleteAclsRequest(filters=[chosen(resource_name_filter="nothing")]), 3)
    add(peer, entry("v", principal="User:x", operation=WRITE))
    lines(path)
    assert produced(peer) == 0 and line in lines(path)


def test_a_session_tells_of_a_permission_once_until_acls_change(tmp_path: Path) -> None:
    """Where no fast path serves the requests."""
    world = audited(tmp_path, pykafkad_audit_allowed="true")
    path = tmp_path / "audit.txt"
    peer = world.connect()
    lines(path)
    for name in ("x", "y"):
        assert [described(peer, "t") for _ in range(3)] == [0] * 3
        (told,) = lines(path)
        assert "allowed" in told and "operation=Describe resource=Topic name=t" in told
        add(world.connect(), entry(name, principal="User:x", operation=READ))
        lines(path)


def test_lines_are_objects_where_the_name_says_so(tmp_path: Path) -> None:
    """What a peer names is escaped; the file is for its owner."""
    world = audited(tmp_path, "audit.jsonl")
    peer = world.connect()
    add(peer, entry("g", resource_type=3, resource_pattern_type=4, principal="User:x", operation=READ))
    peer.ask(messages.HeartbeatRequest(group_id='g\n"é', generation_id=1, member_id="m"), 0)
    (line,) = (tmp_path / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "info", "event": "denied", "principal": EVERYBODY, "address": host(peer), "operation": "Read",
        "resource": "Group", "name": 'g\n"é', "request": "Heartbeat", "rule": "no entry allows it",
    }  # fmt: skip
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600
    peer.ask(messages.HeartbeatRequest(group_id=30_000 * "g", generation_id=1, member_id="m"), 0)
    line = (tmp_path / "audit.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(line)["name"] == logs.VALUE_CHARACTERS * "g" + "..."


def test_lines_have_a_limit_and_what_is_dropped_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next line tells, or the end of the broker."""
    monkeypatch.setattr(logs, "LINES_PER_SECOND", 3)
    world = audited(tmp_path)
    peer = world.connect()
    add(peer, entry("t", principal="User:x", operation=READ))
    for _ in range(5):
        produced(peer)
    assert len(lines(tmp_path / "audit.txt")) == 3
    world.advance(1)
    for _ in range(4):
        produced(peer)
    told = lines(tmp_path / "audit.txt")
    assert told[0] == "WARNING logs lines-dropped count=2" and len(told) == 4
    world.process.audit.close()
    assert lines(tmp_path / "audit.txt") == ["WARNING logs lines-dropped count=1"]


def test_one_caller_leaves_room_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks without end has a share of a second's lines; to explain costs nothing then."""
    monkeypatch.setattr(audit, "LINES_OF_ONE_PER_SECOND", 3)
    world = audited(tmp_path)
    peer = world.connect()
    add(peer, entry("t", principal="User:x", operation=READ))
    explained = []
    authorizer = world.process.audit._authorizer
    explain = authorizer.explain
    monkeypatch.setattr(
        type(authorizer), "explain", lambda self, *asked: explained.append(asked[0]) or explain(*asked), raising=True
    )
    for _ in range(10):
        produced(peer)
    action = ("Write", "Topic", "t")
    world.process.audit.tell(False, ("User:bob", "127.0.0.1"), action, "Produce")
    told = lines(tmp_path / "audit.txt")
    assert [line.split()[3] for line in told if " denied " in line] == [f"principal={EVERYBODY}"] * 3 + [
        "principal=User:bob"
    ]
    assert told[3] == "WARNING logs lines-dropped count=7"
    assert explained == [EVERYBODY] * 3 + ["User:bob"]
    world.advance(1)
    produced(peer)
    assert len(lines(tmp_path / "audit.txt")) == 1


def test_the_file_is_closed_with_the_broker(tmp_path: Path) -> None:
    """A way back to a snapshot makes another broker in this process, which opens the file anew."""
    world = audited(tmp_path)
    produced(world.connect())
    opened = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if fd_exists(fd)]
    assert opened.count(str(tmp_path / "audit.txt")) == 1
    world.process.audit.close()
    world.process.audit.close()
    opened = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if fd_exists(fd)]
    assert str(tmp_path / "audit.txt") not in opened


def fd_exists(fd: str) -> bool:
    """Not that of the list itself."""
    return os.path.islink(f"/proc/self/fd/{fd}")


def test_no_secret_is_told(tmp_path: Path) -> None:
    """Neither that of a login nor one that a request would store."""
    world = sasl_world(
        tmp_path / "data", authorizer_class_name=STANDARD_AUTHORIZER, pykafkad_audit_file=tmp_path / "audit.txt",
        pykafkad_audit_allowed="true", super_users="User:root",
    )  # fmt: skip
    upsertion = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"the-salt", salted_password=b"the-password"
    )
    for user, is_allowed in (("alice", False), ("root", True)):
        peer = world.connect()
        log_in(peer, user=user)
        peer.ask(messages.AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
        text = (tmp_path / "audit.txt").read_text(encoding="utf-8")
        assert f"audit {'allowed' if is_allowed else 'denied'} principal=User:{user}" in text
        assert "operation=Alter resource=Cluster name=kafka-cluster request=AlterUserScramCredentials" in text
        assert not any(secret in text for secret in ("-secret", "the-salt", "the-password"))
    assert "rule=super.users" in text


def test_without_it_nothing_of_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where there is an authorizer, and nothing without one: nobody decides."""
    monkeypatch.delitem(sys.modules, "pykafkad.server.audit", raising=False)
    for number, settings in enumerate(
        ({"authorizer_class_name": STANDARD_AUTHORIZER}, {"pykafkad_audit_file": tmp_path / "audit.txt"})
    ):
        world = World(tmp_path / str(number), **settings)
        assert "pykafkad.server.audit" not in sys.modules and not (tmp_path / "audit.txt").exists()
        session = world.connect().connection.session
        assert type(session) is Session and world.broker.sessions.audit is None


def test_a_file_that_cannot_be_written_ends_the_start(tmp_path: Path) -> None:
    """With the setting and the reason."""
    with pytest.raises(ConfigError, match=r"pykafkad\.audit\.file: .*no: no such file or directory"):
        audited(tmp_path, "nowhere/no")


def test_unnamed_resources_are_told_as_such(tmp_path: Path) -> None:
    """Who may write to any topic may have a producer id."""
    world = audited(tmp_path, pykafkad_audit_allowed="true")
    peer = world.connect()
    add(peer, entry("kafka-cluster", resource_type=4, principal="User:x", operation=CREATE),
        entry("t", principal=EVERYBODY, operation=WRITE))  # fmt: skip
    lines(tmp_path / "audit.txt")
    request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    assert peer.ask(request, 1).error_code == 0
    (told,) = lines(tmp_path / "audit.txt")
    assert 'operation=Write resource=Topic name=(any) rule="entries on some name"' in told
