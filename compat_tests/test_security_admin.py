"""ACLs and SCRAM credentials through two clients' admin calls, on brokers with an authorizer."""

from __future__ import annotations

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
