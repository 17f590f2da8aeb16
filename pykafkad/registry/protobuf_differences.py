"""How a Protobuf file differs from an earlier one, and what of that keeps data of the earlier one from being read: the
rules of Confluent's registry.

Fields are compared by their numbers, wherever in a message they stand. Types that are encoded alike may take each
other's place (https://protobuf.dev/programming-guides/proto3/#updating)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2

Field = descriptor_pb2.FieldDescriptorProto

COMPATIBLE = frozenset(
    (
        *("MESSAGE_ADDED", "MESSAGE_MOVED", "ENUM_ADDED", "ENUM_REMOVED"),
        *("ENUM_CONST_ADDED", "ENUM_CONST_CHANGED", "ENUM_CONST_REMOVED"),
        *("FIELD_ADDED", "FIELD_REMOVED", "FIELD_NAME_CHANGED", "FIELD_STRING_OR_BYTES_LABEL_CHANGED"),
        *("ONEOF_ADDED", "ONEOF_REMOVED", "ONEOF_FIELD_ADDED", "ONEOF_FIELD_MOVED_TO_TOP_LEVEL"),
    )
)
"""What does not keep anybody from reading; everything else does."""

MOST_STEPS = 20_000
"""So many messages are compared for one question: each is compared where it stands and where fields have it."""

_LIKE = {
    **dict.fromkeys(
        (Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT32, Field.TYPE_UINT64, Field.TYPE_BOOL, Field.TYPE_ENUM),
        "number",
    ),
    **dict.fromkeys((Field.TYPE_SINT32, Field.TYPE_SINT64), "signed number"),
    **dict.fromkeys((Field.TYPE_STRING, Field.TYPE_BYTES), "string or bytes"),
    **dict.fromkeys((Field.TYPE_FIXED32, Field.TYPE_SFIXED32), "fixed32"),
    **dict.fromkeys((Field.TYPE_FIXED64, Field.TYPE_SFIXED64), "fixed64"),
    Field.TYPE_FLOAT: "float",
    Field.TYPE_DOUBLE: "double",
}
"""The scalar types, with what those share that are encoded alike."""


class Difference(NamedTuple):
    """`kind` is Confluent's name of it, `place` leads there: names of messages and oneofs, numbers of fields."""

    kind: str
    place: str


class _Type(NamedTuple):
    """A message or an enum: its name without the package, and whether it is of the file that is compared."""

    name: str
    is_own: bool
    descriptor: Any


class _Side:
    """One of the two files, the last, with those that it imports."""

    def __init__(self, files: Sequence[Any]) -> None:
        self.file = files[-1]
        self.types: dict[str, _Type] = {}
        for file in files:
            prefix = f".{file.package}" if file.package else ""
            for each in (*file.message_type, *file.enum_type):
                self._add(prefix, "", each, file is self.file)

    def _add(self, prefix: str, outer: str, descriptor: Any, is_own: bool) -> None:
        name = f"{outer}.{descriptor.name}" if outer else descriptor.name
        self.types[f"{prefix}.{name}"] = _Type(name, is_own, descriptor)
        if isinstance(descriptor, descriptor_pb2.DescriptorProto):
            for each in (*descriptor.nested_type, *descriptor.enum_type):
                self._add(prefix, name, each, is_own)

    def entry(self, field: Any) -> Any:
        """The message of a map's entries; None for a field that is no map."""
        if field.type != Field.TYPE_MESSAGE:
            return None
        descriptor = self.types[field.type_name].descriptor
        return descriptor if descriptor.options.map_entry else None

    def label(self, field: Any) -> int | None:
        """The label that the file says; None where it says none."""
        if field.label != Field.LABEL_OPTIONAL:
            return int(field.label)
        if _is_in_oneof(field) or (self.file.syntax not in ("", "proto2") and not field.proto3_optional):
            return None
        return int(field.label)


def differences(earlier: Sequence[Any], later: Sequence[Any]) -> list[Difference]:
    """All differences of two files; each comes last in a list with all that it imports (FileDescriptorProto). Raises
    ValueError for files that take too long to compare."""
    comparison = _Comparison(_Side(earlier), _Side(later))
    if earlier[-1].package != later[-1].package:
        comparison.add("PACKAGE_CHANGED", ())
    comparison.types((), earlier[-1].message_type, later[-1].message_type, earlier[-1].enum_type, later[-1].enum_type)
    return comparison.found


def _is_in_oneof(field: Any) -> bool:
    return bool(field.HasField("oneof_index") and not field.proto3_optional)


Place = tuple[str, ...]


class _Comparison:
    def __init__(self, earlier: _Side, later: _Side) -> None:
        self._earlier, self._later = earlier, later
        self.found: list[Difference] = []
        self._open: set[int] = set()
        self._steps = 0

    def add(self, kind: str, place: Place) -> None:
        self.found.append(Difference(kind, f"#/{'/'.join(place)}"))

    # --- types --------------------------------------------------------------------------------------------------------

    def types(
        self, place: Place, earlier: Iterable[Any], later: Iterable[Any], was: Iterable[Any], now: Iterable[Any]
    ) -> None:
        """Messages, and enums as they were and are."""
        before, after = _numbered(earlier), _numbered(later)
        for name in sorted(before.keys() | after.keys()):
            inner = (*place, name)
            if name not in after:
                self.add("MESSAGE_REMOVED", inner)
            elif name not in before:
                self.add("MESSAGE_ADDED", inner)
            else:
                self._message(inner, before[name][1], after[name][1])
                if before[name][0] != after[name][0]:
                    self.add("MESSAGE_MOVED", inner)
        old, new = {each.name: each for each in was}, {each.name: each for each in now}
        for name in sorted(old.keys() | new.keys()):
            if name not in new:
                self.add("ENUM_REMOVED", (*place, name))
            elif name not in old:
                self.add("ENUM_ADDED", (*place, name))
            else:
                self._enum((*place, name), old[name], new[name])

    def _enum(self, place: Place, earlier: Any, later: Any) -> None:
        before = {each.number: each.name for each in earlier.value}
        after = {each.number: each.name for each in later.value}
        for number in sorted(before.keys() | after.keys()):
            if number not in after:
                self.add("ENUM_CONST_REMOVED", (*place, str(number)))
            elif number not in before:
                self.add("ENUM_CONST_ADDED", (*place, str(number)))
            elif before[number] != after[number]:
                self.add("ENUM_CONST_CHANGED", (*place, str(number)))

    def _message(self, place: Place, earlier: Any, later: Any) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise ValueError(f"the schemas are too large to be compared: more than {MOST_STEPS} messages")
        # One that is being compared further out, since it refers to itself, is not compared again.
        if id(earlier) not in self._open:
            self._open.add(id(earlier))
            self._fields(place, _Members(earlier), _Members(later))
            self._open.discard(id(earlier))
        self.types(place, earlier.nested_type, later.nested_type, earlier.enum_type, later.enum_type)

    # --- fields -------------------------------------------------------------------------------------------------------

    def _fields(self, place: Place, before: _Members, after: _Members) -> None:
        self._oneofs(place, before, after)
        for number in sorted(before.fields.keys() | after.fields.keys()):
            earlier, later = before.fields.get(number), after.fields.get(number)
            was_in, is_in = before.oneof_of.get(number), after.oneof_of.get(number)
            here = (*place, str(number))
            if later is None:
                if was_in is None:
                    self._lacking("REMOVED", here, earlier)
                elif not after.has_none_of(before, was_in):
                    self.add("ONEOF_FIELD_REMOVED", (*place, was_in, str(number)))
            elif earlier is None:
                if is_in is None:
                    self._lacking("ADDED", here, later)
                else:
                    self.add("ONEOF_FIELD_ADDED", (*place, is_in, str(number)))
            else:
                if was_in is not None and is_in is None:
                    self.add("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", here)
                self._field(here if is_in is None else (*place, is_in, str(number)), earlier, later)

    def _lacking(self, what: str, place: Place, field: Any) -> None:
        self.add(f"{'REQUIRED_' if field.label == Field.LABEL_REQUIRED else ''}FIELD_{what}", place)

    def _oneofs(self, place: Place, before: _Members, after: _Members) -> None:
        for name, numbers in after.oneofs.items():
            # Fields that could be set together, and of which only one can be from now on.
            alone = [number for number in numbers if number in before.fields and number not in before.oneof_of]
            groups = {before.oneof_of[number] for number in numbers if number in before.oneof_of}
            if len(alone) + len(groups) > 1:
                kind = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if len(alone) > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
                self.add(kind, (*place, name))
        for name in sorted(before.oneofs.keys() | after.oneofs.keys()):
            if name not in after.oneofs:
                self.add("ONEOF_REMOVED", (*place, name))
            elif name not in before.oneofs:
                self.add("ONEOF_ADDED", (*place, name))

    def _field(self, place: Place, earlier: Any, later: Any, *, is_in_map: bool = False) -> None:
        if earlier.name != later.name:
            self.add("FIELD_NAME_CHANGED", place)
        entries = self._earlier.entry(earlier), self._later.entry(later)
        kinds = [
            "map" if entry is not None else "scalar" if field.type in _LIKE else "message"
            for field, entry in zip((earlier, later), entries, strict=True)
        ]
        if kinds[0] != kinds[1]:
            self.add("FIELD_KIND_CHANGED", place)
        elif kinds[0] == "map":
            for one, other in zip(*(sorted(entry.field, key=_number) for entry in entries), strict=True):
                self._field(place, one, other, is_in_map=True)
        elif kinds[0] == "message":
            self._named(place, self._earlier.types[earlier.type_name], self._later.types[later.type_name])
        elif _LIKE[earlier.type] != _LIKE[later.type]:
            self.add("FIELD_SCALAR_KIND_CHANGED", place)
        elif not is_in_map:
            labels = self._earlier.label(earlier), self._later.label(later)
            if None not in labels and labels[0] != labels[1]:
                of = "STRING_OR_BYTES" if _LIKE[earlier.type] == "string or bytes" else "NUMERIC"
                self.add(f"FIELD_{of}_LABEL_CHANGED", place)

    def _named(self, place: Place, earlier: _Type, later: _Type) -> None:
        """A field's message. That of the file itself is compared where it stands."""
        if earlier.name != later.name:
            self.add("FIELD_NAMED_TYPE_CHANGED", place)
        elif not (earlier.is_own and later.is_own):
            first = len(self.found)
            self._message(tuple(earlier.name.split(".")), earlier.descriptor, later.descriptor)
            if any(each.kind not in COMPATIBLE for each in self.found[first:]):
                self.add("FIELD_NAMED_TYPE_CHANGED", place)


class _Members:
    """The fields of a message by number, without groups, and the oneofs that they are in."""

    def __init__(self, message: Any) -> None:
        self.fields = {each.number: each for each in message.field if each.type != Field.TYPE_GROUP}
        self.oneof_of: dict[int, str] = {}
        self.oneofs: dict[str, list[int]] = {}
        for each in self.fields.values():
            if _is_in_oneof(each):
                name = message.oneof_decl[each.oneof_index].name
                self.oneof_of[each.number] = name
                self.oneofs.setdefault(name, []).append(each.number)

    def has_none_of(self, before: _Members, name: str) -> bool:
        """Whether a oneof of an earlier message is gone with all its fields."""
        return name not in self.oneofs and not any(number in self.fields for number in before.oneofs[name])


def _number(field: Any) -> int:
    return int(field.number)


def _numbered(messages: Iterable[Any]) -> dict[str, tuple[int, Any]]:
    """Messages by name, with the place of each; those that stand for a map's entries are none."""
    return {each.name: (number, each) for number, each in enumerate(_told(messages))}


def _told(messages: Iterable[Any]) -> Iterator[Any]:
    return (each for each in messages if not each.options.map_entry)
