"""One quota key: its limits, and a sensor for each client, or group of clients, that has one."""

from __future__ import annotations

from pykafkad.quotas.limits import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from pykafkad.quotas.limits import Entity, Sharers

MAX_SENSORS = 10_000
MAX_NAME_CHARACTERS = 4_000_000
"""How many sensors there are at most, and how long the names of all their clients are together. Client ids are what
clients say, so one that always says another id would fill the memory. Beyond it, sensors with nothing to tell go, and
then those that were made first."""

_KEPT_SHARE = 0.75


class ClientQuota:
    """The quotas of one key. `new(bound)` makes a sensor: a `RateSensor` or a `TokenBucket`."""

    __slots__ = ("_characters", "_found", "_limits", "_new", "_sensors")

    def __init__(self, new: Callable[[float | None], Any]) -> None:
        self._new = new
        self._limits = Limits({})
        self._sensors: dict[Sharers, Any] = {}
        self._characters = 0
        # What was looked up since the limits changed; None for those without a limit.
        self._found: dict[tuple[str, str], Any] = {}

    @property
    def is_set(self) -> bool:
        """Whether any client has a limit."""
        return bool(self._limits)

    def __len__(self) -> int:
        """The number of sensors."""
        return len(self._sensors)

    def concerns(self, user: str) -> bool:
        """Whether any client id of the user may have a limit."""
        return self._limits.concerns(user)

    def set_limits(self, limits: Mapping[Entity, float]) -> None:
        """The limits from now on. What the sensors have recorded stays."""
        self._limits = found = Limits(limits)
        self._found.clear()
        for sharers, sensor in self._sensors.items():
            sensor.set_bound(found.of(sharers))

    def sensor(self, user: str, client_id: str, now_ms: float) -> Any:
        """The sensor of that user and client id; None if no limit counts for them."""
        key = (user, client_id)
        if key in self._found:
            return self._found[key]
        sharers = self._limits.sharers(user, client_id)
        bound = self._limits.of(sharers)
        sensor = None if bound is None else self._sensors.get(sharers)
        if bound is not None and sensor is None:
            characters = len(user) + len(client_id)
            self._make_room(characters, now_ms)
            sensor = self._sensors[sharers] = self._new(bound)
            self._characters += sum(map(len, sharers))
        self._remember(key, sensor)
        return sensor

    def _remember(self, key: tuple[str, str], sensor: Any) -> None:
        if len(self._found) >= MAX_SENSORS:
            self._found.clear()
        # Long ids are looked up each time.
        if len(key[0]) + len(key[1]) <= MAX_NAME_CHARACTERS // MAX_SENSORS:
            self._found[key] = sensor

    def _make_room(self, characters: int, now_ms: float) -> None:
        if self._has_room(characters):
            return
        for sharers in [each for each, sensor in self._sensors.items() if sensor.is_idle(now_ms)]:
            self._drop(sharers)
        if len(self._sensors) > MAX_SENSORS * _KEPT_SHARE or not self._has_room(characters):
            for sharers in list(self._sensors)[: len(self._sensors) // 4 + 1]:
                self._drop(sharers)
        self._found.clear()

    def _has_room(self, characters: int) -> bool:
        return len(self._sensors) < MAX_SENSORS and self._characters + characters <= MAX_NAME_CHARACTERS

    def _drop(self, sharers: Sharers) -> None:
        del self._sensors[sharers]
        self._characters -= sum(map(len, sharers))
