"""A share of the ten million inputs before a login that `make test-long` tries, and what the targets would find."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from pykafkad.sasl import plain, scram
from tests.fuzz import __main__ as command, kerberos, logins, mutation
from tests.seeds import examples, seed_of_the_code

BY_NAME = {target.name: target for target in logins.TARGETS + kerberos.TARGETS}


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The command of `make test-long`, with other words."""
    monkeypatch.setattr(sys, "argv", ["fuzz", *words])
    return command.main()


def test_whatever_strangers_say_leads_nowhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each target gets its share; seed and count are printed."""
    count, seed = str(examples(20_000)), f"{seed_of_the_code():x}"
    code = run(monkeypatch, "--targets", "logins", "--inputs", count, "--seed", seed)
    said = capsys.readouterr().out.splitlines()
    assert code == 0, said
    assert said[0] == f"seed {seed}" and said[-1].startswith(f"{count} inputs, 0 findings, ")
    assert {line[:14].strip() for line in said[2:-1]} == mutation.GROUPS["logins"] == set(BY_NAME)


def _crash(text: str) -> bool:
    if "=" not in text:
        raise IndexError("beyond the end")
    return True


def test_a_planted_crash_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With the bytes that repeat it."""
    monkeypatch.setattr(scram, "_is_extension", _crash)
    assert run(monkeypatch, "--targets", "scram", "--inputs", "3000", "--seed", "1") == 1
    finding = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("scram: "))
    name, error, _, data = finding.split(": ")
    assert error == "IndexError"
    with pytest.raises(IndexError):
        run(monkeypatch, "--input", f"{name}:{data}")
    monkeypatch.undo()
    assert run(monkeypatch, "--input", f"{name}:{data}") == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "where", "what", "instead"),
    [
        ("plain", plain, "compare_digest", lambda one, other: True),
        ("scram", scram, "compare_digest", lambda one, other: True),
        ("strangers", plain, "compare_digest", lambda one, other: True),
    ],
    ids=["plain", "scram", "strangers"],
)
def test_a_way_in_is_found(monkeypatch: pytest.MonkeyPatch, name: str, where: Any, what: str, instead: Any) -> None:
    """By an exchange that takes a wrong password or proof for a right one, alone and in a broker."""
    monkeypatch.setattr(where, what, instead)
    findings = mutation.run(2000, 1, [BY_NAME[name]]).findings
    assert any("let in as" in finding for finding in findings), findings
