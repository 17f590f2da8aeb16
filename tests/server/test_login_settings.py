"""Which settings the logins of a listener have after a start: those of the properties, live ones, and the secret of the
cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad.server import jwks_source
from pykafkad.server.logins import Logins
from pykafkad.server.logs import Sink, process_logs
from pykafkad.wire import messages
from tests.sasl.client import ScramClient
from tests.server.sasl_world import authenticate, handshake, log_in, sasl_world


def test_live_settings_of_logins_count_from_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And those that cannot be leave the ones of the properties in place."""
    setting = "listener.name.guarded.plain.sasl.jaas.config"
    settings = {"mechanisms": "PLAIN"}
    lines: list[bytes] = []
    monkeypatch.setattr(process_logs(), "sink", Sink(lambda data: lines.append(data) or len(data)))
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"

    def set_live(world: Any, text: str) -> None:
        peer = world.connect()
        assert log_in(peer, user="root", password=password).error_code == 0
        request = messages.IncrementalAlterConfigsRequest
        configs = [request.AlterableConfig(name=setting, config_operation=0, value=text)]
        resource = request.AlterConfigsResource(resource_type=4, resource_name="1", configs=configs)
        assert peer.ask(request(resources=[resource]), 1).responses[0].error_code == 0

    password = "root-secret"
    world = sasl_world(tmp_path, **settings)
    set_live(world, f'{module} user_root="new";')
    assert log_in(world.connect(), user="root").error_code == 0
    world.stop()
    password = "new"
    world = sasl_world(tmp_path, **settings)
    set_live(world, f'{module} user_root="newest"')
    world.stop()
    assert not [line for line in lines if b"live-settings-ignored" in line]
    password = "root-secret"
    world = sasl_world(tmp_path, **settings)
    assert log_in(world.connect(), user="root").error_code == 0
    (said,) = (line.decode() for line in lines if b"live-settings-ignored" in line)
    assert f"{setting}: must end with a semicolon" in said
    assert not [line for line in lines if b"newest" in line]
    world.stop()


def test_live_settings_do_not_leave_an_issuer_that_is_asked_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keys of the properties are opened first, and closed when the live settings open theirs; settings of the
    listener that no login reads open nothing."""
    fetches: list[str] = []
    monkeypatch.setattr(
        jwks_source._Fetch, "__call__", lambda self: fetches.append(self._endpoint.url) or b'{"keys":[]}'
    )
    package = "org.apache.kafka.common.security.oauthbearer."
    settings = {
        "mechanisms": "PLAIN,OAUTHBEARER",
        "listener_name_guarded_oauthbearer_sasl_server_callback_handler_class": (
            f"{package}OAuthBearerValidatorCallbackHandler"
        ),
        "sasl_oauthbearer_jwks_endpoint_url": "http://issuer/keys",
    }

    def start_and_set(name: str, value: str) -> None:
        fetches.clear()
        world = sasl_world(tmp_path, **settings)
        timers = world.runtime.timers
        asking = [key for key in timers._at if isinstance(key, tuple) and isinstance(key[0], jwks_source.FetchedKeys)]
        assert len(asking) == 1
        peer = world.connect()
        assert log_in(peer, user="root").error_code == 0
        request = messages.IncrementalAlterConfigsRequest
        configs = [request.AlterableConfig(name=f"listener.name.guarded.{name}", config_operation=0, value=value)]
        resource = request.AlterConfigsResource(resource_type=4, resource_name="1", configs=configs)
        assert peer.ask(request(resources=[resource]), 1).responses[0].error_code == 0
        world.stop()

    start_and_set("ssl.keystore.type", "PEM")
    assert len(fetches) == 1
    start_and_set("oauthbearer.sasl.jaas.config", f"{package}OAuthBearerLoginModule required;")
    assert len(fetches) == 1, "a certificate is nothing to logins"
    start_and_set("oauthbearer.sasl.jaas.config", f"{package}OAuthBearerLoginModule required;")
    assert len(fetches) == 2


def test_users_who_do_not_exist_have_the_same_salt_at_each_listener_and_after_each_start(tmp_path: Path) -> None:
    """Or a restart would tell them from the others. The secret behind it is shown to nobody."""
    setting = "pykafkad.sasl.scram.secret"

    def salt(world: Any, user: str) -> bytes:
        peer = world.connect()
        handshake(peer, "SCRAM-SHA-256")
        answer = authenticate(peer, ScramClient("sha256", user, "x").first())
        return bytes(answer.auth_bytes).split(b",")[1]

    world = sasl_world(tmp_path)
    secret = world.broker.image.configs(4, "")[setting]
    assert len(secret) == 64
    first = salt(world, "nobody")
    assert first == salt(world, "nobody") != salt(world, "somebody")
    other = Logins(world.runtime, world.broker.dispatcher, world.broker.settings, "GUARDED", lambda: world.broker.image)
    world.broker.socket_server.logins[world.broker.listeners[0]] = other
    assert salt(world, "nobody") == first
    peer = world.connect()
    log_in(peer, user="root")
    resources = [messages.DescribeConfigsRequest.DescribeConfigsResource(resource_type=4, resource_name="")]
    answer = peer.ask(messages.DescribeConfigsRequest(resources=resources), 4)
    assert {each.name: each.value for each in answer.results[0].configs}[setting] is None
    world.stop()
    again = sasl_world(tmp_path)
    assert again.broker.image.configs(4, "")[setting] == secret and salt(again, "nobody") == first
    again.stop()
    plain = sasl_world(tmp_path / "plain", "PLAIN")
    assert setting not in plain.broker.image.configs(4, "")
    plain.stop()
