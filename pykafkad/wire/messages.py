"""Every message of the protocol and of the internal logs as a class, which is made from a schema file on first use.

`messages.FetchRequest` is one slotted class for all versions. A field that a version does not carry keeps its default.
Nested structs are attributes of their message under Kafka's own names:
`messages.FetchResponse.PartitionData(partition_index=0)`. Constructors take keywords. `messages.pyi` and the schema
files list names, types and defaults.

    decode = messages.decoder(messages.FetchRequest, 12)      # decode(buffer, position) -> (message, end_position)
    encode = messages.encoder(messages.FetchResponse, 12)     # encode(message, chunks), chunks[-1] a bytearray

Both raise `ProtocolError`. `messages.incremental` returns them as generators, for long messages.

Values: a uuid is 16 bytes, arrays are lists, bytes are bytes. `records` decode to a memoryview of the buffer, or None.
They are encoded from a bytes-like object, None, or a file slice (any object with `chunk_size`), which becomes a chunk
of its own. In text that is not UTF-8, each bad byte decodes to U+FFFD. After an encoding error, the content of
`chunks` is unspecified.

An array whose row says `cached` may be a `messages.CachedArray`. It is encoded once per version, for responses that are
sent repeatedly.

The default of a struct field that is not nullable is one shared instance per struct. That instance refuses assignment:
assign a new struct to the field instead.
"""

from __future__ import annotations

import os

from pykafkad.errors import ProtocolError
from pykafkad.wire import compiler, notation
from pykafkad.wire.primitives import CachedArray as CachedArray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

DIRECTORY = os.path.join(os.path.dirname(__file__), "schemas")
# The schema files that are not of an API, in the order in which a name is looked up: first those that a starting broker
# needs. No name is in two files.
COLLECTIONS = (
    "stored_metadata.txt",
    "control_records.txt",
    "stored_groups.txt",
    "stored_transactions.txt",
    "stored_share.txt",
    "client_protocols.txt",
    "headers.txt",
    "stored_remote_log.txt",
)


class Struct:
    """The base of every message and nested struct.

    It compares by value, and prints the fields that differ from their defaults.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    _root: type
    _defaults: dict[str, object]

    def __eq__(self, other: object) -> bool:
        # The shared default instance has a subclass of its own, without slots.
        if not isinstance(other, Struct) or self._root is not other._root:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._root.__slots__)

    def __repr__(self) -> str:
        shown = []
        for name in self._root.__slots__:
            value = getattr(self, name, ...)
            if value != self._defaults[name]:
                shown.append(f"{name}={value!r}")
        return f"{self._root.__qualname__}({', '.join(shown)})"


def _refuse(self: Struct, name: str, value: object) -> None:
    raise AttributeError(
        f"this {self._root.__qualname__} is the shared default: assign a new one instead of setting {name!r}"
    )


def _itself(self: object, memo: object = None) -> object:
    return self


class _FrozenList(list):
    """The empty list inside a shared default. It equals any empty list and refuses to grow."""

    __slots__ = ()
    __copy__ = __deepcopy__ = _itself

    def append(self, *_: object) -> None:
        raise AttributeError("this list belongs to a shared default: assign a new struct instead of adding to it")

    extend = insert = __iadd__ = append


class _Registry:
    """The only state of this module: file names, schema texts, classes and functions.

    It is filled on demand, never emptied.
    """

    def __init__(self) -> None:
        self.files: dict[str, tuple[int, str]] = {}
        self.texts: dict[str, str] = {}
        self.schemas: dict[type, notation.Message] = {}
        self.parts: dict[type, tuple[dict[str, type], dict[str, object]]] = {}
        self.functions: dict[tuple[type, int, str], Callable] = {}
        self.of_apis: dict[tuple[int, str], type] = {}

    def apis(self) -> dict[str, tuple[int, str]]:
        """Maps each API's name in snake case to (key, file), read from the file names."""
        if not self.files:
            for name in sorted(os.listdir(DIRECTORY)):
                if name[:3].isdigit():
                    self.files[name[4:-4]] = (int(name[:3]), name)
        return self.files

    def text(self, file: str) -> str:
        """The text of a schema file."""
        if file not in self.texts:
            with open(os.path.join(DIRECTORY, file), encoding="utf-8") as stream:
                self.texts[file] = stream.read()
        return self.texts[file]

    def parse(self, name: str) -> notation.Message | None:
        """The schema of a message by its class name, or None."""
        for suffix in ("Request", "Response"):
            entry = self.apis().get(_snake(name.removesuffix(suffix)))
            if name.endswith(suffix) and entry:
                found = notation.parse(self.text(entry[1]), entry[1], only=name)
                return found.get(name)
        for file in COLLECTIONS:
            if name in notation.headers(self.text(file)):
                return notation.parse(self.text(file), file, only=name)[name]
        return None


_registry = _Registry()


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


def __getattr__(name: str) -> type:
    if name[:1].isupper():
        message = _registry.parse(name)
        if message is not None:
            cls = _make_classes(message)
            globals()[name] = cls
            return cls
    raise AttributeError(f"module 'pykafkad.wire.messages' has no message {name!r}")


def _class_text(struct: notation.Struct) -> str:
    """The Python text of a struct's class with its `__init__`."""
    names = [field.name for field in struct.fields]
    parameters, body = [], []
    for field in struct.fields:
        if field.default is ...:
            parameters.append(f"{field.name}=default_{field.struct.name}")
        elif field.default == [] and field.is_array:
            parameters.append(f"{field.name}=...")
            body.append(f"        self.{field.name} = [] if {field.name} is ... else {field.name}")
            continue
        else:
            parameters.append(f"{field.name}={field.default!r}")
        body.append(f"        self.{field.name} = {field.name}")
    return (
        f"class {struct.name}(Struct):\n"
        f"    __slots__ = {tuple(names)!r}\n"
        f"    def __init__(self{', *, ' + ', '.join(parameters) if parameters else ''}):\n"
        + "\n".join(body or ["        pass"])
        + "\n"
    )


def _make_classes(message: notation.Message) -> type:
    """Makes the class of a message. Its nested classes become attributes."""
    namespace: dict[str, object] = {"Struct": Struct, "__name__": __name__}
    classes: dict[str, type] = {}
    defaults: dict[str, object] = {}
    # Inner structs come first: the constructor of an outer struct uses the default instance of an inner one.
    pending = [message.root, *message.structs.values()]
    while pending:
        ready = [s for s in pending if all(f.struct is None or f.struct.name in classes for f in s.fields)]
        text = "".join(_class_text(struct) for struct in ready)
        exec(compile(text, f"{message.name} classes", "exec"), namespace)
        for struct in ready:
            cls = classes[struct.name] = namespace[struct.name]
            _complete(cls, struct, defaults)
            namespace[f"default_{struct.name}"] = defaults[struct.name]
        pending = [struct for struct in pending if struct.name not in classes]
    root = classes[message.name]
    for name, cls in classes.items():
        if cls is not root:
            cls.__qualname__ = f"{message.name}.{name}"
            setattr(root, name, cls)
    _registry.schemas[root] = message
    _registry.parts[root] = (classes, defaults)
    return root


def _complete(cls: type, struct: notation.Struct, defaults: dict[str, object]) -> None:
    cls._root = cls
    guards = {"__slots__": (), "__setattr__": _refuse, "__copy__": _itself, "__deepcopy__": _itself}
    default = cls()
    for field in struct.fields:
        if field.default == []:
            setattr(default, field.name, _FrozenList())
    default.__class__ = type(struct.name, (cls,), guards)
    defaults[struct.name] = default
    cls._defaults = {name: getattr(default, name) for name in cls.__slots__}


def schema(cls: type) -> notation.Message:
    """The schema of a message class. Raises `TypeError` for anything else, nested structs included."""
    try:
        return _registry.schemas[cls]
    except KeyError:
        raise TypeError(f"{cls!r} is not a message class") from None


def valid_versions(cls: type) -> range:
    """The versions of a message in Kafka 4.3.1, as a range; it is empty for a message of another release."""
    message = schema(cls)
    return range(message.first, message.last + 1)


def known_versions(cls: type) -> range:
    """The versions of a message in all releases that `pykafkad.act.as` names, as a range."""
    message = schema(cls)
    return range(message.oldest, message.newest + 1)


def flexible_from(cls: type) -> int | None:
    """The first version with compact lengths and tags (KIP-482); None when there is none."""
    return schema(cls).flexible_from


def decoder(cls: type, version: int) -> Callable:
    """The function `decode(buffer, position) -> (message, end_position)`, compiled on first use.

    Raises `ProtocolError` for an unknown version.
    """
    try:
        return _registry.functions[cls, version, "decode"]
    except KeyError:
        return _compile(cls, version, "decode")


def encoder(cls: type, version: int) -> Callable:
    """The function `encode(message, chunks)`, compiled on first use. Raises `ProtocolError` for an unknown version."""
    try:
        return _registry.functions[cls, version, "encode"]
    except KeyError:
        return _compile(cls, version, "encode")


def incremental(cls: type, version: int, direction: str) -> Callable:
    """The `decode` or `encode` function of a version as a generator function, compiled on first use.

    `compiler.py` describes this incremental form.
    """
    try:
        return _registry.functions[cls, version, f"{direction} incremental"]
    except KeyError:
        return _compile(cls, version, direction, incremental=True)


def _compile(cls: type, version: int, direction: str, *, incremental: bool = False) -> Callable:
    message = schema(cls)
    if not message.oldest <= version <= message.newest:
        raise ProtocolError(f"{message.name} has versions {message.oldest}-{message.newest}, not {version}")
    function = compiler.build(direction, message, version, *_registry.parts[cls], incremental=incremental)
    _registry.functions[cls, version, f"{direction} incremental" if incremental else direction] = function
    return function


def encode(message: Struct, version: int) -> bytearray:
    """Encodes one message without file slices: records of internal logs, tests, tools."""
    chunks = [bytearray()]
    encoder(type(message), version)(message, chunks)
    return chunks[0]


def decode(cls: type, version: int, buffer: bytes | bytearray | memoryview) -> Struct:
    """Decodes one message that fills the buffer exactly. Raises `ProtocolError` when bytes are left."""
    message, end = decoder(cls, version)(buffer, 0)
    if end != len(buffer):
        raise ProtocolError(f"{len(buffer) - end} bytes are left after {cls.__name__} v{version}")
    return message


def _api_class(api_key: int, kind: str) -> type:
    # Each answer of another node asks for it.
    known = _registry.of_apis.get((api_key, kind))
    return known or _find_api_class(api_key, kind)


def _find_api_class(api_key: int, kind: str) -> type:
    for key, file in _registry.apis().values():
        if key == api_key:
            for name in notation.headers(_registry.text(file)):
                if name.endswith(kind):
                    found: type = globals().get(name) or __getattr__(name)
                    _registry.of_apis[api_key, kind] = found
                    return found
    raise ProtocolError(f"no API has key {api_key}")


def request_class(api_key: int) -> type:
    """The request class of an API key. Raises `ProtocolError` for an unknown key."""
    return _api_class(api_key, "Request")


def response_class(api_key: int) -> type:
    """The response class of an API key. Raises `ProtocolError` for an unknown key."""
    return _api_class(api_key, "Response")


def stored_class(name: str) -> type:
    """The class of a record, header or embedded protocol by its name. Raises `ProtocolError` for an unknown name."""
    try:
        return globals().get(name) or __getattr__(name)
    except AttributeError:
        raise ProtocolError(f"no message is named {name!r}") from None


def stored_types(file: str) -> dict[int, dict[str, type]]:
    """Maps each record type of an internal log to `{"Key": class, "Value": class}` or `{"Record": class}`.

    `file` is the log's schema file, such as `stored_groups.txt`.
    """
    found: dict[int, dict[str, type]] = {}
    for name in notation.headers(_registry.text(file)):
        cls = stored_class(name)
        message = schema(cls)
        if message.kind == "record":
            suffix = next(end for end in ("Key", "Value", "Record") if name.endswith(end))
            found.setdefault(message.key, {})[suffix] = cls
    return found


def record_type(cls: type) -> int:
    """The type number of a stored record, or the key of an API."""
    key = schema(cls).key
    if key is None:
        raise TypeError(f"{cls.__name__} has no type number")
    return key


def all_apis() -> list[tuple[int, str, range, int | None]]:
    """Every API of Kafka 4.3.1 that has a schema: (key, name, request versions, first flexible version), by key."""
    return [row for row in all_known_apis() if row[2]]


def all_known_apis() -> list[tuple[int, str, range, int | None]]:
    """The rows of `all_apis`, and those of other releases with an empty range."""
    rows = []
    for key, file in sorted(_registry.apis().values()):
        words = next(line for line in _registry.text(file).split("\n") if line.startswith("api ")).split()
        first, _, last = ("0", "", "-1") if words[4] == "none" else words[4].partition("-")
        flexible = None if words[-1] == "none" else int(words[-1].rstrip("+"))
        rows.append((key, words[2], range(int(first), int(last or first) + 1), flexible))
    return rows


def all_names() -> list[str]:
    """The names of all messages of Kafka 4.3.1: APIs by key, then the internal logs and the rest."""
    return [name for name in all_known_names() if valid_versions(stored_class(name))]


def all_known_names() -> list[str]:
    """The names of `all_names`, and those of other releases."""
    files = [file for _, file in sorted(_registry.apis().values())] + list(COLLECTIONS)
    return [name for file in files for name in notation.headers(_registry.text(file))]
