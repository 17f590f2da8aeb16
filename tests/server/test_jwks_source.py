"""Where an issuer's keys come from: a file that changes, and an address that is asked now and then."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad.errors import ConfigError, StartFailure
from pykafkad.sasl.compact_jwt import InvalidToken
from pykafkad.sasl.token_rules import Endpoint
from pykafkad.server import jwks_source
from pykafkad.server.jwks_source import (
    BYTES_MAX,
    FETCH_SECONDS,
    KEY_ID_MAX,
    LEAST_PAUSE_SECONDS,
    MISS_PAUSE_SECONDS,
    MISSES_MAX,
    FetchedKeys,
    FileKeys,
    open_keys,
    parsed,
)
from tests.simulation.world import World

ONE, TWO = ({"kty": "EC", "kid": name} for name in ("one", "two"))
URL = "https://issuer/keys"
ENDPOINT = Endpoint(URL, None, None, 3_600_000, 100, 300)


def key_set(*keys: dict[str, str]) -> bytes:
    """What an issuer publishes."""
    return (b'{"keys":%s}' % repr(list(keys)).encode()).replace(b"'", b'"')


class TestFile:
    """Keys in a file."""

    def test_a_file_is_read_again_when_it_has_changed(self, tmp_path: Path) -> None:
        """And only then; while it is none, no token counts."""
        path = tmp_path / "keys.json"
        path.write_bytes(key_set(ONE))
        keys = FileKeys(str(path))
        first = keys.current()
        assert first == [ONE] and keys.current() is first
        keys.miss("two")
        path.write_bytes(key_set(ONE, TWO))
        assert keys.current() == [ONE, TWO]
        path.write_bytes(b"{")
        for _ in range(2):
            with pytest.raises(InvalidToken, match="the file of the issuer's keys cannot be read: Expecting"):
                keys.current()
        path.unlink()
        with pytest.raises(InvalidToken, match="cannot be read: No such file or directory"):
            keys.current()
        path.write_bytes(key_set(TWO))
        assert keys.current() == [TWO]

    def test_a_file_of_the_same_length_has_changed_too(self, tmp_path: Path) -> None:
        """By its time, or by taking the other's place."""
        path, other = tmp_path / "keys.json", tmp_path / "other.json"
        path.write_bytes(key_set(ONE))
        keys = FileKeys(str(path))
        other.write_bytes(key_set(TWO))
        os.utime(other, ns=(1, os.stat(path).st_mtime_ns))
        other.rename(path)
        assert keys.current() == [TWO]

    def test_a_broker_does_not_start_without_its_file(self, tmp_path: Path) -> None:
        """Nor with one that is no key set."""
        path = tmp_path / "keys.json"
        endpoint = ENDPOINT._replace(path=str(path))
        with pytest.raises(ConfigError, match=f"jwks.endpoint.url: {path} has no keys: No such file"):
            open_keys(None, endpoint)  # type: ignore[arg-type]
        path.write_bytes(b"[]")
        with pytest.raises(ConfigError, match=f"{path} has no keys: it has no list of keys"):
            open_keys(None, endpoint)  # type: ignore[arg-type]

    def test_a_file_has_a_limit(self) -> None:
        """As what an address gives."""
        assert parsed(key_set(ONE).ljust(BYTES_MAX)) == [ONE]
        with pytest.raises(ValueError, match=f"more than {BYTES_MAX} bytes"):
            parsed(key_set(ONE).ljust(BYTES_MAX + 1))


class Thread:
    """Takes the place of a thread: the job is done when the test says so."""

    def __init__(self, *_: object) -> None:
        self.jobs: list[Any] = []
        self.results: list[Any] = []
        self.ends = False
        THREADS.append(self)

    def submit(self, job: Callable[[], object], then: Callable[[object], None]) -> None:
        self.jobs.append((job, then))

    def end_alone(self) -> None:
        self.ends = True

    def work(self) -> None:
        for job, then in self.jobs:
            try:
                self.results.append((then, job()))
            except Exception as error:
                self.results.append((then, error))

    def finished(self) -> None:
        for then, result in self.results:
            then(result)


THREADS: list[Thread] = []


class Issuer:
    """An address that answers what the test wants."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.answer: Any = key_set(ONE)
        self.times = 0

    def __call__(self) -> bytes:
        self.times += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def advance(self, seconds: float) -> None:
        """Let the time go by; whoever asks is answered."""
        self.world.advance(seconds)
        for thread in THREADS:
            thread.work()
            thread.jobs.clear()
        self.world.advance(0.1)
        assert all(thread.ends for thread in THREADS)


@pytest.fixture
def issuer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An address, and a process whose clock the test moves."""
    monkeypatch.setattr(jwks_source, "Offload", Thread)
    THREADS.clear()
    world = World(tmp_path / "data")
    yield Issuer(world)
    assert world.runtime.metrics.unexpected_errors == 0


def keys_of(issuer: Issuer, **changes: Any) -> FetchedKeys:
    """The keys of the address."""
    return FetchedKeys(issuer.world.runtime, ENDPOINT._replace(**changes), issuer)


def test_an_address_is_asked_at_start_and_after_a_while(issuer: Issuer) -> None:
    """The broker serves meanwhile."""
    keys = keys_of(issuer)
    assert keys.current() == [ONE] and issuer.times == 1
    issuer.answer = key_set(TWO)
    issuer.advance(3599)
    assert keys.current() == [ONE] and issuer.times == 1
    issuer.world.advance(2)
    assert keys.current() == [ONE], "the answer is not there yet"
    issuer.advance(0)
    assert keys.current() == [TWO] and issuer.times == 2
    issuer.advance(3601)
    assert issuer.times == 3


@pytest.mark.parametrize("answer", [ConnectionRefusedError(111, "Connection refused"), b"{", ValueError("nonsense")])
def test_a_broker_does_not_start_without_keys(issuer: Issuer, answer: Any) -> None:
    """As Kafka's does not."""
    issuer.answer = answer
    with pytest.raises(StartFailure, match=f"jwks.endpoint.url: {URL} gives no keys: (Connection|Expecting|nonsense)"):
        keys_of(issuer)


def test_who_does_not_answer_is_asked_again(issuer: Issuer) -> None:
    """Soon, and then less and less often; the keys of before count."""
    keys = keys_of(issuer, refresh_ms=10_000, retry_ms=1000, retry_max_ms=3000)
    issuer.answer = OSError("gone")
    issuer.advance(10)
    assert issuer.times == 2 and keys.current() == [ONE]
    for times, pause_seconds in enumerate((1, 2, 3, 3), 3):
        issuer.answer = OSError("gone") if times % 2 else b"[]"
        # Each of these takes a moment more, to look at the answer.
        issuer.advance(pause_seconds - 0.5)
        assert issuer.times == times - 1
        issuer.advance(0.5)
        assert issuer.times == times and keys.current() == [ONE]
    issuer.answer = key_set(TWO)
    issuer.advance(3)
    assert keys.current() == [TWO]
    issuer.advance(9)
    assert issuer.times == 7, "the next is after refresh.ms"
    issuer.answer = OSError("gone")
    issuer.advance(1)
    issuer.advance(1)
    assert issuer.times == 9, "and the first pause is short again"


def test_who_never_ends_its_answer_is_given_up(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """And asked again; what it sends after all counts no more."""
    lines: list[Any] = []
    monkeypatch.setattr(issuer.world.runtime.logs.sink, "line", lambda *line: lines.append(line[2:]))
    keys = keys_of(issuer, refresh_ms=10_000, retry_ms=1000)
    issuer.world.advance(10.1)
    [silent] = THREADS
    issuer.world.advance(FETCH_SECONDS - 0.1)
    assert lines == []
    issuer.world.advance(0.2)
    [(event, fields)] = lines
    assert event == "keys-not-fetched" and str(fields["reason"]) == f"it took more than {FETCH_SECONDS:g} s"
    issuer.answer = key_set(TWO)
    silent.work()
    silent.jobs.clear()
    issuer.world.advance(0.5)
    assert keys.current() == [ONE] and [silent] == THREADS
    issuer.advance(0.6)
    assert keys.current() == [TWO] and len(THREADS) == 2


def test_a_broker_does_not_wait_for_an_issuer_for_ever(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not start then."""
    monkeypatch.setattr(jwks_source, "FETCH_SECONDS", 0.01)
    never = threading.Event()
    with pytest.raises(StartFailure, match=f"{URL} gives no keys: it took more than 0.01 s"):
        FetchedKeys(issuer.world.runtime, ENDPOINT, lambda: b"%d" % never.wait(5))
    never.set()


def test_a_mistake_of_ours_does_not_end_the_asking(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted, and the keys of before count."""
    keys = keys_of(issuer, refresh_ms=10_000, retry_ms=1000)
    with monkeypatch.context() as patched:
        patched.setattr(jwks_source, "parsed", lambda data: {}[data])
        issuer.advance(10)
    metrics = issuer.world.runtime.metrics
    assert keys.current() == [ONE] and metrics.unexpected_errors == 1
    metrics.unexpected_errors = 0
    issuer.answer = key_set(TWO)
    issuer.advance(1)
    assert keys.current() == [TWO]


def test_a_missing_key_is_asked_for(issuer: Issuer) -> None:
    """Once a minute; not without an id, nor with one that is too long."""
    keys = keys_of(issuer)
    issuer.advance(LEAST_PAUSE_SECONDS)
    issuer.answer = key_set(ONE, TWO)
    keys.miss(None)
    keys.miss("x" * (KEY_ID_MAX + 1))
    issuer.advance(0)
    assert issuer.times == 1
    keys.miss("x" * KEY_ID_MAX)
    issuer.advance(0)
    assert issuer.times == 2 and keys.current() == [ONE, TWO]
    keys.miss("x" * KEY_ID_MAX)
    issuer.advance(LEAST_PAUSE_SECONDS)
    assert issuer.times == 2
    issuer.advance(MISS_PAUSE_SECONDS)
    keys.miss("x" * KEY_ID_MAX)
    issuer.advance(0)
    assert issuer.times == 3


def test_the_issuer_is_not_asked_more_often_whatever_tokens_name(issuer: Issuer) -> None:
    """Once a second, though each token names another key; and only so many names are remembered."""
    keys = keys_of(issuer)
    for number in range(10 * MISSES_MAX):
        keys.miss(str(number))
        issuer.advance(0)
    assert 10 <= issuer.times <= 1 + 10 * MISSES_MAX * 0.1 / LEAST_PAUSE_SECONDS + 1
    assert len(keys._missed) == MISSES_MAX
    asked = issuer.times
    issuer.advance(2 * LEAST_PAUSE_SECONDS)
    keys.miss("0")
    issuer.advance(0)
    assert issuer.times >= asked + 1, "it is forgotten, and asked for again"


def test_a_key_that_came_is_missed_at_once_when_it_has_gone(issuer: Issuer) -> None:
    """Its minute is over with its coming."""
    keys = keys_of(issuer)
    issuer.advance(LEAST_PAUSE_SECONDS)
    issuer.answer = key_set(ONE, TWO)
    keys.miss("two")
    issuer.advance(0)
    assert keys.current() == [ONE, TWO]
    issuer.advance(LEAST_PAUSE_SECONDS)
    keys.miss("two")
    issuer.advance(0)
    assert issuer.times == 3
