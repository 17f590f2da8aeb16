"""What happened in a broker lately, as a bounded list: lines of its logs, and faults that fired.

A broker without a control API does not know of this module. It stands between the logs and their sink, and keeps what
passes."""

from __future__ import annotations

from collections import deque
from itertools import count

from pykafkad.server.logs import Logs, Sink, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

EVENTS = 1000
"""So many are kept; the oldest go first."""


class Timeline:
    """The last events of one broker, numbered from 1 on; they may come from any thread."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._events: deque[dict[str, Any]] = deque(maxlen=EVENTS)
        self._numbers = count(1)

    def add(self, level: str, part: str, event: str, fields: dict[str, object]) -> None:
        """One more: what happened in which part of the broker. Values are cut as in a log line."""
        shown = {key: cut(key, str(value)) for key, value in fields.items() if value is not None}
        self._events.append(
            {
                "number": next(self._numbers),
                "time_ms": self._now_ms(),
                "level": level,
                "part": part,
                "event": event,
                "fields": shown,
            }
        )

    def after(self, number: int) -> list[dict[str, Any]]:
        """Those with larger numbers, oldest first."""
        return [each for each in list(self._events) if each["number"] > number]

    def listen(self, every: Iterable[Logs]) -> None:
        """Keep what is written to these logs from now on; fine for one that is listened to already."""
        for logs in every:
            if not (isinstance(logs.sink, _Tap) and logs.sink.timeline is self):
                logs.sink = _Tap(logs.sink, self)


class _Tap(Sink):
    """Hands each line on, and keeps it."""

    def __init__(self, inner: Sink, timeline: Timeline) -> None:
        super().__init__()
        self._inner = inner
        self.timeline = timeline

    def line(self, level: str, name: str, event: str, fields: dict[str, object]) -> None:
        """One line."""
        self._inner.line(level, name, event, fields)
        self.timeline.add(level, name, event, fields)

    def tell_dropped(self) -> None:
        """As the sink behind it."""
        self._inner.tell_dropped()
