"""Keeps full collections of garbage short in a process that serves.

A full collection looks at every object that lives, and holds the loop meanwhile: 60 to 150 ms with 10 000 partitions in
one process. It comes whenever a quarter more objects live than at the last one, so it falls into a failover, which
makes many. The survivors of a long one are therefore frozen (`gc.freeze`): the next one looks only at what came since.

What is frozen is freed as always when nothing refers to it. Only objects that refer to each other stay; so everything
is thawed once an hour, by the collection that comes next."""

from __future__ import annotations

import gc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.clock import Clock

LONG_SECONDS = 0.01
THAW_SECONDS = 3600.0

_FULL = 2


class Short:
    """While this is entered, the collector calls it at the begin and the end of each collection (`gc.callbacks`).
    The clock is one that runs as time does, unlike that of a test which moves it."""

    __slots__ = ("_began", "_clock", "_thaws_at")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = 0.0
        self._thaws_at = clock.now() + THAW_SECONDS

    def __enter__(self) -> None:
        gc.callbacks.append(self)

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self)

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] != _FULL:
            return
        now = self._clock.now()
        if phase == "start":
            if now >= self._thaws_at:
                gc.unfreeze()
                self._thaws_at = now + THAW_SECONDS
            self._began = now
        elif now - self._began >= LONG_SECONDS:
            gc.freeze()
