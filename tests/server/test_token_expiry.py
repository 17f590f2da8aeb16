"""Delegation tokens that have expired are removed in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.metadata import delegation_tokens
from pykafkad.server import token_expiry
from pykafkad.server.logs import Sink, process_logs
from pykafkad.server.token_expiry import LONGEST_PAUSE_SECONDS
from tests.server.sasl_world import sasl_world
from tests.server.token_world import create, token_world, user


def test_what_has_expired_is_removed_every_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Again and again, after a restart too; the rest stays."""
    lines: list[bytes] = []
    monkeypatch.setattr(process_logs(), "sink", Sink(lambda data: lines.append(data) or len(data)))
    settings = {"delegation_token_expiry_check_interval_ms": 60_000}
    world = token_world(tmp_path, **settings)
    alice = user(world)
    for life_ms in (30_000, 59_000, 90_000, 200_000):
        create(alice, life_ms=life_ms)
    world.advance(59.5)
    assert len(world.broker.image.delegation_tokens) == 4
    world.advance(1)
    assert len(world.broker.image.delegation_tokens) == 2
    world.advance(60)
    assert len(world.broker.image.delegation_tokens) == 1
    world.stop()
    world = token_world(tmp_path, clock=world.clock, **settings)
    assert len(world.broker.image.delegation_tokens) == 1
    world.advance(100, steps=2)
    assert not world.broker.image.delegation_tokens
    told = [line.split(b"count=")[1].split()[0] for line in lines if b"delegation-tokens-expired" in line]
    assert told == [b"2", b"1", b"1"]
    assert world.runtime.metrics.unexpected_errors == 0


def test_many_are_removed_in_several_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in the same check."""
    for module in (delegation_tokens, token_expiry):
        monkeypatch.setattr(module, "MAX_EXPIRED_PER_CHANGE", 2)
    world = token_world(tmp_path, delegation_token_expiry_check_interval_ms=60_000)
    alice = user(world)
    for _ in range(5):
        create(alice, life_ms=1000)
    world.advance(60.5)
    world.turn()
    assert not world.broker.image.delegation_tokens
    assert world.runtime.metrics.unexpected_errors == 0


def test_nobody_looks_where_there_are_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a secret."""
    begun: list[object] = []
    monkeypatch.setattr(token_expiry.TokenExpiry, "begin", lambda checks: begun.append(checks))
    sasl_world(tmp_path / "one")
    assert not begun
    token_world(tmp_path / "other")
    assert len(begun) == 1


def test_a_pause_has_a_limit(tmp_path: Path) -> None:
    """Whatever the interval is."""
    world = token_world(tmp_path, delegation_token_expiry_check_interval_ms=2**63 - 1)
    alice = user(world)
    create(alice, life_ms=1000)
    world.advance(LONGEST_PAUSE_SECONDS - 10)
    assert len(world.broker.image.delegation_tokens) == 1
    world.advance(20)
    assert not world.broker.image.delegation_tokens
