"""What the options of `pykafkad format` stand for: features, voters and SCRAM users, in the words of Kafka's tool.

Raises ConfigError with that tool's sentences."""

from __future__ import annotations

import base64
import binascii
from os import urandom

from pykafkad import uuids
from pykafkad.errors import ConfigError
from pykafkad.metadata import credentials
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter
from pykafkad.sasl import scram
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORTS = range(-(1 << 15), 1 << 15)
_SALT_BYTES = 18
_PORTS = range(65536)


def feature(text: str) -> tuple[str, int]:
    """`NAME=LEVEL`."""
    name, equals, level = text.partition("=")
    if not equals:
        raise ConfigError(f"Can't parse feature=level string {text}: equals sign not found.")
    number = integer(level.strip())
    if number is None or number not in _SHORTS:
        raise ConfigError(f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short.")
    return name.strip(), number


def integer(text: str) -> int | None:
    """The number that a text is, as Java reads it; None if it is none."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    return int(text) if digits.isascii() and digits.isdigit() else None


# --- voters


def voters(text: str, listener: str) -> list[Voter]:
    """`ID@HOST:PORT:DIRECTORY` with commas between them; they are reached by the `listener`."""
    found: dict[int, Voter] = {}
    for entry in filter(None, text.strip().split(",")):
        voter = _voter(entry.strip(), listener)
        if voter.id in found:
            raise ConfigError(f"Node id {voter.id} was specified more than once.")
        found[voter.id] = voter
    if not found:
        raise ConfigError("No voters given.")
    return [found[each] for each in sorted(found)]


def _voter(text: str, listener: str) -> Voter:
    where = "in dynamic voter string."
    identity, at, rest = text.partition("@")
    if not at:
        raise ConfigError(f"No @ found {where}")
    if not identity:
        raise ConfigError(f"Invalid @ at beginning of {where[3:]}")
    node_id = integer(identity)
    if node_id is None:
        raise ConfigError(f"Failed to parse node id {where}")
    if node_id < 0:
        raise ConfigError(f"Invalid negative node id {node_id} {where}")
    host, rest = _host(rest)
    port, colon, directory = rest.partition(":")
    if not colon:
        raise ConfigError("No colon following port could be found.")
    number = integer(port)
    if number is None:
        raise ConfigError(f"Failed to parse port {where}")
    if number not in _PORTS:
        raise ConfigError(f"Invalid port {number} {where}")
    try:
        directory_id = uuids.from_text(directory)
    except ValueError:
        raise ConfigError(f"Failed to parse directory ID {where}") from None
    return Voter(node_id, directory_id, [Endpoint(listener.upper(), host, number)])


def _host(text: str) -> tuple[str, str]:
    """The host at the begin of a text, and what is behind its colon."""
    if not text:
        raise ConfigError("No hostname found after node id.")
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket:
            raise ConfigError("Hostname began with left bracket, but no right bracket was found.")
        if not rest.startswith(":"):
            raise ConfigError("Port section must start with a colon.")
        return _as_java_writes(host), rest[1:]
    host, colon, rest = text.partition(":")
    if not colon:
        raise ConfigError("No colon following hostname could be found.")
    return host, rest


def _as_java_writes(host: str) -> str:
    """An IPv6 address with all of its parts, as Java has it; anything else as it is."""
    from ipaddress import AddressValueError, IPv6Address

    try:
        parts = IPv6Address(host).exploded.split(":")
    except AddressValueError:
        return host
    return ":".join(f"{int(part, 16):x}" for part in parts)


# --- SCRAM users


def scram_user(text: str) -> messages.UserScramCredentialRecord:
    """`MECHANISM=[name=…,password=…]`."""
    text = text.strip()
    mechanism, equals, components = text.partition("=")
    if not equals:
        raise ConfigError(f"Failed to find equals sign in SCRAM argument '{text}'")
    if mechanism not in credentials.NUMBERS:
        raise ConfigError(f"The add-scram mechanism {mechanism} is not supported.")
    if not components.startswith("["):
        raise ConfigError("Expected configuration string to start with [")
    if not components.endswith("]"):
        raise ConfigError("Expected configuration string to end with ]")
    return _credential(mechanism, dict(map(_component, components[1:-1].split(","))))


def _component(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        # Kafka's tool shows the component, which may be a part of a password with a comma.
        raise ConfigError(f"No equals sign found in SCRAM component: {'[hidden]' if text else ''}")
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = value[1:-1]
    return name, value


def _credential(mechanism: str, given: dict[str, str]) -> messages.UserScramCredentialRecord:
    name = given.pop("name", None)
    if name is None:
        raise ConfigError("You must supply 'name' to add-scram")
    salt, iterations = given.pop("salt", None), given.pop("iterations", None)
    decoded = None if salt is None else _decoded(salt, f"Failed to decode given salt: {salt}")
    count = scram.USUAL_ITERATIONS if iterations is None else integer(iterations)
    if count is None:
        raise ConfigError(f"Failed to parse iterations count: {iterations}")
    password, salted = given.pop("password", None), given.pop("saltedpassword", None)
    if password is None and salted is None:
        raise ConfigError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and decoded is None:
        raise ConfigError("You must supply 'salt' with 'saltedpassword' to add-scram")
    if given:
        raise ConfigError(f"Unknown SCRAM configurations: {', '.join(sorted(given))}")
    least, most = credentials.MIN_ITERATIONS, credentials.MAX_ITERATIONS
    if not least <= count <= most:
        bound = f">= {least}" if count < least else f"<= {most}"
        words = f"add-scram using {mechanism.replace('-', '_')}"
        raise ConfigError(f"The 'iterations' value must be {bound} for {words}")
    number = credentials.NUMBERS[mechanism]
    if password is not None:
        made = scram.credential(mechanism, password, decoded or scram.usual_salt(urandom(_SALT_BYTES)), count)
        return messages.UserScramCredentialRecord(
            name=name, mechanism=number, salt=made.salt, stored_key=made.stored_key, server_key=made.server_key,
            iterations=count,
        )  # fmt: skip
    assert salted is not None and decoded is not None
    hashed = _decoded(salted, "Failed to decode given saltedPassword")
    stored_key, server_key = credentials.keys(number, hashed)
    return messages.UserScramCredentialRecord(
        name=name, mechanism=number, salt=decoded, stored_key=stored_key, server_key=server_key, iterations=count
    )


def _decoded(text: str, problem: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ConfigError(problem) from None


# --- what is told


def described(records: Iterable[messages.Struct], level: int) -> str:
    """The first records of a cluster, as Kafka's tool prints them; but for the keys of users, which it shows."""
    shown = ", ".join(f"ApiMessageAndVersion({_record(each)} at version 0)" for each in records)
    return f"BootstrapMetadata(records=[{shown}], metadataVersionLevel={level}, source=format command)"


def _record(record: messages.Struct) -> str:
    if isinstance(record, messages.UserScramCredentialRecord):
        salt = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in bytes(record.salt))
        return (
            f"UserScramCredentialRecord(name='{record.name}', mechanism={record.mechanism}, salt=[{salt}], "
            f"storedKey=[hidden], serverKey=[hidden], iterations={record.iterations})"
        )
    assert isinstance(record, messages.FeatureLevelRecord)
    return f"FeatureLevelRecord(name='{record.name}', featureLevel={record.feature_level})"
