"""Delegation tokens: answer by answer beside a real Kafka, and by Kafka's own tool.

Both brokers have an authorizer and two listeners: PLAINTEXT, whose anonymous callers are super users, and GUARDED by
SASL_PLAINTEXT, where alice, bob and carol log in with passwords and tokens.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged
from compat_tests.login_talk import Talk
from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.tools.runner import ToolRunner
from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.metadata.delegation_tokens import hmac_of
from pykafkad.sasl.scram import HASHES

SECRET = "the secret of the tokens"
MINUTE_MS = 60_000
MAX_LIFE_MS, EXPIRY_MS = 100 * MINUTE_MS, 40 * MINUTE_MS
USERS = ("alice", "bob", "carol")
_JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM_JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"


class WithTokens:
    """A broker with delegation tokens. `bootstrap` is its SASL listener's."""

    def __init__(self, name: str, jars: Path, directory: Path) -> None:
        port, sasl_port, controller_port = free_port(), free_port(), free_port()
        self.bootstrap = f"localhost:{sasl_port}"
        prefix = "listener.name.guarded"
        listeners = f"PLAINTEXT://localhost:{port},GUARDED://localhost:{sasl_port}"
        settings = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": listeners,
            "advertised.listeners": listeners,
            f"{prefix}.sasl.enabled.mechanisms": ",".join(("PLAIN", *HASHES)),
            f"{prefix}.plain.sasl.jaas.config": f"{_JAAS} {' '.join(f'user_{each}={each}-secret' for each in USERS)};",
            **{f"{prefix}.{each.lower()}.sasl.jaas.config": f"{_SCRAM_JAAS};" for each in HASHES},
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "delegation.token.secret.key": SECRET,
            "delegation.token.max.lifetime.ms": str(MAX_LIFE_MS),
            "delegation.token.expiry.time.ms": str(EXPIRY_MS),
            "delegation.token.expiry.check.interval.ms": "500",
        }
        self.broker: ProcessBroker
        if name == "kafka":
            settings["listeners"] += f",CONTROLLER://localhost:{controller_port}"
            settings["controller.quorum.bootstrap.servers"] = f"localhost:{controller_port}"
            self.broker = KafkaProcess(jars, directory, settings, port)
        else:
            self.broker = PykafkadProcess(directory, settings, port=port)

    def user(self, name: str) -> Exchange:
        """A connection of a user with a password."""
        made = Exchange(self.bootstrap, "tokens")
        assert made.quietly("SaslHandshake", 1, mechanism="PLAIN").error_code == 0
        token = f"\0{name}\0{name}-secret".encode()
        assert made.quietly("SaslAuthenticate", 2, auth_bytes=token).error_code == 0
        return made


def _with_tokens(name: str, request: pytest.FixtureRequest, factory: pytest.TempPathFactory) -> Iterator[WithTokens]:
    jars = request.getfixturevalue("kafka_jars") if name == "kafka" else Path()
    made = WithTokens(name, jars, factory.mktemp(f"tokens-{name}"))
    try:
        made.broker.start()
        yield made
    finally:
        made.broker.close()
    if isinstance(made.broker, PykafkadProcess):
        assert_no_bug_logged(made.broker)
        assert SECRET not in made.broker.log_text()


@pytest.fixture(scope="module")
def tokens_kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithTokens]:
    """A real Kafka."""
    yield from _with_tokens("kafka", request, tmp_path_factory)


@pytest.fixture(scope="module")
def tokens_pykafkad(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithTokens]:
    """And pykafkad with the same settings."""
    yield from _with_tokens("pykafkad", request, tmp_path_factory)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run Kafka's tool once for each broker, the real Kafka first."""
    if "tokens_name" in metafunc.fixturenames:
        names = AGAINST[metafunc.config.getoption("--against")]
        metafunc.parametrize("tokens_name", [f"tokens_{name}" for name in names])


# --- answer by answer -----------------------------------------------------------------------------------------------


class Story:
    """What one broker was asked and answered, with tokens by the order of their making and times as they are apart."""

    def __init__(self, broker: WithTokens) -> None:
        self.broker = broker
        self.told: list[str] = []
        self.admin = Exchange(broker.broker.bootstrap, "tokens")
        self.users = {name: broker.user(name) for name in USERS}
        self.made: dict[str, int] = {}

    def close(self) -> list[str]:
        """The notes."""
        for each in (self.admin, *self.users.values()):
            each.close()
        return self.told

    def tell(self, note: str, *facts: object) -> None:
        """Note an answer."""
        self.told.append(f"{note}: {facts}")

    def create(self, who: str, note: str = "", version: int = 3, **fields: Any) -> Any:
        """Make a token. Kafka's brokers, and its controller, know of it a moment later."""
        answer = self.users[who].quietly("CreateDelegationToken", version, **{"max_lifetime_ms": -1, **fields})
        if answer.error_code == 0:
            assert answer.hmac == hmac_of(SECRET, answer.token_id) and len(answer.token_id) == 22
            self.made[answer.token_id] = len(self.made)
            self.users[who].until(lambda: self.described(who), lambda found: answer.token_id in found)
            # Carol never may, and learns by that whether the controller knows the token.
            carol, not_found = self.users["carol"], errors.DELEGATION_TOKEN_NOT_FOUND
            carol.until(
                lambda: carol.quietly("RenewDelegationToken", 2, hmac=answer.hmac, renew_period_ms=1),
                lambda found: found.error_code != not_found,
            )
        owner = answer.principal_type, answer.principal_name
        requester = answer.token_requester_principal_type, answer.token_requester_principal_name
        times = answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms
        token = self.made.get(answer.token_id, answer.token_id)
        self.tell(f"create {who} {note} {version}", answer.error_code, owner, requester,
                  apart(*times), token, len(answer.hmac))  # fmt: skip
        return answer

    def described(self, who: str, owners: tuple[str, ...] | None = None, version: int = 3) -> dict[str, Any]:
        """The tokens that a user sees, by their ids."""
        kind = "DescribeDelegationTokenOwner"
        asked = None
        if owners is not None:
            asked = [part("DescribeDelegationToken", kind, principal_type="User", principal_name=name)
                     for name in owners]  # fmt: skip
        answer = self.users[who].quietly("DescribeDelegationToken", version, owners=asked)
        assert answer.error_code == 0
        return {each.token_id: each for each in answer.tokens}

    def describe(self, who: str, owners: tuple[str, ...] | None = None, version: int = 3) -> None:
        """Note them."""
        rows = []
        # Other chapters have made others.
        tokens = self.described(who, owners, version).values()
        for token in (each for each in tokens if each.token_id in self.made):
            assert token.hmac == hmac_of(SECRET, token.token_id)
            requester = token.token_requester_principal_type, token.token_requester_principal_name
            times = token.issue_timestamp, token.expiry_timestamp, token.max_timestamp
            rows.append((self.made[token.token_id], token.principal_type, token.principal_name, requester,
                         apart(*times),
                         [(each.principal_type, each.principal_name) for each in token.renewers]))  # fmt: skip
        self.tell(f"describe {who} {owners} {version}", sorted(rows))

    def change(self, api: str, who: str, hmac: bytes, period_ms: int, version: int = 2) -> None:
        """Renew a token or let it expire, and wait until the broker shows it."""
        field = "renew_period_ms" if api == "RenewDelegationToken" else "expiry_time_period_ms"
        now_ms = time.time() * 1000
        answer = self.users[who].quietly(api, version, hmac=hmac, **{field: period_ms})
        told_ms = answer.expiry_timestamp_ms
        minutes = told_ms if told_ms <= 0 else 10 * round((told_ms - now_ms) / MINUTE_MS / 10)
        self.tell(f"{api} {who} {period_ms} {version}", answer.error_code, minutes)
        if answer.error_code == 0:
            expected = set() if field != "renew_period_ms" and period_ms < 0 else {answer.expiry_timestamp_ms}
            self.users["alice"].until(
                lambda: {each.expiry_timestamp for each in self.described("alice").values() if each.hmac == hmac},
                lambda found: found == expected,
            )

    def allow(self, operation: int, resource_type: int, name: str) -> None:
        """An ACL for alice."""
        creation = part("CreateAcls", "AclCreation", resource_type=resource_type, resource_name=name,
                        resource_pattern_type=3, principal="User:alice", host="*", operation=operation,
                        permission_type=3)  # fmt: skip
        assert self.admin.quietly("CreateAcls", 3, creations=[creation]).results[0].error_code == 0
        self.admin.in_effect()


def apart(first_ms: int, *others_ms: int) -> tuple[int, ...]:
    """Times of one token or of none, which has 0 or -1, from its first on."""
    return (min(first_ms, 1), *(each - max(first_ms, 0) for each in others_ms))


def renewers(*names: str, kind: str = "User") -> list[Any]:
    """Those of a request."""
    return [part("CreateDelegationToken", "CreatableRenewers", principal_type=kind, principal_name=name)
            for name in names]  # fmt: skip


def made(story: Story) -> None:
    """Tokens for oneself and for others, of every length of life."""
    for version in versions("CreateDelegationToken"):
        for life_ms in (-1, 0, 10 * MINUTE_MS, 60 * MINUTE_MS, 200 * MINUTE_MS, 2**63 - 1):
            story.create("alice", f"{life_ms}", version, max_lifetime_ms=life_ms, renewers=renewers("bob"))
        story.create("bob", "strange", version, renewers=renewers("alice") + renewers("g", kind="Group"))
        story.create("bob", "renewers", version, renewers=renewers("alice", "alice", ""))
    for kind, name in (("User", "bob"), ("Group", "bob"), ("", "bob"), (None, "bob"), ("User", ""), (None, None),
                       ("User", "alice")):  # fmt: skip
        story.create("alice", f"for {kind} {name}", owner_principal_type=kind, owner_principal_name=name)
    story.allow(13, 7, "User:bob")
    story.create("alice", "for bob, allowed", owner_principal_type="User", owner_principal_name="bob")
    story.create("alice", "for carol", owner_principal_type="User", owner_principal_name="carol")
    for who in USERS:
        for version in versions("DescribeDelegationToken"):
            story.describe(who, None, version)


def renewed(story: Story) -> None:
    """By whom, for how long, and until when; and ended."""
    token = story.create("alice", renewers=renewers("bob"))
    for api in ("RenewDelegationToken", "ExpireDelegationToken"):
        for version in versions(api):
            for who in USERS:
                for period_ms in (10 * MINUTE_MS, 60 * MINUTE_MS, 200 * MINUTE_MS, 2**62):
                    story.change(api, who, bytes(token.hmac), period_ms, version)
            for hmac in (b"", b"x" * 64, bytes(token.hmac)[:-1]):
                story.change(api, "alice", hmac, MINUTE_MS, version)
    for period_ms in (0, -1, -5):
        story.change("RenewDelegationToken", "alice", bytes(token.hmac), period_ms)
    story.change("ExpireDelegationToken", "carol", bytes(token.hmac), -1)
    story.change("ExpireDelegationToken", "bob", bytes(token.hmac), -1)
    alice, not_found = story.users["alice"], errors.DELEGATION_TOKEN_NOT_FOUND
    alice.until(
        lambda: alice.quietly("RenewDelegationToken", 2, hmac=token.hmac, renew_period_ms=1),
        lambda answer: answer.error_code == not_found,
    )
    story.change("ExpireDelegationToken", "alice", bytes(token.hmac), -1)
    short = story.create("bob", "short", renewers=renewers("alice"), max_lifetime_ms=MINUTE_MS)
    alice.quietly("ExpireDelegationToken", 2, hmac=short.hmac, expiry_time_period_ms=1)
    alice.until(lambda: story.described("alice"), lambda found: short.token_id not in found)


def seen(story: Story) -> None:
    """Own tokens, and others with a permission."""
    story.create("alice")
    first = story.create("bob", renewers=renewers("x"))
    story.create("bob")
    owners: tuple[Any, ...] = (None, (), ("alice",), ("bob",), ("x",), ("alice", "bob"), ("nobody",))
    for resource in (None, (8, 6, first.token_id), (14, 7, "User:bob")):
        if resource is not None:
            story.allow(*resource)
        for who in ("alice", "bob"):
            for each in owners:
                story.describe(who, each)


def used(story: Story) -> None:
    """Logins by tokens: of whom, for how long, and what they may not."""
    token = story.create("alice", max_lifetime_ms=EXPIRY_MS)
    wrong = b64encode(b"x" * 64).decode()
    right = b64encode(bytes(token.hmac)).decode()
    for mechanism in HASHES:
        # One extension: Kafka computes the proof over several in an order that differs from one JVM to the next.
        for name, password, extension in (
            (token.token_id, right, "tokenauth=true"),
            (token.token_id, right, "tokenauth=TRUE"),
            (token.token_id, wrong, "tokenauth=true"),
            ("nobody", wrong, "tokenauth=true"),
            ("alice", wrong, "tokenauth=true"),
        ):
            talk = Talk(story.broker, f"{mechanism} {name == token.token_id} {password == right} {extension}")
            talk.lifetime_unit_ms = EXPIRY_MS
            talk.log_in(mechanism, name, password, extension=extension)
            for api, fields in (
                ("CreateDelegationToken", {"max_lifetime_ms": -1}),
                ("RenewDelegationToken", {"hmac": token.hmac, "renew_period_ms": 1}),
                ("ExpireDelegationToken", {"hmac": token.hmac, "expiry_time_period_ms": 1}),
                ("DescribeDelegationToken", {"owners": None}),
            ):
                talk.ask(api, 2, **fields)
            story.told += talk.close()


@pytest.mark.parametrize("chapter", [made, renewed, seen, used], ids=lambda chapter: chapter.__name__)
def test_answers_are_kafkas(tokens_kafka: WithTokens, tokens_pykafkad: WithTokens, chapter: Any) -> None:
    """The same requests to both brokers."""
    told = []
    for broker in (tokens_kafka, tokens_pykafkad):
        story = Story(broker)
        chapter(story)
        told.append(story.close())
    wrong = [pair for pair in zip(*told, strict=True) if pair[0] != pair[1]]
    assert not wrong, "\n\n".join(f"Kafka: {one}\npykafkad: {other}" for one, other in wrong)


# --- what is stored -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("kafka", "pykafkad"), ("pykafkad", "kafka")], ids=" then ".join)
def test_each_goes_on_with_the_others_tokens(kafka_jars: Path, tmp_path: Path, names: tuple[str, str]) -> None:
    """One that was renewed, and none that was ended, from the other's directory: seen, and logged in with."""
    for name in names:
        (tmp_path / name).mkdir()
    first = WithTokens(names[0], kafka_jars, tmp_path / names[0])
    try:
        first.broker.start()
        story = Story(first)
        token = story.create("alice", renewers=renewers("bob"))
        story.change("RenewDelegationToken", "bob", bytes(token.hmac), 10 * MINUTE_MS)
        story.change("ExpireDelegationToken", "alice", bytes(story.create("alice").hmac), -1)
        before = {each: repr(row) for each, row in story.described("alice").items()}
        assert set(before) == {token.token_id}
        story.close()
        first.broker.stop()
    finally:
        first.broker.close()
    for directory in (tmp_path / names[0]).glob("data*"):
        shutil.copytree(directory, tmp_path / names[1] / directory.name)
    second = WithTokens(names[1], kafka_jars, tmp_path / names[1])
    try:
        second.broker.start()
        story = Story(second)
        story.users["alice"].until(
            lambda: {each: repr(row) for each, row in story.described("alice").items()},
            lambda found: found == before,
        )
        talk = Talk(second, "the other's token")
        talk.log_in("SCRAM-SHA-256", token.token_id, b64encode(bytes(token.hmac)).decode(), extension="tokenauth=true")
        assert talk.ask("Metadata", 12, topics=[]).brokers
        talk.close()
        story.close()
    finally:
        second.broker.close()


# --- Kafka's tool ---------------------------------------------------------------------------------------------------


def test_kafkas_tool_makes_and_uses_a_token(
    tokens_name: str, request: pytest.FixtureRequest, runner: ToolRunner, tmp_path: Path
) -> None:
    """By a password; and a Java client logs in with what it printed."""
    broker = request.getfixturevalue(tokens_name)

    def properties(name: str, mechanism: str, module: str) -> str:
        lines = ("security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={mechanism}", f"sasl.jaas.config={module};")
        (tmp_path / name).write_text("\n".join(lines))
        return str(tmp_path / name)

    def run(tool: str, config: str, *arguments: str) -> str:
        outcome = runner.run(tool, ["--bootstrap-server", broker.bootstrap, "--command-config", config, *arguments])
        assert outcome.code == 0, outcome
        return outcome.output

    bob = properties("bob", "PLAIN", f'{_JAAS} username="bob" password="bob-secret"')
    output = run("delegation-tokens", bob, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:x")
    row = next(line for line in output.splitlines() if "User:bob" in line).split()
    token_id, hmac = row[0], row[1]
    assert hmac == b64encode(hmac_of(SECRET, token_id)).decode()
    token = properties(
        "token", "SCRAM-SHA-512", f'{_SCRAM_JAAS} username="{token_id}" password="{hmac}" tokenauth="true"'
    )
    Exchange(broker.broker.bootstrap, "tokens").until(
        lambda: (
            runner.run("topics", ["--bootstrap-server", broker.bootstrap, "--command-config", token, "--list"]).code
        ),
        lambda code: code == 0,
    )
    # A command of pykafkad's takes the same file.
    command = [sys.executable, "-m", "pykafkad", "topics", "-b", broker.bootstrap, "--client-config", token, "list"]
    ours = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ours.returncode, ours.stderr) == (0, "")
    assert token_id in run("delegation-tokens", bob, "--describe", "--owner-principal", "User:bob")
    run("delegation-tokens", bob, "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    run("delegation-tokens", bob, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
