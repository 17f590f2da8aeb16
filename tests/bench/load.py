"""What every load of `cases.py` offers, and how it declines."""

from __future__ import annotations


class CaseSkipped(Exception):
    """The case cannot run here; the text says why."""


class Load:
    """Measures one case. Each method is given one broker; `bench` is the `runner.Bench`."""

    def prepare(self, broker, bench):
        """Before the rounds."""

    def round(self, broker, bench):
        """One round: a dict of figure name (`report.FIGURES`) to number."""
        raise NotImplementedError

    def finish(self, broker, bench):
        """After the rounds, also when they failed."""
