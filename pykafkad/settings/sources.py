"""Reads the sources of settings: a Java property file, the environment, `--set` and the command line.

Each reader returns `{name: (text, origin)}`. `gather` merges them by strength, and `Settings.from_properties` takes the
result.
"""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.settings.rows import BROKER, ROWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ENVIRONMENT_PREFIX = "PYKAFKAD_"

# Variables with the prefix that are not settings: the command line reads them itself.
ENVIRONMENT_RESERVED = frozenset(
    ("PYKAFKAD_BOOTSTRAP", "PYKAFKAD_CLIENT_CONFIG", "PYKAFKAD_CONTROL_TOKEN", "PYKAFKAD_LOG_LEVEL")
)

FILE_SIZE_BYTES_MAX = 1 << 20

# The settings that replace a property file where none is given. Kafka's sample server.properties sets the same for
# trials, and everybody who tests with a broker would have to write them. They count as set at start, like those of a
# file.
WITHOUT_FILE = {"group.initial.rebalance.delay.ms": ("0", "default without a property file")}

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPACES = " \t\f"


def gather(
    path: str | None,
    environment: Mapping[str, str],
    pairs: Iterable[str],
    command_line: Mapping[str, str],
    own_path: str | None = None,
    image: Mapping[str, tuple[str, str]] | None = None,
) -> dict[str, tuple[str, str]]:
    """Merges all sources; raises `ConfigError`.

    The strongest comes last: the file, or `WITHOUT_FILE` without one; the file of one tenant; `image`, which are the
    variables of a container image; the environment; `--set` pairs; the command line.
    """
    properties = dict(WITHOUT_FILE) if path is None and own_path is None else {}
    for each in filter(None, (path, own_path)):
        properties.update(from_file(each))
    properties.update(image or {})
    properties.update(from_environment(environment))
    properties.update(from_pairs(pairs))
    properties.update({name: (text, "command line") for name, text in command_line.items()})
    return properties


def from_file(path: str) -> dict[str, tuple[str, str]]:
    """Reads a `server.properties`; origins are `path:line`. Raises `ConfigError` when it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_SIZE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > FILE_SIZE_BYTES_MAX:
        raise ConfigError(f"{path}: larger than {FILE_SIZE_BYTES_MAX} bytes, so it is not a property file")
    # Java reads property files as UTF-8 or, in the older form, as Latin-1. Bytes that are not UTF-8 are Latin-1.
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return {name: (value, f"{path}:{line}") for name, value, line in parse_properties(text, path)}


def parse_properties(text: str, path: str = "properties") -> list[tuple[str, str, int]]:
    r"""Parses Java's property format into (name, value, line number).

    `#` and `!` start comments. `=`, `:` or blanks separate name and value. A backslash at the end continues the line.
    `\uXXXX` and the usual escapes are replaced.
    """
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
                # What follows is not repeated: it may be a part of a password.
                raise ConfigError(f"{origin}: \\u must be followed by four hexadecimal digits") from None
            index += 4
        else:
            parts.append(_ESCAPES.get(character, character))
    return "".join(parts)


def from_environment(environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Reads variables such as PYKAFKAD_SOCKET_REQUEST_MAX_BYTES.

    An unknown name is an error, so that typing errors show.
    """
    found = [name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in ENVIRONMENT_RESERVED]
    if not found:
        return {}
    names = {row.attribute.upper(): row.name for row in ROWS[BROKER].values()}
    properties = {}
    for variable in sorted(found):
        name = names.get(variable.removeprefix(ENVIRONMENT_PREFIX))
        if name is None:
            raise ConfigError(
                f"environment: {variable} is not a setting; write the setting's name in capitals with _ for each dot, "
                f"such as {ENVIRONMENT_PREFIX}NUM_PARTITIONS"
            )
        properties[name] = (environment[variable], f"environment {variable}")
    return properties


def from_pairs(pairs: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Reads the `name=value` texts of `--set`."""
    properties = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {pair}: must be name=value")
        properties[name.strip()] = (text, "--set")
    return properties
