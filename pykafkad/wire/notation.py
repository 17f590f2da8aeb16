"""Parses the column notation of the schema files into `Message` values.

    api 12 Heartbeat request 0-4  flexible 4+
      group_id           string
      group_instance_id  string?  3+  = null

A header line opens a message: `api KEY NAME request|response VERSIONS flexible FROM`, `record TYPE NAME VERSIONS
flexible FROM` (a record of an internal log) or `data NAME VERSIONS flexible FROM`. FROM is `4+` or `none`. VERSIONS are
those of Kafka 4.3.1 (`none` if it lacks the message). `of 0-13` behind them are all that are known, with those of other
releases. The next lines have one row per field, in wire order, indented by two spaces per level of nesting:

    name  type  [life]  [tag N]  [null N+]  [drop]  [rigid]  [cached]  [= default]

* type: a scalar (`bool int8 int16 uint16 int32 uint32 int64 float64 uuid string bytes records`), `{Struct}`, or `[X]`,
  an array of either. `?` makes it nullable. A struct's rows follow its first use in the message, one level deeper;
  later uses only name the struct.
* life: the versions that carry the field (`3+`, `0-7`, `5`); without it, all versions do.
* `tag N`: a tagged field (KIP-482). `null N+`: nullable only from that version. `drop`: a value that the version does
  not carry is left out; without `drop` it is an error. `rigid`: the field keeps its two-byte length in
  flexible versions. `cached`: the array of structs may be a `messages.CachedArray`, which remembers its encoded bytes.
* `= default`: the value of an absent field. Without it, that is zero, false, an empty string, bytes or list, or a
  struct of defaults; for nullable records it is null.

`#` starts a comment. Every error is a `NotationError` that names file, line and what is allowed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCALARS = frozenset(
    ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "string", "bytes", "records")
)
LATEST = 32767
MAX_DEPTH = 8
_ZERO = {"bool": False, "float64": 0.0, "uuid": bytes(16), "string": "", "bytes": b"", "records": b""}


class NotationError(Exception):
    """A schema text is invalid. The message names file, line, the offending words and what is allowed."""


class Field:
    """One row. `type` is the name of a scalar, or None for a struct, which `struct` then holds.

    `first` and `last` version are inclusive. `default` is the value of an absent field, `...` for a struct of defaults.
    `null_from` is None where null is never allowed.
    """

    __slots__ = (
        "cached",
        "default",
        "drop",
        "first",
        "is_array",
        "last",
        "line",
        "name",
        "null_from",
        "rigid",
        "struct",
        "tag",
        "type",
    )  # fmt: skip

    name: str
    type: str | None
    struct: Struct | None
    is_array: bool
    first: int
    last: int
    tag: int | None
    null_from: int | None
    default: Any
    drop: bool
    rigid: bool
    cached: bool
    line: int

    def alive(self, version: int) -> bool:
        """Whether this version carries the field."""
        return self.first <= version <= self.last

    def nullable(self, version: int) -> bool:
        """Whether null is allowed in this version."""
        return self.null_from is not None and version >= self.null_from


class Struct:
    """A named list of fields. One struct serves every version of its message."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: list[Field] = []


class Message:
    """One message. `kind` is request, response, record or data. `key` is the API key or record type (None for data).

    `first` and `last` are the versions of Kafka 4.3.1 (0 and -1: none), `oldest` and `newest` those of all releases.
    """

    __slots__ = (
        "first",
        "flexible_from",
        "key",
        "kind",
        "last",
        "name",
        "newest",
        "oldest",
        "root",
        "source",
        "structs",
    )  # fmt: skip

    name: str
    kind: str
    key: int | None
    first: int
    last: int
    oldest: int
    newest: int
    flexible_from: int | None
    root: Struct
    structs: dict[str, Struct]
    source: str

    def flexible(self, version: int) -> bool:
        """Whether this version uses compact lengths and tagged fields."""
        return self.flexible_from is not None and version >= self.flexible_from


def _range(text: str, where: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if text.endswith("+") and text[:-1].isdigit():
        return int(text[:-1]), LATEST
    if first.isdigit() and (not dash or last.isdigit()):
        pair = (int(first), int(last) if dash else int(first))
        if pair[0] <= pair[1]:
            return pair
    raise NotationError(f"{where}: {text!r} is not a version range: write 3, 0-7 or 3+")


def _header(words: list[str], where: str, source: str) -> Message:
    form = (
        "api KEY NAME request|response VERSIONS [of VERSIONS] flexible N+|none, record TYPE NAME VERSIONS …, or data "
        "NAME VERSIONS …"
    )
    message = Message()
    message.source = source
    message.key = None
    body = words[1:]
    if words[0] in ("api", "record") and body and body[0].lstrip("-").isdigit():
        message.key = int(body.pop(0))
    elif words[0] != "data":
        raise NotationError(f"{where}: a header is {form}; found {' '.join(words)!r}")
    if words[0] == "api" and len(body) > 1 and body[1] in ("request", "response"):
        message.kind = body.pop(1)
    else:
        message.kind = words[0]
    known = body[3] if len(body) == 6 and body[2] == "of" else None
    if known is not None:
        del body[2:4]
    if len(body) != 4 or body[2] != "flexible" or message.kind == "api":
        raise NotationError(f"{where}: a header is {form}; found {' '.join(words)!r}")
    message.name = body[0] + {"request": "Request", "response": "Response"}.get(message.kind, "")
    message.first, message.last = (0, -1) if body[1] == "none" and known is not None else _range(body[1], where)
    message.oldest, message.newest = (message.first, message.last) if known is None else _range(known, where)
    if message.newest < message.last or (message.first <= message.last and message.first < message.oldest):
        raise NotationError(f"{where}: {known} has not all versions of {body[1]}")
    message.flexible_from = None if body[3] == "none" else _range(body[3], where)[0]
    message.root = Struct(message.name)
    message.structs = {}
    return message


def _default(text: str, field: Field, where: str) -> object:
    if text == "null":
        if field.null_from is None:
            raise NotationError(f"{where}: {field.name} is not nullable, so its default cannot be null")
        return None
    if field.type == "bool" and text in ("true", "false"):
        return text == "true"
    if not field.is_array and field.type is not None and "int" in field.type and text.lstrip("-").isdigit():
        return int(text)
    raise NotationError(
        f"{where}: {text!r} cannot be the default of {field.name}: write null, true, false or an integer"
    )


def _type(text: str, field: Field, message: Message, where: str) -> str | None:
    """Sets the field's type, array and nullability; returns the name of its struct, if it has one."""
    field.null_from = 0 if text.endswith("?") else None
    text = text.rstrip("?")
    field.is_array = text[0] == "[" and text[-1] == "]"
    inner = text[1:-1] if field.is_array or (text[0] == "{" and text[-1] == "}") else text
    if inner in SCALARS and text[0] != "{" and not (field.is_array and inner == "records"):
        field.type = inner
        return None
    if inner is text or not inner.isidentifier() or not inner[0].isupper():
        raise NotationError(
            f"{where}: unknown type {text!r}: a scalar ({', '.join(sorted(SCALARS))}), {{Struct}} or [X]"
        )
    field.type = None
    return inner


def _field(words: list[str], message: Message, where: str, line: int) -> tuple[Field, str | None]:
    field = Field()
    field.line = line
    if len(words) < 2 or not words[0].isidentifier():
        raise NotationError(
            f"{where}: a row is name, type, [life], [tag N], [null N+], [drop], [rigid], [cached], [= default]"
        )
    field.name = words[0]
    struct_name = _type(words[1], field, message, where)
    field.first, field.last, field.tag = 0, LATEST, None
    field.drop = field.rigid = field.cached = False
    field.default = [] if field.is_array else ... if field.type is None else _ZERO.get(field.type, 0)
    if field.type == "records" and field.null_from is not None:
        field.default = None
    rest = words[:1:-1]
    if rest and rest[-1][0].isdigit():
        field.first, field.last = _range(rest.pop(), where)
    while rest:
        word = rest.pop()
        if word == "drop":
            field.drop = True
        elif word == "rigid":
            field.rigid = True
        elif word == "cached" and field.is_array and field.type is None and field.null_from is None:
            field.cached = True
        elif word == "tag" and rest and rest[-1].isdigit():
            field.tag = int(rest.pop())
        elif word == "null" and rest and field.null_from is not None:
            field.null_from = _range(rest.pop(), where)[0]
        elif word == "=" and len(rest) == 1:
            field.default = _default(rest.pop(), field, where)
        else:
            raise NotationError(
                f"{where}: {word!r} is not understood: write tag N, null N+ (of a nullable type), drop, rigid, "
                "cached (of an array of structs) or = default"
            )
    return field, struct_name


def headers(text: str) -> dict[str, int]:
    """Maps each message of a schema text to the line (from 0) of its header, without reading the rows."""
    found = {}
    for number, line in enumerate(text.split("\n")):
        if line and line[0] not in " #":
            words = line.split()
            kind = words[3].capitalize() if words[0] == "api" and len(words) > 3 else ""
            found[words[1 if words[0] == "data" else 2] + kind if len(words) > 2 else line] = number
    return found


def parse(text: str, source: str, only: str | None = None) -> dict[str, Message]:
    """Parses a schema text. `source` names it in errors; `only` selects one message. Raises `NotationError`."""
    lines = text.split("\n")
    start = 0 if only is None else headers(text)[only]
    messages: dict[str, Message] = {}
    message = None
    stack: list[Struct | None] = []
    for number, raw in enumerate(lines[start:], start + 1):
        line = raw.partition("#")[0].rstrip()
        if not line:
            continue
        where = f"{source}:{number}"
        words = line.split()
        if line[0] != " ":
            if only is not None and messages:
                break
            message = _header(words, where, source)
            if message.name in messages:
                raise NotationError(f"{where}: {message.name} is defined twice")
            messages[message.name] = message
            stack = [message.root]
            continue
        indent = len(line) - len(line.lstrip(" "))
        depth = indent // 2
        if message is None or indent % 2 or depth > len(stack) or stack[depth - 1] is None:
            raise NotationError(
                f"{where}: a row is indented by two spaces per level, below a message, a {{Struct}} or a [Struct]"
            )
        if depth > MAX_DEPTH:
            raise NotationError(f"{where}: nested deeper than {MAX_DEPTH}")
        field, struct_name = _field(words, message, where, number)
        _add(message, stack, depth, field, struct_name, where)
    for each in messages.values():
        _check(each)
    return messages


def _add(
    message: Message, stack: list[Struct | None], depth: int, field: Field, struct_name: str | None, where: str
) -> None:
    owner = stack[depth - 1]
    assert owner is not None
    if any(other.name == field.name for other in owner.fields):
        raise NotationError(f"{where}: {owner.name} has two fields named {field.name}")
    owner.fields.append(field)
    del stack[depth:]
    field.struct = None
    if struct_name is not None:
        known = message.structs.get(struct_name)
        if known is None:
            known = message.structs[struct_name] = Struct(struct_name)
        field.struct = known
        # Rows may follow only the struct's first use. A second definition could contradict the first.
        stack.append(None if known.fields else known)


def _check(message: Message) -> None:
    """Checks a whole message: structs without rows, duplicate tags, tags in a message that is never flexible."""
    for struct in (message.root, *message.structs.values()):
        if struct is not message.root and not struct.fields:
            raise NotationError(f"{message.source}: {message.name} uses {struct.name}, which has no rows")
        tags = [field for field in struct.fields if field.tag is not None]
        if len({field.tag for field in tags}) != len(tags):
            raise NotationError(f"{message.source}: {struct.name} uses a tag twice")
        for field in tags:
            if message.flexible_from is None:
                raise NotationError(
                    f"{message.source}:{field.line}: {field.name} has a tag, but {message.name} is never flexible"
                )
            field.first = max(field.first, message.flexible_from)
