"""Log lines: an event word, then `key=value`, one line each, to standard error.

A small writer of our own instead of the standard `logging`: that costs 13 ms of a start that has 100. A line looks like

    2026-11-21T12:07:27.123Z WARNING server connection-closed peer=127.0.0.1:40112 reason="frame of 2147483647 bytes"

Text from peers is escaped and cut, so that nobody can forge a line. Writing never blocks the broker: when the reader of
a pipe is slow, or lines come faster than `LINES_PER_SECOND`, lines are dropped and counted, and the next line that gets
out tells."""

from __future__ import annotations

import os

from pykafkad.clock import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS = ("debug", "info", "warning", "error")
VALUE_CHARACTERS = 300
LONG_VALUE_CHARACTERS = 8000
_LONG = ("traceback", "names")
"""Fields that no peer can fill, and that are of use only whole."""
_BOLD, _FAINT = "1", "2"
_COLOURS = {"debug": _FAINT, "info": "32", "warning": "1;33", "error": "1;31"}
"""Of a level on a terminal: green, yellow, red."""
LINES_PER_SECOND = 1000
BOUNDED_LINES_PER_SECOND = 100
LINES_KEPT = 1000


class Sink:
    """Where lines go."""

    def __init__(
        self, write: Callable[[bytes], int] | None = None, clock: Clock | None = None, *, is_coloured: bool = False
    ) -> None:
        """`write` takes the lines, in colours if `is_coloured`; without it standard error does, as suits it."""
        self._write = write
        self._clock = clock or Clock()
        self._second = 0
        self._lines_this_second = 0
        # The last line has no end: the system took a part of it.
        self._is_cut = False
        self._is_coloured = is_coloured
        self.dropped = 0

    def line(self, level: str, name: str, event: str, fields: dict[str, object]) -> None:
        """Writes one line, or counts it as dropped."""
        now_ms = self._clock.now_ms()
        if self.has_room(now_ms // 1000):
            self.write_line(now_ms, level, name, event, fields)
        else:
            self.dropped += 1

    def has_room(self, second: int) -> bool:
        """Count one more line of a second; whether it may be written."""
        if second != self._second:
            self._second = second
            self._lines_this_second = 0
        self._lines_this_second += 1
        return self._lines_this_second <= LINES_PER_SECOND

    def write_line(self, now_ms: int, level: str, name: str, event: str, fields: dict[str, object]) -> None:
        """Writes a line that has room, or counts it as dropped."""
        if self._write is None:
            self._write = standard_error()
            self._is_coloured = shows_colours(2)
        self.tell_dropped()
        if not self._put(self.render(now_ms, level, name, event, fields)):
            self.dropped += 1

    def tell_dropped(self) -> None:
        """Write how many lines were dropped since it was written last, if any were."""
        if self.dropped and self._write is not None:
            now_ms = self._clock.now_ms()
            if self._put(self.render(now_ms, "warning", "logs", "lines-dropped", {"count": self.dropped})):
                self.dropped = 0

    def render(self, now_ms: int, level: str, name: str, event: str, fields: dict[str, object]) -> str:
        """The text of one line, with its end."""
        return render(now_ms, level, name, event, fields, is_coloured=self._is_coloured)

    def _put(self, text: str) -> bool:
        assert self._write is not None
        data = text.encode("utf-8", "backslashreplace")
        if self._is_cut:
            data = b"\n" + data
        written = 0
        try:
            # A pipe takes a line of up to PIPE_BUF bytes whole or not at all, a disk that is full a part of any.
            while written < len(data):
                taken = self._write(data[written:])
                if taken <= 0:
                    break
                written += taken
        except OSError:
            pass
        if written:
            self._is_cut = written < len(data) and not (self._is_cut and written == 1)
        return written == len(data)

    def close(self) -> None:
        """Give back what the lines were written to. Nothing is written any more."""
        close = getattr(self._write, "close", None)
        if close is not None:
            close()


class LabelledSink(Sink):
    """Where the lines of one node or one tenant go: each begins with the field that names it."""

    def __init__(
        self,
        field: str,
        value: object,
        write: Callable[[bytes], int] | None = None,
        *,
        is_json: bool = False,
        is_coloured: bool = False,
    ) -> None:
        """Lines are objects if they are to be JSON (`is_json`), as the others of the process are then."""
        super().__init__(write, is_coloured=is_coloured)
        self._label = {field: value}
        self._is_json = is_json

    def render(self, now_ms: int, level: str, name: str, event: str, fields: dict[str, object]) -> str:
        """The text of one line, with its end."""
        fields = {**self._label, **fields}
        if not self._is_json:
            return super().render(now_ms, level, name, event, fields)
        from pykafkad.server.json_log import rendered

        return rendered(now_ms, level, name, event, fields)


class Writer:
    """Writes to a descriptor of its own."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str, flags: int) -> None:
        """Raises OSError if it can't be opened."""
        flags |= os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        self._descriptor = descriptor

    def __call__(self, data: bytes) -> int:
        """How many of the bytes were taken. Raises OSError."""
        return os.write(self._descriptor, data)

    def close(self) -> None:
        """Give the descriptor back. Fine if that is done."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def standard_error() -> Callable[[bytes], int]:
    """A write function for standard error that does not block where the system allows it.

    A pipe is opened anew, because the non-blocking flag belongs to the open file, which our parent and standard output
    may share. A regular file is not: standard output may write to the same one, and only through one open file do the
    two not overwrite each other."""
    if os.fstat(2).st_mode & 0o170000 != 0o100000:
        try:
            return Writer("/proc/self/fd/2", 0)
        except OSError:
            pass
    return lambda data: os.write(2, data)


def end_of_file(path: str) -> Writer:
    """A write function for the end of a file that only this user may read, and that does not wait for the reader of a
    pipe. Raises OSError if it can't be opened."""
    return Writer(path, os.O_CREAT)


def shows_colours(descriptor: int) -> bool:
    """Whether it is a terminal that shows colours, and its user has not asked for none (no-color.org)."""
    terminal = os.environ.get("TERM", "")
    return os.isatty(descriptor) and not os.environ.get("NO_COLOR") and terminal not in ("", "dumb")


def render(
    now_ms: int, level: str, name: str, event: str, fields: dict[str, object], *, is_coloured: bool = False
) -> str:
    """The text of one line, with its end. In colours the level and the event stand out, and the time stays behind."""
    time, level_text = timestamp(now_ms), level.upper()
    if is_coloured:
        time, event = _painted(_FAINT, time), _painted(_BOLD, event)
        level_text = _painted(_COLOURS[level], level_text)
    return f"{time} {level_text} {name} {event}{field_texts(fields)}\n"


def _painted(colour: str, text: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"


def field_texts(fields: dict[str, object]) -> str:
    """The fields of a line, each with a space in front."""
    return "".join(f" {key}={_value(key, value)}" for key, value in fields.items() if value is not None)


def timestamp(now_ms: int) -> str:
    """ISO 8601 in UTC with milliseconds; counted by hand, since `datetime` costs 2 ms to import."""
    seconds, milliseconds = divmod(now_ms, 1000)
    days, seconds = divmod(seconds, 86400)
    # Days since 1970 to a civil date, in eras of 400 years that start on 1 March.
    days += 719468
    era, day_of_era = divmod(days, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year = year_of_era + era * 400 + (month <= 2)
    hour, minute = divmod(seconds // 60, 60)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{seconds % 60:02}.{milliseconds:03}Z"


def cut(key: str, text: str) -> str:
    """The value of a field, as long as a line may have it."""
    limit = LONG_VALUE_CHARACTERS if key in _LONG else VALUE_CHARACTERS
    return text if len(text) <= limit else text[:limit] + "..."


def _value(key: str, value: object) -> str:
    if type(value) is int or type(value) is bool:
        return str(value)
    if isinstance(value, BaseException):
        value = f"{type(value).__name__}: {value}"
    text = value if isinstance(value, str) else f"{value!r}" if isinstance(value, bytes) else str(value)
    text = cut(key, text)
    if text.isascii() and text.isprintable() and text and not any(character in text for character in ' "=\\'):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    if not escaped.isprintable():
        escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)
    return f'"{escaped}"'


class Logs:
    """The log of one node: its loggers, the least level that they write, and where the lines go."""

    __slots__ = ("_told_once", "sink", "threshold")

    def __init__(self, level: str = "info", sink: Sink | None = None) -> None:
        """Raises ValueError for an unknown level."""
        self.threshold = LEVELS.index(level.lower())
        """The position in LEVELS of the least level that is written."""
        self.sink = sink or Sink()
        self._told_once: dict[tuple[object, ...], None] = {}

    @property
    def level(self) -> str:
        """The least level that is written: debug, info, warning or error."""
        return LEVELS[self.threshold]

    def set_level(self, level: str) -> None:
        """Change it. Raises ValueError for an unknown level."""
        self.threshold = LEVELS.index(level.lower())

    def logger(self, name: str) -> Logger:
        """The logger of one package."""
        return Logger(self, name)

    def debug(self, name: str, event: str, /, **fields: object) -> None:
        """For people who look into the broker: may come per request. `name` is the package that speaks."""
        if self.threshold == 0:
            self.sink.line("debug", name, event, fields)

    def info(self, name: str, event: str, /, **fields: object) -> None:
        """State changes of leadership, membership and storage, once each."""
        if self.threshold <= 1:
            self.sink.line("info", name, event, fields)

    def info_once(self, name: str, event: str, /, **fields: object) -> None:
        """The same, but a line that was written already is not written again. Of `LINES_KEPT` such lines that is
        known."""
        line = name, event, *fields.values()
        if self.threshold <= 1 and line not in self._told_once:
            if len(self._told_once) >= LINES_KEPT:
                del self._told_once[next(iter(self._told_once))]
            self._told_once[line] = None
            self.sink.line("info", name, event, fields)

    def warning(self, name: str, event: str, /, **fields: object) -> None:
        """Something an operator may want to change; the broker goes on."""
        if self.threshold <= 2:
            self.sink.line("warning", name, event, fields)

    def error(self, name: str, event: str, /, **fields: object) -> None:
        """Something is broken: a log offline, a bug of ours."""
        self.sink.line("error", name, event, fields)


class Logger:
    """Writes lines under one name: the package that speaks."""

    __slots__ = ("_logs", "name")

    def __init__(self, logs: Logs, name: str) -> None:
        self._logs = logs
        self.name = name

    def debug(self, event: str, /, **fields: object) -> None:
        """See `Logs.debug`."""
        self._logs.debug(self.name, event, **fields)

    def info(self, event: str, /, **fields: object) -> None:
        """See `Logs.info`."""
        self._logs.info(self.name, event, **fields)

    def warning(self, event: str, /, **fields: object) -> None:
        """See `Logs.warning`."""
        self._logs.warning(self.name, event, **fields)

    def error(self, event: str, /, **fields: object) -> None:
        """See `Logs.error`."""
        self._logs.error(self.name, event, **fields)


def tell_settings(log: Logger, sentences: list[str], without_effect: list[str]) -> None:
    """A warning for each setting that somebody may miss, and one line for all others that have no effect."""
    for sentence in sentences:
        log.warning("setting", text=sentence)
    if without_effect:
        log.info("settings-without-effect", count=len(without_effect), names=" ".join(without_effect))


class BoundedLines:
    """Lines at info whose number depends on clients: at most `BOUNDED_LINES_PER_SECOND`, so that they leave room for
    those of others. The next line that gets out tells how many were left out."""

    __slots__ = ("_clock", "_left_out", "_lines_this_second", "_logs", "_name", "_second")

    def __init__(self, logs: Logs, name: str, clock: Clock) -> None:
        self._logs = logs
        self._name = name
        self._clock = clock
        self._second = -1
        self._lines_this_second = 0
        self._left_out = 0

    def info(self, event: str, fields: dict[str, object]) -> None:
        """One line, or one more that is left out."""
        logs = self._logs
        if logs.threshold > 1:
            return
        second = int(self._clock.now())
        if second != self._second:
            self._second = second
            self._lines_this_second = 0
        self._lines_this_second += 1
        if self._lines_this_second > BOUNDED_LINES_PER_SECOND:
            self._left_out += 1
            return
        if self._left_out:
            logs.info(self._name, "lines-left-out", count=self._left_out)
            self._left_out = 0
        logs.info(self._name, event, **fields)


_OUTPUT = Logs()


def configure(level: str = "info", sink: Sink | None = None) -> None:
    """Sets the least level (`debug`, `info`, `warning`, `error`) and, for tests, the sink. Raises ValueError on another
    level."""
    _OUTPUT.set_level(level)
    if sink is not None:
        _OUTPUT.sink = sink


def process_logs() -> Logs:
    """The log of the process: that of the commands, and of the nodes of a broker's process."""
    return _OUTPUT


def logger(name: str) -> Logger:
    """The process's logger of one package."""
    return _OUTPUT.logger(name)
