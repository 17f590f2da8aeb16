"""The settings of one listener, as Kafka reads them: the closest name that is set counts.

The closest is `listener.name.<listener>.<mechanism>.<setting>` for what one SASL mechanism may have of its own, then
`listener.name.<listener>.<setting>`, then `<setting>`. For each name live values count before those of the file."""

from __future__ import annotations

from pykafkad.config import BROKER, LISTENER_PREFIX, ROWS
from pykafkad.errors import ConfigError
from pykafkad.settings.rows import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pykafkad.config import Settings


class ListenerSettings:
    """Reads a broker's `settings` as they are for the listener of that name."""

    __slots__ = ("_fixed", "_live", "_settings", "prefix")

    def __init__(
        self,
        settings: Settings,
        listener: str,
        *,
        live: Mapping[str, str] | None = None,
        fixed: Mapping[str, Any] | None = None,
    ) -> None:
        """`live` stands in for the live values of this broker, and `fixed` are typed values that count before all
        others."""
        self._settings = settings
        self._live = live
        self._fixed = fixed or {}
        self.prefix = f"{LISTENER_PREFIX}{listener.lower()}."

    def value(self, setting: str, mechanism: str | None = None) -> Any:
        """The typed value of a broker setting; None when it has none. Raises ConfigError for a text that it does not
        allow, as nobody has looked at those of listeners before."""
        if setting in self._fixed:
            return self._fixed[setting]
        row = ROWS[BROKER][setting]
        name = self.name(setting, mechanism)
        if name == setting:
            return getattr(self._settings, row.attribute)
        text = self.text(name)
        assert text is not None
        try:
            return row.parse(text)
        except InvalidValue as error:
            raise ConfigError(f"{name}: {error}") from None

    def text(self, name: str) -> str | None:
        """The text that a name is set to; None if it is not."""
        return next((layer[name] for layer in self._layers() if name in layer), None)

    def name(self, setting: str, mechanism: str | None = None) -> str:
        """The name under which the value of a setting is given: the closest that is set, or its own."""
        names = [f"{self.prefix}{setting}"]
        if mechanism is not None:
            names.insert(0, f"{self.prefix}{mechanism.lower()}.{setting}")
        return next((name for name in names if self.text(name) is not None), setting)

    def is_own(self, setting: str) -> bool:
        """Whether the setting is given for this listener."""
        return self.name(setting) != setting

    def _layers(self) -> tuple[Mapping[str, str], ...]:
        settings = self._settings
        live = settings.dynamic_broker if self._live is None else self._live
        return live, settings.dynamic_default, settings.static
