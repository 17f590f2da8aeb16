"""A Protobuf file's descriptor as the text of a .proto file, in one form: two files that differ in white space and
comments alone have the same text.

The order is that of Confluent's registry: in a message what is reserved, options, fields, oneofs, groups, extensions,
messages and enums. Names of types are written in full, with a dot in front."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_encoding, text_format

Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {number: name.removeprefix("TYPE_").lower() for name, number in Field.Type.items()}
_LABELS = {Field.LABEL_REQUIRED: "required ", Field.LABEL_REPEATED: "repeated "}
MOST_FIELD, MOST_ENUM = (1 << 29) - 1, (1 << 31) - 1
_NAMED = (Field.TYPE_MESSAGE, Field.TYPE_ENUM, Field.TYPE_GROUP)
_INDENT = "  "


def text_of(files: Sequence[descriptor_pb2.FileDescriptorProto], *, is_sorted: bool = False) -> str:
    """The last of the files, which come with all that they import. With `is_sorted` also the order does not count in
    which imports, fields, values and what is reserved stand."""
    return _Writer(files, is_sorted).file(files[-1])


class _Writer:
    def __init__(self, files: Sequence[descriptor_pb2.FileDescriptorProto], is_sorted: bool) -> None:
        self._is_sorted = is_sorted
        self._pool: Any = None
        if any(each.name == "google/protobuf/descriptor.proto" for each in files):
            # Options of one's own are extensions, which only a pool with their files can read.
            self._pool = descriptor_pool.DescriptorPool()
            try:
                for each in files:
                    self._pool.Add(each)
            except TypeError as error:
                raise ValueError(f"it is no Protobuf schema that can be read here: {error}") from None
        self._syntax = "proto2"

    def file(self, file: Any) -> str:
        self._syntax = file.syntax or "proto2"
        if self._syntax == "editions":
            edition = descriptor_pb2.Edition.Name(file.edition).removeprefix("EDITION_")
            lines = [f'edition = "{edition}";']
        else:
            lines = [f'syntax = "{self._syntax}";']
        if file.package:
            lines.append(f"package {file.package};")
        public = [file.dependency[number] for number in file.public_dependency]
        plain = [name for name in file.dependency if name not in public]
        if self._is_sorted:
            public.sort()
            plain.sort()
        lines += self._block([f'import "{name}";' for name in plain] + [f'import public "{name}";' for name in public])
        lines += self._block(self._option_lines(file.options))
        types = [line for each in file.message_type for line in self._message(each)]
        types += [line for each in file.enum_type for line in self._enum(each)]
        lines += self._block(types)
        lines += self._block(self._extensions(file.extension, file.message_type))
        lines += self._block([line for each in file.service for line in self._service(each)])
        return "".join(f"{line}\n" for line in lines)

    @staticmethod
    def _block(lines: list[str]) -> list[str]:
        """With an empty line in front of it."""
        return ["", *lines] if lines else []

    def _by(self, rows: Iterable[Any], key: Callable[[Any], Any]) -> list[Any]:
        return sorted(rows, key=key) if self._is_sorted else list(rows)

    # --- messages and enums -------------------------------------------------------------------------------------------

    def _message(self, message: Any) -> list[str]:
        return _braced(f"message {message.name}", self._message_body(message))

    def _message_body(self, message: Any) -> list[str]:
        fields = self._by(message.field, lambda each: each.number)
        groups = {each.type_name.rpartition(".")[2] for each in fields if each.type == Field.TYPE_GROUP}
        maps = {each.name: each for each in message.nested_type if each.options.map_entry}
        blocks = [self._reserved(message, MOST_FIELD, 1), self._option_lines(message.options)]
        alone = [each for each in fields if not _is_in_oneof(each)]
        blocks.append(
            [line for each in alone if each.type != Field.TYPE_GROUP for line in self._field(each, maps)],
        )
        blocks.append(self._oneofs(message, fields, maps))
        blocks.append([line for each in alone if each.type == Field.TYPE_GROUP for line in self._group(each, message)])
        ranges = self._by(message.extension_range, lambda each: each.start)
        blocks.append(
            [
                f"extensions {_range(each.start, each.end - 1, MOST_FIELD)}{self._options(each.options)};"
                for each in ranges
            ]
        )
        blocks.append(self._extensions(message.extension, message.nested_type))
        extended = {each.type_name.rpartition(".")[2] for each in message.extension if each.type == Field.TYPE_GROUP}
        inner = [each for each in message.nested_type if each.name not in groups | extended | maps.keys()]
        types = [line for each in inner for line in self._message(each)]
        types += [line for each in message.enum_type for line in self._enum(each)]
        blocks.append(types)
        return [line for block in blocks for line in self._block(block)]

    def _oneofs(self, message: Any, fields: list[Any], maps: dict[str, Any]) -> list[str]:
        found = []
        for number, oneof in enumerate(message.oneof_decl):
            members = [each for each in fields if _is_in_oneof(each) and each.oneof_index == number]
            if members:
                lines = self._option_lines(oneof.options)
                for each in members:
                    lines += self._group(each, message) if each.type == Field.TYPE_GROUP else self._field(each, maps)
                found.append((members[0].number, _braced(f"oneof {oneof.name}", ["", *lines])))
        return [line for _, lines in self._by(found, lambda each: each[0]) for line in lines]

    def _enum(self, enum: Any) -> list[str]:
        body = self._reserved(enum, MOST_ENUM, 0)
        body += self._option_lines(enum.options)
        values = self._by(enum.value, lambda each: (each.number, each.name))
        body += [f"{each.name} = {each.number}{self._options(each.options)};" for each in values]
        return _braced(f"enum {enum.name}", ["", *body])

    def _reserved(self, holder: Any, most: int, beyond: int) -> list[str]:
        """`beyond` is what the end of a range is beyond its last number: they are told in two ways."""
        ranges = self._by(holder.reserved_range, lambda each: each.start)
        lines = [f"reserved {_range(each.start, each.end - beyond, most)};" for each in ranges]
        names = sorted(holder.reserved_name) if self._is_sorted else holder.reserved_name
        quote = "" if self._syntax == "editions" else '"'
        return lines + [f"reserved {quote}{name}{quote};" for name in names]

    # --- fields -------------------------------------------------------------------------------------------------------

    def _label(self, field: Any) -> str:
        if field.label in _LABELS:
            return _LABELS[field.label]
        is_told = self._syntax == "proto2" and not _is_in_oneof(field)
        return "optional " if is_told or field.proto3_optional else ""

    def _field(self, field: Any, maps: dict[str, Any]) -> list[str]:
        entry = maps.get(field.type_name.rpartition(".")[2]) if field.type == Field.TYPE_MESSAGE else None
        if entry is None:
            kind = f"{self._label(field)}{_type(field)}"
        else:
            key, value = sorted(entry.field, key=lambda each: each.number)
            kind = f"map<{_type(key)}, {_type(value)}>"
        return [f"{kind} {field.name} = {field.number}{self._field_options(field)};"]

    def _field_options(self, field: Any) -> str:
        own = []
        if field.HasField("default_value"):
            text = field.default_value
            if field.type == Field.TYPE_STRING:
                text = f'"{text_encoding.CEscape(text, as_utf8=True)}"'
            elif field.type == Field.TYPE_BYTES:
                text = f'"{text}"'  # As it is escaped already.
            own.append(f"default = {text}")
        if field.json_name and field.json_name != _json_name(field.name):
            own.append(f'json_name = "{text_encoding.CEscape(field.json_name, as_utf8=True)}"')
        return self._options(field.options, own)

    def _group(self, field: Any, holder: Any) -> list[str]:
        name = field.type_name.rpartition(".")[2]
        nested = holder if isinstance(holder, list) else holder.nested_type
        body = next(each for each in nested if each.name == name)
        head = f"{self._label(field)}group {name} = {field.number}{self._field_options(field)}"
        return _braced(head, self._message_body(body))

    def _extensions(self, fields: Iterable[Any], messages: Any) -> list[str]:
        by_message: dict[str, list[str]] = {}
        for each in self._by(fields, lambda row: row.number):
            lines = self._group(each, list(messages)) if each.type == Field.TYPE_GROUP else self._field(each, {})
            by_message.setdefault(each.extendee, []).extend(lines)
        return [line for name, lines in by_message.items() for line in _braced(f"extend {name}", ["", *lines])]

    # --- services -----------------------------------------------------------------------------------------------------

    def _service(self, service: Any) -> list[str]:
        lines = self._option_lines(service.options)
        for each in service.method:
            asked = f"{'stream ' if each.client_streaming else ''}{each.input_type}"
            answer = f"{'stream ' if each.server_streaming else ''}{each.output_type}"
            head = f"rpc {each.name} ({asked}) returns ({answer})"
            options = self._option_lines(each.options)
            lines += _braced(head, ["", *options]) if options else [f"{head};"]
        return _braced(f"service {service.name}", ["", *lines])

    # --- options ------------------------------------------------------------------------------------------------------

    def _option_lines(self, options: Any) -> list[str]:
        return [f"option {each};" for each in self._option_texts(options)]

    def _options(self, options: Any, own: Sequence[str] = ()) -> str:
        found = [*self._option_texts(options), *own]
        return f" [{', '.join(found)}]" if found else ""

    def _option_texts(self, options: Any) -> list[str]:
        if self._pool is not None:
            known = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
            options = message_factory.GetMessageClass(known).FromString(options.SerializeToString())
        found = []
        for field, value in options.ListFields():
            if field.name == "map_entry":
                continue
            name = f"(.{field.full_name})" if field.is_extension else field.name
            for each in value if field.is_repeated else [value]:
                found.append(f"{name} = {_value(field, each)}")
        return sorted(found) if self._is_sorted else found


def _value(field: Any, value: Any) -> str:
    if field.message_type is not None:
        return f"{{ {text_format.MessageToString(value, as_one_line=True, as_utf8=True)} }}"
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else str(known.name)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, bytes)):
        return f'"{text_encoding.CEscape(value, as_utf8=isinstance(value, str))}"'
    return repr(value)


def _braced(head: str, body: list[str]) -> list[str]:
    """Lines between braces, of which the first is empty as a rule: it is the end of the line with the brace."""
    lines = [f"{_INDENT}{line}" if line else "" for line in body]
    if lines and not lines[0]:
        lines = lines[1:]
    return [f"{head} {{", *lines, "}"] if lines else [f"{head} {{}}"]


def _is_in_oneof(field: Any) -> bool:
    return bool(field.HasField("oneof_index") and not field.proto3_optional)


def _type(field: Any) -> str:
    return str(field.type_name) if field.type in _NAMED or field.type_name else _TYPES[field.type]


def _range(first: int, last: int, most: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last >= most else last}"


def _json_name(name: str) -> str:
    """What protoc makes of a field's name."""
    return re.sub(r"_+([A-Za-z0-9]?)", lambda found: found[1].upper(), name)
