"""Settings for a broker with an authorizer and a SASL listener on port 9093, as several suites need it."""

from __future__ import annotations

from collections.abc import Sequence

SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required {users};"

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}


def sasl_listener(plain_users: dict[str, str], super_users: Sequence[str]) -> dict[str, str]:
    """An authorizer, and PLAIN and SCRAM beside PLAINTEXT; `plain_users` maps names to passwords."""
    users = " ".join(f'user_{name}="{password}"' for name, password in plain_users.items())
    return {
        **AUTHORIZER,
        "super.users": ";".join(f"User:{name}" for name in ("ANONYMOUS", *super_users)),
        "controller.quorum.bootstrap.servers": "localhost:9094",
        "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9093,CONTROLLER://:9094",
        "advertised.listeners": "PLAINTEXT://localhost:9092,SASL_PLAINTEXT://localhost:9093",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_LOGIN.format(users=users),
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": SCRAM_LOGIN,
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": SCRAM_LOGIN,
    }
