"""Turns a (message, version) into one decode or one encode function of straight-line Python.

`decode(buffer, position) -> (message, end_position)` and `encode(message, chunks)`; both raise `ProtocolError`. The
text of a function is written by one emitter per kind of type, nested structs inline, and compiled once under a name
like `FetchRequest v12 decode`, for which `linecache` finds the lines, so a traceback shows them. What makes it fast:

* consecutive fixed-size fields, and the length or the count that follows them, are one precompiled `struct.Struct`;
* a one-byte varint (all but long ones) is read by that same `Struct` and costs one comparison;
* there is no interpretation left at run time: absent fields are stores of constants.

Every length is compared with the bytes left before anything of its size is built.

The sliced form of a function has the same lines and is a generator, which yields before each element of an array and
returns what the function returns: long messages are read and written in turns of the loop. The buffer must then stay as
it is from turn to turn."""

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
    """Where the lines of a compiled function come from: `linecache` asks the `__loader__` of its globals, and they are
    written anew.

    So nothing is kept, and `linecache` (which brings `re` and `tokenize`) is not imported to serve.
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
    sliced: bool = False,
) -> Callable[..., Any]:
    """The `decode` or `encode` function of one version, or its sliced form."""
    write = write_decoder if direction == "decode" else write_encoder
    arguments = message, version, classes, defaults, sliced
    source, namespace = write(*arguments)
    name = f"{message.name} v{version} {direction}{' sliced' if sliced else ''}"
    namespace["__name__"] = name
    namespace["__loader__"] = Origin(write, arguments)
    exec(compile(source, name, "exec"), namespace)
    function: Callable[..., Any] = namespace[direction]
    return function


def write_decoder(
    message: Message, version: int, classes: dict[str, type], defaults: dict[str, object], sliced: bool = False
) -> tuple[str, dict[str, Any]]:
    """The text of a decode function and the names it uses."""
    writer = Decoder(message, version, classes, defaults, sliced)
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
    message: Message, version: int, classes: dict[str, type], defaults: dict[str, object], sliced: bool = False
) -> tuple[str, dict[str, Any]]:
    """The text of an encode function and the names it uses."""
    writer = Encoder(message, version, classes, defaults, sliced)
    writer.struct(message.root, "m0")
    first = ["    out = chunks[-1]", "    try:"]
    last = [
        "        pass",
        "    except (StructError, AttributeError, TypeError, UnicodeEncodeError) as error:",
        f"        raise ProtocolError('{message.name} v{version} cannot be encoded: {{}}'.format(error)) from error",
    ]
    return writer.text("encode(m0, chunks)", first, last), writer.namespace


def source(cls: type, version: int, direction: str) -> str:
    """The Python text of a message's `decode` or `encode` function at a version, as `pykafkad describe-apis --source`
    prints it."""
    from pykafkad.wire import messages

    if direction not in ("decode", "encode"):
        raise ValueError(f"direction is 'decode' or 'encode', not {direction!r}")
    function: Any = messages.decoder(cls, version) if direction == "decode" else messages.encoder(cls, version)
    origin: Origin = function.__globals__["__loader__"]
    return origin.get_source("")
