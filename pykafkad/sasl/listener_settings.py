"""What is set for one SASL listener, or for one mechanism of it, with what JAAS says."""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.sasl import jaas
from pykafkad.settings import of_listener


class ListenerSettings(of_listener.ListenerSettings):
    """The settings of one listener with SASL."""

    __slots__ = ()

    def given(self, setting: str, mechanism: str) -> tuple[str, str | None]:
        """The setting's whole name for a mechanism, and its text; None if it is not given there. Some settings count
        nowhere else."""
        name = f"{self.prefix}{mechanism.lower()}.{setting}"
        return name, self.text(name)

    def is_given(self, setting: str, mechanism: str | None = None) -> bool:
        """Whether somebody has set it, for the listener or for all."""
        return self.text(self.name(setting, mechanism)) is not None

    def login_options(self, mechanism: str, class_name: str) -> dict[str, str] | None:
        """The options of the login module of a mechanism; None without one. Raises ConfigError."""
        name, text = self.given("sasl.jaas.config", mechanism)
        if text is None:
            return None
        try:
            module = jaas.parse(text)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None
        if module.class_name != class_name:
            raise ConfigError(f"{name}: must name {class_name}; other Java classes cannot run here")
        options: dict[str, str] = module.options
        return options
