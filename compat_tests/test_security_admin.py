"""ACLs and SCRAM credentials through two clients' admin calls, on brokers with an authorizer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation as KafkaPythonOperation,
    ACLPermissionType,
    ACLResourcePatternType as KafkaPythonPattern,
    ResourcePattern,
    ResourceType as KafkaPythonResource,
)

from compat_tests.conftest import AGAINST
from compat_tests.samples import wait_until

FreshName = Callable[..., str]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run once for each broker, the real Kafka first."""
    metafunc.parametrize(
        "configured", [f"configured_{name}" for name in AGAINST[metafunc.config.getoption("--against")]]
    )


@pytest.fixture
def bootstrap(configured: str, request: pytest.FixtureRequest) -> str:
    """The address of a broker that keeps ACLs."""
    return request.getfixturevalue(configured).bootstrap


def done(futures: dict) -> list:
    """The results of an AdminClient's futures."""
    return [future.result(100) for future in futures.values()]


def test_acls_by_librdkafka(bootstrap: str, fresh_name: FreshName) -> None:
    """ACLs are created, found by filters and deleted; only an invalid one is refused."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = fresh_name()

    def binding(
        operation: AclOperation, name: str = topic, pattern: ResourcePatternType = ResourcePatternType.LITERAL
    ) -> AclBinding:
        return AclBinding(ResourceType.TOPIC, name, pattern, "User:alice", "*", operation, AclPermissionType.ALLOW)

    def matching(
        name: str | None = topic, pattern: ResourcePatternType = ResourcePatternType.MATCH
    ) -> AclBindingFilter:
        return AclBindingFilter(
            ResourceType.TOPIC, name, pattern, "User:alice", None, AclOperation.ANY, AclPermissionType.ANY
        )

    prefixed = binding(AclOperation.DESCRIBE, topic[:-2], ResourcePatternType.PREFIXED)
    done(admin.create_acls([binding(AclOperation.READ), binding(AclOperation.WRITE), prefixed]))
    wait_until(lambda: len(admin.describe_acls(matching()).result(100)) == 3, "the broker shows what was changed")
    assert set(admin.describe_acls(matching()).result(100)) == {
        binding(AclOperation.READ),
        binding(AclOperation.WRITE),
        prefixed,
    }
    literal = matching(pattern=ResourcePatternType.LITERAL)
    (deleted,) = done(admin.delete_acls([literal]))
    assert set(deleted) == {binding(AclOperation.READ), binding(AclOperation.WRITE)}
    done(admin.delete_acls([matching()]))
    wait_until(lambda: admin.describe_acls(matching()).result(100) == [], "the broker shows what was changed")
    cluster = AclBinding(
        ResourceType.BROKER,
        "no-cluster",
        ResourcePatternType.LITERAL,
        "User:a",
        "*",
        AclOperation.ALTER,
        AclPermissionType.ALLOW,
    )
    with pytest.raises(KafkaException):
        done(admin.create_acls([cluster]))


def test_acls_by_kafka_python(bootstrap: str, fresh_name: FreshName) -> None:
    """The same with a client that does not use librdkafka."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    pattern = ResourcePattern(KafkaPythonResource.GROUP, fresh_name("group"), KafkaPythonPattern.LITERAL)
    acl = ACL("User:bob", "10.0.0.1", KafkaPythonOperation.READ, ACLPermissionType.DENY, pattern)
    asked = ACLFilter("User:bob", None, KafkaPythonOperation.ANY, ACLPermissionType.ANY, pattern)
    assert admin.create_acls([acl])["succeeded"] == [acl]
    wait_until(lambda: admin.describe_acls(asked)[0] == [acl], "the broker shows what was changed")
    assert admin.delete_acls([asked])[0][1][0] == acl
    wait_until(lambda: admin.describe_acls(asked)[0] == [], "the broker shows what was changed")
    admin.close()


def test_acls_by_the_command(bootstrap: str, fresh_name: FreshName) -> None:
    """`pykafkad acls` adds, lists and removes entries by their words, on a real Kafka too."""
    topic, user = fresh_name(), fresh_name("user")

    def run(*arguments: str, code: int = 0) -> list[str]:
        command = [sys.executable, "-m", "pykafkad", "acls", *arguments, "--bootstrap", bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.returncode == code, done
        return (done.stderr if code else done.stdout).splitlines()[0 if code else 1 :]

    def listed(*arguments: str) -> list[str]:
        return run("list", "--principal", user, *arguments)

    reads, writes = (f"allow\t{user}\t{operation}\ttopic\t{topic}\t*" for operation in ("read", "write"))
    denied = f"deny\t{user}\tall\ttopic\t{topic[:-3]}*\t0:0:0:0:0:0:0:1"
    alters = f"allow\t{user}\talter\tcluster\t\t*"
    more = (f"deny {user} all topic {topic[:-3]}* from ::1", f"{user} alter cluster")
    assert sorted(run("add", f"{user} read,write topic {topic}", *more)) == sorted([reads, writes, denied, alters])
    wait_until(lambda: len(listed()) == 4, "the broker shows what was changed")
    assert sorted(listed()) == sorted([reads, writes, denied, alters])
    assert sorted(listed("--resource", f"topic {topic}")) == sorted([reads, writes, denied])
    assert listed("--resource", "cluster") == [alters]
    assert run("remove", f"{user} write topic {topic}", *more) == [writes, denied, alters]
    wait_until(lambda: len(listed()) == 1, "the broker shows what was changed")
    assert "there is no such entry" in run("remove", f"{user} write topic {topic}", code=1)[0]
    run("remove", f"{user} read topic {topic}")


def test_scram_credentials(bootstrap: str, fresh_name: FreshName) -> None:
    """librdkafka salts and hashes; the broker returns only mechanism and iterations."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    user = fresh_name("user")
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    done(admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, b"secret", b"salt")]))
    wait_until(lambda: user in admin.describe_user_scram_credentials().result(100), "the broker shows what was changed")
    described = admin.describe_user_scram_credentials([user])[user].result(100)
    assert [(each.mechanism, each.iterations) for each in described.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_512, 8192)
    ]
    with pytest.raises(KafkaException):
        done(admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256)]))
    done(admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512)]))
    wait_until(
        lambda: user not in admin.describe_user_scram_credentials().result(100), "the broker shows what was changed"
    )
