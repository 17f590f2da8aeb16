"""The figures of `pykafkad.testing`: a goal that is missed is told, and a name that is misspelt."""

from __future__ import annotations

import pytest

from tests.bench import testing_figures
from tests.bench.testing_figures import Figure


def test_what_is_measured_is_a_time(monkeypatch):
    """Of few turns."""
    monkeypatch.setattr(testing_figures, "STARTS", 2)
    assert 0 < testing_figures.start_ms() < testing_figures.cluster_ms() + 1000


@pytest.mark.parametrize(("value", "code", "word"), [(1.0, 0, "met"), (3.0, 1, "MISSED")])
def test_a_goal_decides(monkeypatch, capsys, value, code, word):
    """And only those that were asked for are measured."""
    figures = (Figure("a", "one", 2, "ms", lambda: value), Figure("b", "another", 2, "ms", pytest.fail))
    monkeypatch.setattr(testing_figures, "FIGURES", figures)
    monkeypatch.setattr("sys.argv", ["figures", "--only", "a"])
    assert testing_figures.main() == code
    assert capsys.readouterr().out.rstrip().endswith(f"ms  goal 2: {word}")


def test_a_misspelt_name(monkeypatch, capsys):
    """Is named."""
    monkeypatch.setattr("sys.argv", ["figures", "--only", "import,rest"])
    with pytest.raises(SystemExit):
        testing_figures.main()
    assert "no figure is called rest" in capsys.readouterr().err
