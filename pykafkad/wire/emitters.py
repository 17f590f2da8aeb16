"""Writes the lines that decode or encode each kind of field, for `compiler.py`.

`Writer` collects the lines of one function. `Decoder` and `Encoder` walk over a message's fields and add lines to it.
"""

from __future__ import annotations

import struct as structs

from pykafkad.wire import primitives
from pykafkad.wire.notation import Field, Message, Struct

FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
# The names that every function may use: the primitives, and the two exceptions of bytes beyond the end.
RUNTIME = {name: value for name, value in vars(primitives).items() if name[0] != "_"}
RUNTIME.update(new=object.__new__, StructError=structs.error, pack=structs.pack, unpack_from=structs.unpack_from)


class Writer:
    """The lines of one function, their constants, and the run of fixed-size fields that is not written yet.

    `incremental` functions are generators that yield before each element of an array.
    """

    def __init__(
        self,
        message: Message,
        version: int,
        classes: dict[str, type],
        defaults: dict[str, object],
        incremental: bool = False,
    ) -> None:
        self.version = version
        self.incremental = incremental
        self.flexible = message.flexible(version)
        self.classes = classes
        self.defaults = defaults
        self.lines: list[str] = []
        self.depth = 2
        self.namespace: dict[str, object] = dict(RUNTIME)
        self.run: list[tuple[str, str]] = []
        self.count = 0

    def add(self, line: str) -> None:
        """Adds one line at the current depth."""
        self.lines.append("    " * self.depth + line)

    def each(self, loop: str) -> None:
        """Opens the body of a loop over elements."""
        self.add(loop)
        self.depth += 1
        if self.incremental:
            self.add("yield")

    def fresh(self, prefix: str) -> str:
        """A local name that is not used yet."""
        self.count += 1
        return f"{prefix}{self.count}"

    def packed(self, formats: str, method: str) -> str:
        """The name of a bound method of the `Struct` with these formats."""
        name = f"{method}_{formats.replace('?', 'o')}"
        self.namespace[name] = getattr(structs.Struct(">" + formats), method)
        return name

    def constant(self, struct: Struct) -> str:
        """The name of the shared default instance of a struct."""
        self.namespace[f"default_{struct.name}"] = self.defaults[struct.name]
        return f"default_{struct.name}"

    def literal(self, field: Field) -> str:
        """A field's default as an expression."""
        return self.constant(field.struct) if field.struct and field.default is ... else repr(field.default)

    def is_set(self, value: str, field: Field) -> str:
        """An expression that is true when the value is not the field's default."""
        if field.default is None:
            return f"({value} is not None)"
        if field.struct and field.default is ...:
            default = self.constant(field.struct)
            return f"({value} is not {default} and {value} != {default})"
        if field.is_array:
            return f"({value} is None or len({value}) > 0)" if field.null_from is not None else f"(len({value}) > 0)"
        return f"({value} != {field.default!r})"

    def fields(self, struct: Struct) -> tuple[list[Field], list[Field], list[Field]]:
        """The struct's fields in this version: untagged, tagged (ascending), absent."""
        alive = [field for field in struct.fields if field.alive(self.version)]
        tagged = sorted((field for field in alive if field.tag is not None), key=lambda field: field.tag or 0)
        absent = [field for field in struct.fields if not field.alive(self.version)]
        return [field for field in alive if field.tag is None], tagged, absent

    def text(self, signature: str, first: list[str], last: list[str]) -> str:
        """The whole function."""
        if self.incremental:
            # Without array elements, this line still makes the function a generator.
            first = ["    yield", *first]
        return "\n".join([f"def {signature}:", *first, *self.lines, *last]) + "\n"


def minimum_size(struct: Struct, writer: Writer) -> int:
    """The smallest number of bytes that one element of this struct takes in the writer's version; at least 1."""
    size = 1 if writer.flexible else 0
    for field in writer.fields(struct)[0]:
        length = 1 if writer.flexible and not field.rigid else 2 if field.type == "string" else 4
        if field.is_array or field.type in ("string", "bytes", "records"):
            size += length
        elif field.struct:
            size += 1 if field.nullable(writer.version) else minimum_size(field.struct, writer)
        elif field.type:
            size += structs.calcsize(">" + FORMATS[field.type])
    return max(size, 1)


class Decoder(Writer):
    """Emits decode functions."""

    def flush(self, length: str = "", formats: str = "") -> None:
        """Writes the line that reads the run of fixed-size fields.

        With `length`, the number after them goes into that local.
        """
        run = self.run + ([(length, formats)] if length else [])
        self.run = []
        if not run:
            return
        joined = "".join(code for _, code in run)
        if joined == "B":
            self.add(f"{length} = view[position]")
            self.add("position += 1")
            return
        targets = ", ".join(target for target, _ in run) + ("," if len(run) == 1 else "")
        self.add(f"{targets} = {self.packed(joined, 'unpack_from')}(view, position)")
        self.add(f"position += {structs.calcsize('>' + joined)}")

    def length(self, formats: str, rigid: bool = False, text: str = "") -> None:
        """Writes the lines that read a length into `n`; -1 means null.

        `text` names a string field: its compact length has the same limit as the two-byte one.
        """
        if self.flexible and not rigid:
            self.flush("n", "B")
            self.add("if n > 127:")
            self.add("    n, position = read_uvarint(view, position - 1)")
            if text:
                self.add("    if n > 32768:")
                self.add(f"        raise too_long({text!r}, n - 1, 32767)")
            self.add("n -= 1")
        else:
            self.flush("n", formats)

    def form(self, field: Field, label: str) -> tuple[str, bool, str]:
        """The arguments of `length` for a string, bytes or records field."""
        return ("h", field.rigid, label) if field.type == "string" else ("i", field.rigid, "")

    def refuse_null(self, target: str, field: Field, label: str) -> None:
        """Handles a null length, and opens the branch of a value that is not null."""
        self.add("if n < 0:")
        if field.nullable(self.version):
            self.add(f"    {target} = None")
        else:
            self.add(f"    raise unexpected_null({label!r})")
        self.add("else:")
        self.depth += 1

    def struct(self, struct: Struct, target: str) -> None:
        """Decodes a struct into a new object, bound to the local `target`."""
        self.namespace[f"new_{struct.name}"] = self.classes[struct.name]
        self.add(f"{target} = new(new_{struct.name})")
        plain, tagged, absent = self.fields(struct)
        for field in absent + tagged:
            self.add(f"{target}.{field.name} = {self.literal(field)}")
        for field in plain:
            self.value(field, f"{target}.{field.name}", f"{struct.name}.{field.name}")
        if self.flexible:
            self.tags(struct, tagged, target)
        else:
            self.flush()

    def tags(self, struct: Struct, tagged: list[Field], target: str) -> None:
        """Decodes the tag section. Unknown tags are skipped."""
        self.flush("n", "B")
        self.add("if n:")
        self.depth += 1
        self.add("if n > 127:")
        self.add("    n, position = read_uvarint(view, position - 1)")
        self.add("left -= n")
        self.add("if left < 0:")
        self.add(f"    raise too_many('tags of {struct.name}')")
        stop = self.fresh("stop")
        self.add("for _ in range(n):")
        self.depth += 1
        self.add("tag, position = read_uvarint(view, position)")
        self.add("n, position = read_uvarint(view, position)")
        self.add(f"{stop} = position + n")
        self.add(f"if {stop} > limit:")
        self.add(f"    raise overlong('tag of {struct.name}', n, position, limit)")
        for index, field in enumerate(tagged):
            label = f"{struct.name}.{field.name}"
            self.add(f"{'elif' if index else 'if'} tag == {field.tag}:")
            self.depth += 1
            self.value(field, f"{target}.{field.name}", label)
            self.flush()
            self.add(f"if position != {stop}:")
            self.add(f"    raise odd_tag({label!r}, position, {stop})")
            self.depth -= 1
        if tagged:
            self.add("else:")
            self.add(f"    position = {stop}")
        else:
            self.add(f"position = {stop}")
        self.depth -= 2

    def value(self, field: Field, target: str, label: str) -> None:
        """Decodes one field of any type into `target`."""
        if field.is_array:
            self.array(field, target, label)
        elif field.struct:
            self.nested(field, field.struct, target)
        elif field.type in FORMATS:
            self.run.append((target, FORMATS[field.type]))
        elif field.type:
            self.length(*self.form(field, label))
            self.refuse_null(target, field, label)
            self.sized(field.type, target, label)
            self.depth -= 1

    def nested(self, field: Field, struct: Struct, target: str) -> None:
        local = self.fresh("m")
        if field.nullable(self.version):
            # The byte before a nullable struct is -1 for null or 1 (KIP-893). In a tagged field it is unsigned, 0 or 1.
            self.flush("n", "b" if field.tag is None else "B")
            self.add("if n < 0:" if field.tag is None else "if n == 0:")
            self.add(f"    {target} = None")
            self.add("else:")
            self.depth += 1
            self.struct(struct, local)
            self.add(f"{target} = {local}")
            self.depth -= 1
        else:
            self.flush()
            self.struct(struct, local)
            self.add(f"{target} = {local}")

    def sized(self, kind: str, target: str, label: str) -> None:
        """Decodes `n` bytes as text, bytes or a view."""
        self.add("end = position + n")
        self.add("if end > limit:")
        self.add(f"    raise overlong({label!r}, n, position, limit)")
        slice_of = "view[position:end]"
        form = {"string": f"str({slice_of}, 'utf-8', 'replace')", "bytes": f"bytes({slice_of})", "records": slice_of}
        self.add(f"{target} = {form[kind]}")
        self.add("position = end")

    def array(self, field: Field, target: str, label: str) -> None:
        self.length("i")
        self.refuse_null(target, field, label)
        if field.struct:
            size = minimum_size(field.struct, self)
        elif field.type in FORMATS:
            size = structs.calcsize(">" + FORMATS[field.type])
        else:
            size = 1 if self.flexible else 2 if field.type == "string" else 4
        self.add("left -= n")
        self.add("if left < 0:")
        self.add(f"    raise too_many({label!r})")
        self.add(f"if n * {size} > limit - position:")
        self.add(f"    raise overlong({label!r}, n * {size}, position, limit)")
        items = self.fresh("items")
        if field.type in FORMATS and field.type != "uuid":
            self.add(f"{target} = list(unpack_from(f'>{{n}}{FORMATS[field.type]}', view, position))")
            self.add(f"position += n * {size}")
        else:
            self.add(f"{items} = {target} = []")
            self.each("for _ in range(n):")
            if field.struct:
                element = self.fresh("m")
                self.struct(field.struct, element)
                self.add(f"{items}.append({element})")
            elif field.type == "uuid":
                self.add(f"{items}.append(bytes(view[position:position + 16]))")
                self.add("position += 16")
            elif field.type:
                self.length(*self.form(field, label))
                self.add("if n < 0:")
                self.add(f"    raise unexpected_null({label!r})")
                self.sized(field.type, "text", label)
                self.add(f"{items}.append(text)")
            self.depth -= 1
        self.depth -= 1


class Encoder(Writer):
    """Emits encode functions."""

    def flush(self) -> None:
        """Writes the line that packs the run of fixed-size values."""
        run, self.run = self.run, []
        if run:
            joined = "".join(code for _, code in run)
            values = ", ".join(value for value, code in run if code != "x")
            self.add(f"out += {self.packed(joined, 'pack')}({values})" if values else f"out += {bytes(len(run))!r}")

    def length(self, size: str, formats: str, rigid: bool = False) -> None:
        """Writes the lines that encode the length of a value that is not null."""
        if self.flexible and not rigid:
            self.flush()
            self.add(f"n = {size} + 1")
            self.add("if n < 128:")
            self.add("    out.append(n)")
            self.add("else:")
            self.add("    append_uvarint(out, n)")
        else:
            self.run.append((size, formats))
            self.flush()

    def branch_null(self, value: str, field: Field, formats: str) -> bool:
        """Where the version allows null: encodes a null, opens the branch of other values, and returns True."""
        if not field.nullable(self.version):
            return False
        self.flush()
        width = 1 if self.flexible and not field.rigid else structs.calcsize(">" + formats)
        null = b"\0" if self.flexible and not field.rigid else b"\xff" * width
        self.add(f"if {value} is None:")
        self.add(f"    out += {null!r}")
        self.add("else:")
        self.depth += 1
        return True

    def struct(self, struct: Struct, source: str) -> None:
        """Encodes the struct that the local `source` is bound to."""
        plain, tagged, absent = self.fields(struct)
        for field in absent:
            if not field.drop:
                self.add(f"if {self.is_set(f'{source}.{field.name}', field)}:")
                self.add(f"    raise not_carried({f'{struct.name}.{field.name}'!r})")
        for field in plain:
            self.value(field, f"{source}.{field.name}", f"{struct.name}.{field.name}")
        if self.flexible:
            self.tags(struct, tagged, source)
        else:
            self.flush()

    def tags(self, struct: Struct, tagged: list[Field], source: str) -> None:
        """Encodes the tag section: the fields that differ from their default, in ascending order (KIP-482)."""
        flags = [self.fresh("set") for _ in tagged]
        for flag, field in zip(flags, tagged, strict=True):
            self.add(f"{flag} = {self.is_set(f'{source}.{field.name}', field)}")
        self.run.append((" + ".join(flags), "B") if flags else ("", "x"))
        self.flush()
        for flag, field in zip(flags, tagged, strict=True):
            self.add(f"if {flag}:")
            self.depth += 1
            outer = self.fresh("out")
            self.add(f"{outer} = out")
            self.add("out = bytearray()")
            self.value(field, f"{source}.{field.name}", f"{struct.name}.{field.name}")
            self.flush()
            self.add(
                f"append_uvarint({outer}, {field.tag})" if (field.tag or 0) > 127 else f"{outer}.append({field.tag})"
            )
            self.add(f"append_uvarint({outer}, len(out))")
            self.add(f"{outer} += out")
            self.add(f"out = {outer}")
            self.depth -= 1

    def value(self, field: Field, value: str, label: str) -> None:
        """Encodes one field of any type."""
        if field.is_array:
            self.array(field, value)
        elif field.struct:
            self.nested(field, field.struct, value)
        elif field.type in FORMATS:
            self.run.append((value, FORMATS[field.type]))
            if field.type == "uuid":
                self.check_uuid(value, label)
        elif field.type:
            local = self.fresh("v")
            self.add(f"{local} = {value}")
            formats = "h" if field.type == "string" else "i"
            opened = self.branch_null(local, field, formats)
            self.sized(field.type, formats, local, label, field.rigid)
            self.depth -= opened

    def check_uuid(self, value: str, label: str) -> None:
        # `16s` would silently pad or cut the id.
        self.add(f"if len({value}) != 16:")
        self.add(f"    raise too_long({label!r}, len({value}), 16)")

    def sized(self, kind: str, formats: str, local: str, label: str, rigid: bool = False) -> None:
        """Encodes text, bytes or records that are not null, with their length in front."""
        if kind == "records":
            self.records(local)
            return
        if kind == "string":
            self.add(f"{local} = {local}.encode()")
            # Java clients refuse longer strings, and the two-byte length cannot express more.
            self.add(f"if len({local}) > 32767:")
            self.add(f"    raise too_long({label!r}, len({local}), 32767)")
        self.length(f"len({local})", formats, rigid)
        self.add(f"out += {local}")

    def records(self, local: str) -> None:
        """Encodes bytes, or a file slice, which becomes a chunk of its own between two buffers."""
        size = self.fresh("size")
        self.flush()
        self.add(f"{size} = getattr({local}, 'chunk_size', None)")
        self.add(f"n = len({local}) if {size} is None else {size}")
        self.length("n", "i")
        self.add(f"if {size} is None:")
        self.add(f"    out += {local}")
        self.add(f"elif {size}:")
        self.add(f"    chunks.append({local})")
        self.add("    out = bytearray()")
        self.add("    chunks.append(out)")

    def nested(self, field: Field, struct: Struct, value: str) -> None:
        local = self.fresh("m")
        self.add(f"{local} = {value}")
        opened = False
        if field.nullable(self.version):
            self.flush()
            self.add(f"if {local} is None:")
            self.add("    out += b'\\xff'" if field.tag is None else "    out += b'\\0'")
            self.add("else:")
            self.depth += 1
            self.run.append(("1", "b"))
            opened = True
        self.struct(struct, local)
        self.depth -= opened

    def array(self, field: Field, value: str) -> None:
        items = self.fresh("items")
        self.add(f"{items} = {value}")
        if field.cached:
            self.cached_array(field, items)
            return
        opened = self.branch_null(items, field, "i")
        self.elements(field, value, items)
        self.depth -= opened

    def cached_array(self, field: Field, items: str) -> None:
        """Encodes an array that may be a `CachedArray`: uses its remembered bytes, or remembers them."""
        self.flush()
        start = self.fresh("start")
        self.add(f"if {items}.__class__ is CachedArray and {self.version} in {items}.encoded:")
        self.add(f"    out += {items}.encoded[{self.version}]")
        self.add("else:")
        self.depth += 1
        self.add(f"{start} = len(out)")
        self.elements(field, items, items)
        self.flush()
        self.add(f"if {items}.__class__ is CachedArray:")
        self.add(f"    {items}.encoded[{self.version}] = bytes(out[{start}:])")
        self.depth -= 1

    def elements(self, field: Field, value: str, items: str) -> None:
        """Encodes the count and the elements of an array that is not null."""
        self.length(f"len({items})", "i")
        if field.type in FORMATS and field.type != "uuid":
            self.add(f"if {items}:")
            self.add(f"    out += pack(f'>{{len({items})}}{FORMATS[field.type]}', *{items})")
        else:
            element = self.fresh("m")
            self.each(f"for {element} in {items}:")
            label = f"element of {value}"
            if field.struct:
                self.struct(field.struct, element)
            elif field.type == "uuid":
                self.check_uuid(element, label)
                self.add(f"out += {element}")
            elif field.type:
                self.sized(field.type, "h" if field.type == "string" else "i", element, label)
            self.depth -= 1
