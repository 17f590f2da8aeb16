"""A Python function decides who logs in: clients of several kinds, with each mechanism that it can decide about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaTimeoutError
from kafka.net.sasl.oauth import AbstractTokenProvider

from compat_tests.brokers.broker import free_port
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import assert_no_bug_logged
from compat_tests.samples import wait_until

FUNCTION = """
def decide(mechanism, user, secret):
    if mechanism == "PLAIN":
        if user == "mallory":
            raise LookupError(secret)
        return user == "alice" and secret == "secret"
    if mechanism == "OAUTHBEARER":
        return "alice" if secret == "token-of-alice" else None
    return "secret" if user == "alice" else None
"""


class Asking(NamedTuple):
    """A broker with logins. `address` is that of the listener where they are needed."""

    broker: PykafkadProcess
    address: str


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    """One that asks a module in its working directory about every login."""
    directory = tmp_path_factory.mktemp("asking")
    (directory / "whom_i_know.py").write_text(FUNCTION)
    plain, address = free_port(), f"localhost:{free_port()}"
    listeners = f"PLAINTEXT://localhost:{plain},SASL_PLAINTEXT://{address}"
    settings = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "pykafkad.sasl.callback": "whom_i_know:decide",
    }
    broker = PykafkadProcess(directory, settings, port=plain)
    try:
        broker.start()
        yield Asking(broker, address)
    finally:
        broker.close()
    assert_no_bug_logged(broker)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_librdkafka_logs_in(asking: Asking, mechanism: str) -> None:
    """With the password that the function knows, and with no other."""
    known = {"bootstrap.servers": asking.address, "security.protocol": "sasl_plaintext", "sasl.mechanism": mechanism}
    client = AdminClient({**known, "sasl.username": "alice", "sasl.password": "secret"})
    assert client.list_topics(timeout=60).brokers
    for user, password in (("alice", "wrong"), ("bob", "secret"), ("mallory", "of-mallory")):
        problems: list[KafkaError] = []
        refused = AdminClient({**known, "sasl.username": user, "sasl.password": password, "error_cb": problems.append})
        wait_until(lambda refused=refused, problems=problems: refused.poll(0.1) or problems, "the login is refused")
        assert problems[0].code() == KafkaError._AUTHENTICATION, problems
    assert "of-mallory" not in asking.broker.log_text()
    if mechanism == "PLAIN":
        assert "raised LookupError at" in asking.broker.log_text()


class Tokens(AbstractTokenProvider):
    """Gives a client of kafka-python its token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def test_kafka_python_logs_in_with_a_token(asking: Asking) -> None:
    """That the function knows; with another one it tries again until its time is over."""
    named = {
        "bootstrap_servers": asking.address, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER",
    }  # fmt: skip
    client = KafkaAdminClient(**named, sasl_oauth_token_provider=Tokens("token-of-alice"))
    assert client.list_topics() == []
    client.close()
    with pytest.raises(KafkaTimeoutError, match="Unable to bootstrap"):
        KafkaAdminClient(**named, sasl_oauth_token_provider=Tokens("another"), bootstrap_timeout_ms=2_000)
