"""Where settings come from: a Java property file, the environment, `--set`, the command line.

Each reader gives `{name: (text, origin)}`; `gather` lays them over each other, the stronger one winning, and
`Settings.from_properties` takes the result.
"""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.settings.rows import BROKER, ROWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ENVIRONMENT_PREFIX = "PYKAFKAD_"

# Names with our prefix that the command line reads itself and that are no settings.
ENVIRONMENT_RESERVED = frozenset(("PYKAFKAD_LOG_LEVEL",))

FILE_SIZE_BYTES_MAX = 1 << 20

# What stands in for a file where none is given: what Kafka's own sample server.properties says for trying things out, which
# everybody who tests against a broker writes by hand otherwise. These count as set at start, as those of a file do.
WITHOUT_FILE = {"group.initial.rebalance.delay.ms": ("0", "default without a property file")}

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPACES = " \t\f"


def gather(
    path: str | None, environment: Mapping[str, str], pairs: Iterable[str], command_line: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """All sources as one mapping. Strongest last: file, or without one `WITHOUT_FILE`; environment, `--set` pairs, command
    line. Raises `ConfigError`."""
    properties = dict(WITHOUT_FILE) if path is None else from_file(path)
    properties.update(from_environment(environment))
    properties.update(from_pairs(pairs))
    properties.update({name: (text, "command line") for name, text in command_line.items()})
    return properties


def from_file(path: str) -> dict[str, tuple[str, str]]:
    """A `server.properties`; origins are `path:line`. Raises `ConfigError` when it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_SIZE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > FILE_SIZE_BYTES_MAX:
        raise ConfigError(f"{path}: larger than {FILE_SIZE_BYTES_MAX} bytes, which no property file is")
    # Java reads property files as UTF-8 or, in its older form, as Latin-1; bytes that are not UTF-8 are the latter.
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return {name: (value, f"{path}:{line}") for name, value, line in parse_properties(text, path)}


def parse_properties(text: str, path: str = "properties") -> list[tuple[str, str, int]]:
    """Java's property format as (name, value, line number): `#` and `!` comments, `=`, `:` or blanks between name and
    value, a backslash at the end continues on the next line, `\\uXXXX` and the usual escapes."""
    entries = []
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    index = 0
    while index < len(lines):
        number = index + 1
        line = lines[index].lstrip(_SPACES)
        index += 1
        if not line or line[0] in "#!":
            continue
        while _continues(line) and index < len(lines):
            line = line[:-1] + lines[index].lstrip(_SPACES)
            index += 1
        if _continues(line):
            line = line[:-1]
        end = _name_end(line)
        rest = line[end:].lstrip(_SPACES)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_SPACES)
        origin = f"{path}:{number}"
        entries.append((_unescape(line[:end], origin), _unescape(rest, origin), number))
    return entries


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _name_end(line: str) -> int:
    escaped = False
    for index, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "=:" or character in _SPACES:
            return index
    return len(line)


def _unescape(text: str, origin: str) -> str:
    if "\\" not in text:
        return text
    parts = []
    index = 0
    while index < len(text):
        character = text[index]
        index += 1
        if character != "\\" or index == len(text):
            parts.append(character)
            continue
        character = text[index]
        index += 1
        if character == "u":
            digits = text[index : index + 4]
            try:
                parts.append(chr(int(digits, 16)))
            except ValueError:
                raise ConfigError(
                    f"{origin}: \\u must be followed by four hexadecimal digits, not {digits!r}"
                ) from None
            index += 4
        else:
            parts.append(_ESCAPES.get(character, character))
    return "".join(parts)


def from_environment(environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Variables such as PYKAFKAD_SOCKET_REQUEST_MAX_BYTES; one that names no setting is an error, so that a slip is
    seen."""
    found = [name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in ENVIRONMENT_RESERVED]
    if not found:
        return {}
    names = {row.attribute.upper(): row.name for row in ROWS[BROKER].values()}
    properties = {}
    for variable in sorted(found):
        name = names.get(variable.removeprefix(ENVIRONMENT_PREFIX))
        if name is None:
            raise ConfigError(
                f"environment: {variable} names no setting; write the setting's name in capitals with _ for each dot, "
                f"such as {ENVIRONMENT_PREFIX}NUM_PARTITIONS"
            )
        properties[name] = (environment[variable], f"environment {variable}")
    return properties


def from_pairs(pairs: Iterable[str]) -> dict[str, tuple[str, str]]:
    """`name=value` texts of `--set`."""
    properties = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {pair}: must be name=value")
        properties[name.strip()] = (text, "--set")
    return properties
