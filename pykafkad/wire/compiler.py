"""Compiles the decode and encode functions of each message version, as straight-line Python.

The functions are `decode(buffer, position) -> (message, end_position)` and `encode(message, chunks)`. Both raise
`ProtocolError`. One emitter per kind of type writes the text of a function, with nested structs inline. The function is
compiled once under a name like `FetchRequest v12 decode`. `linecache` finds its lines, so a traceback shows them.

What makes the functions fast:

* One precompiled `struct.Struct` reads consecutive fixed-size fields and the length or count that follows them.
* The same `Struct` reads a one-byte varint, which is the usual case; that costs one comparison.
* Nothing is interpreted at run time: an absent field is an assignment of a constant.

Every length is compared with the bytes that are left before anything of that size is allocated.

The incremental form of a function has the same lines and is a generator. It yields before each element of an array and
returns the function's result. So the loop can read or write a long message over several turns. The buffer must not
change between the turns.
"""

from __future__ import annotations

from pykafkad.wire.emitters import Decoder, Encoder
from pykafkad.wire.notation import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    # Writes the text of a function and the names that the text uses.
    Write = Callable[[Message, int, dict[str, type], dict[str, object], bool], tuple[str, dict[str, Any]]]


class Origin:
    """The source of a compiled function, for tracebacks.

    `linecache` asks the `__loader__` of the function's globals, which writes the text again. So no text is kept, and
    serving does not import `linecache`, which brings `re` and `tokenize`.
    """

    __slots__ = ("arguments", "write")

    def __init__(self, write: Write, arguments: tuple[Message, int, dict[str, type], dict[str, object], bool]) -> None:
        self.write = write
        self.arguments = arguments

    def get_source(self, name: str) -> str:
        """PEP 302's optional method."""
        return self.write(*self.arguments)[0]


def build(
    direction: str,
    message: Message,
    version: int,
    classes: dict[str, type],
    defaults: dict[str, object],
    *,
    incremental: bool = False,
) -> Callable[..., Any]:
    """Compiles the `decode` or `encode` function of one version, or its incremental form."""
    write = write_decoder if direction == "decode" else write_encoder
    arguments = message, version, classes, defaults, incremental
    source, namespace = write(*arguments)
    name = f"{message.name} v{version} {direction}{' incremental' if incremental else ''}"
    namespace["__name__"] = name
    namespace["__loader__"] = Origin(write, arguments)
    exec(compile(source, name, "exec"), namespace)
    function: Callable[..., Any] = namespace[direction]
    return function


def write_decoder(
    message: Message, version: int, classes: dict[str, type], defaults: dict[str, object], incremental: bool = False
) -> tuple[str, dict[str, Any]]:
    """Writes a decode function; returns its text and the names that the text uses."""
    writer = Decoder(message, version, classes, defaults, incremental)
    writer.struct(message.root, "m0")
    first = [
        "    view = buffer if type(buffer) is memoryview else memoryview(buffer)",
        "    limit = len(view)",
        "    left = MAX_ELEMENTS",
        "    try:",
    ]
    last = [
        "        return m0, position",
        "    except (StructError, IndexError):",
        f"        raise ProtocolError('{message.name} v{version} is cut off: {{}} bytes'.format(limit)) from None",
    ]
    return writer.text("decode(buffer, position)", first, last), writer.namespace


def write_encoder(
    message: Message, version: int, classes: dict[str, type], defaults: dict[str, object], incremental: bool = False
) -> tuple[str, dict[str, Any]]:
    """Writes an encode function; returns its text and the names that the text uses."""
    writer = Encoder(message, version, classes, defaults, incremental)
    writer.struct(message.root, "m0")
    first = ["    out = chunks[-1]", "    try:"]
    last = [
        "        pass",
        "    except (StructError, AttributeError, TypeError, UnicodeEncodeError) as error:",
        f"        raise ProtocolError('{message.name} v{version} cannot be encoded: {{}}'.format(error)) from error",
    ]
    return writer.text("encode(m0, chunks)", first, last), writer.namespace


def source(cls: type, version: int, direction: str) -> str:
    """The Python text of a message's `decode` or `encode` function at a version.

    `pykafkad describe-apis --source` prints it.
    """
    from pykafkad.wire import messages

    if direction not in ("decode", "encode"):
        raise ValueError(f"direction is 'decode' or 'encode', not {direction!r}")
    function: Any = messages.decoder(cls, version) if direction == "decode" else messages.encoder(cls, version)
    origin: Origin = function.__globals__["__loader__"]
    return origin.get_source("")
