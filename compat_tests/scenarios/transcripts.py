"""What a broker answers to a round of requests, and where two brokers' answers differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from compat_tests.scenarios.exchange import Exchange
from compat_tests.scenarios.normalise import differences, normalised

Transcript = list[tuple[str, Any]]
"""Label and normalised answer of each step."""
Round = Callable[[Exchange], None]
Place = tuple[str, str, Any, Any]
"""Label, dotted path, and what each of the two has there."""


def transcript(bootstrap: str, name: str, round_of: Round) -> Transcript:
    """Run a round on one broker; `name` is that of the topics and groups it makes."""
    exchange = Exchange(bootstrap, name)
    try:
        round_of(exchange)
    finally:
        exchange.close()
    return normalised(exchange)


def differing(theirs: Transcript, ours: Transcript) -> Iterator[Place]:
    """Where two transcripts differ. A step that one of them alone has ends it."""
    for (label, expected), (other_label, answered) in zip(theirs, ours, strict=False):
        if label != other_label:
            yield label, "step", label, other_label
            return
        yield from differences(label, expected, answered)
    if len(theirs) != len(ours):
        yield "the end", "steps", len(theirs), len(ours)


def assert_same_answers(bootstraps: Sequence[str], round_of: Round) -> None:
    """Two brokers answer a round alike, in every field."""
    theirs, ours = (transcript(each, "both", round_of) for each in bootstraps)
    assert theirs, "the round asks nothing"
    found = [f"{label}: {path}: {left!r}, {right!r}" for label, path, left, right in differing(theirs, ours)]
    assert not found, "\n".join(found)
