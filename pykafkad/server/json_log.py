"""The log as JSON, an object in a line, for programs that gather logs: `serve --log-format json`."""

from __future__ import annotations

from pykafkad.server.logs import Sink, cut, timestamp


class JsonSink(Sink):
    """Where lines go as objects: `time`, `level`, `logger`, `event`, and the fields of the line."""

    def render(self, now_ms: int, level: str, name: str, event: str, fields: dict[str, object]) -> str:
        """The text of one line, with its end."""
        return rendered(now_ms, level, name, event, fields)


def rendered(now_ms: int, level: str, name: str, event: str, fields: dict[str, object]) -> str:
    """The text of one line, with its end. A field of one of the four names stands behind an underscore."""
    import json

    line: dict[str, object] = {"time": timestamp(now_ms), "level": level, "logger": name, "event": event}
    for key, value in fields.items():
        if value is not None:
            line[f"_{key}" if key in ("time", "level", "logger", "event") else key] = _value(key, value)
    return json.dumps(line, ensure_ascii=False) + "\n"


def _value(key: str, value: object) -> object:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, BaseException):
        value = f"{type(value).__name__}: {value}"
    return cut(key, str(value))
