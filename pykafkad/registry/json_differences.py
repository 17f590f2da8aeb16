"""Why a JSON Schema does not accept everything that an earlier one does: the rules of Confluent's registry, strict.

Both are compared keyword by keyword. What only tells people (titles, descriptions, defaults) does not count. An object
without `additionalProperties` has an open content model: it accepts any other property, so that a property that is
added to it narrows what it accepts, unless its schema accepts everything; from a closed one, none may be removed.

Schemas that refer to themselves are compared once: a pair that is being compared further out counts as compatible."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from pykafkad.settings import regular_expressions

MOST_STEPS = 20_000
"""So many pairs of schemas are compared for one question; combined schemas multiply them."""

MOST_WORK = 5_000_000
"""So many names, listed values and the like are looked at for one question: a second or two."""

MATCH_WORK = 100
"""What matching one name against one pattern counts for."""


class Difference(NamedTuple):
    """`kind` is Confluent's name of it, `text` says where it is."""

    kind: str
    text: str


class _Side(NamedTuple):
    root: Any
    referred: dict[str, Any]


_UPPER = {"maxLength": "MAX_LENGTH", "maxItems": "MAX_ITEMS", "maxProperties": "MAX_PROPERTIES"} | {
    "maxContains": "MAX_CONTAINS",
    "maximum": "MAXIMUM",
    "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
}
_LOWER = {"minLength": "MIN_LENGTH", "minItems": "MIN_ITEMS", "minProperties": "MIN_PROPERTIES"} | {
    "minContains": "MIN_CONTAINS",
    "minimum": "MINIMUM",
    "exclusiveMinimum": "EXCLUSIVE_MINIMUM",
}
_OF_TYPE = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("multipleOf", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"),
    "array": (
        *("items", "additionalItems", "unevaluatedItems", "prefixItems", "minItems", "maxItems", "uniqueItems"),
        *("contains", "minContains", "maxContains"),
    ),
    "object": (
        *("properties", "required", "additionalProperties", "unevaluatedProperties", "patternProperties"),
        *("dependencies", "dependentRequired", "dependentSchemas", "minProperties", "maxProperties"),
    ),
}
_OTHER_PROPERTIES = ("additionalProperties", "unevaluatedProperties")
_COMBINED = ("allOf", "anyOf", "oneOf")
_ASIDE = ("$schema", "$id", "id", "$comment", "title", "description", "default", "examples", "definitions", "$defs")


def differences(
    earlier: Any, earlier_referred: dict[str, Any], later: Any, later_referred: dict[str, Any]
) -> list[Difference]:
    """What `later` does not accept of what `earlier` does, with the schemas that each refers to, by name. Raises
    ValueError for a reference to what is not there, and for schemas that take too long."""
    return _Comparison(_Side(earlier, earlier_referred), _Side(later, later_referred)).run()


class _Comparison:
    def __init__(self, earlier: _Side, later: _Side) -> None:
        self._earlier = earlier
        self._later = later
        self._under_way: set[tuple[int, int]] = set()
        self._steps = 0
        self._work = 0

    def _add_work(self, amount: int) -> None:
        self._work += amount
        if self._work > MOST_WORK:
            raise ValueError("the schemas are too large to be compared")

    def run(self) -> list[Difference]:
        return list(self._compare(self._earlier.root, self._later.root, "#/"))

    def _compare(self, old: Any, new: Any, path: str) -> list[Difference]:
        old, new = _followed(old, self._earlier), _followed(new, self._later)
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise ValueError(f"the schemas are combined in more than {MOST_STEPS} ways")
        pair = id(old), id(new)
        if pair in self._under_way:
            return []
        self._under_way.add(pair)
        try:
            return list(self._compare_parts(old, new, path))
        finally:
            self._under_way.discard(pair)

    def _compare_parts(self, old: Any, new: Any, path: str) -> Iterator[Difference]:
        if _is_empty(new) or old is False:
            return
        if new is False or _is_empty(old):
            yield Difference("TYPE_CHANGED", f"{path}: accepts less than everything")
            return
        if not (isinstance(old, dict) and isinstance(new, dict)):
            raise ValueError(f"{path}: a $ref leads to what is no schema")
        self._add_work(_size(old) + _size(new))
        old_rest, old_groups = _split(old)
        new_rest, new_groups = _split(new)
        # What stands beside a combination is one more of the schemas that must all hold.
        if old_groups or new_groups:
            yield from self._combined(old_rest, old_groups, new_rest, new_groups, path)
            return
        yield from self._plain(old, new, path)

    # --- schemas that combine others ----------------------------------------------------------------------------------

    def _combined(
        self,
        old_rest: dict[str, Any],
        old_groups: list[tuple[str, list[Any]]],
        new_rest: dict[str, Any],
        new_groups: list[tuple[str, list[Any]]],
        path: str,
    ) -> Iterator[Difference]:
        """Everything that the later schema demands must follow from something that the earlier one does."""
        old_demands: list[tuple[str, list[Any]]] = [("allOf", [old_rest])] if old_rest else []
        new_demands: list[tuple[str, list[Any]]] = [("allOf", [new_rest])] if new_rest else []
        old_demands += _demands(old_groups)
        new_demands += _demands(new_groups)
        for how, choices in new_demands:
            if not any(self._follows(demand, (how, choices), path) for demand in old_demands):
                yield Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED", f"{path}: {how} accepts less")

    def _follows(self, old: tuple[str, list[Any]], new: tuple[str, list[Any]], path: str) -> bool:
        """Whether each choice of the earlier demand is accepted by a choice of the later one."""
        return all(any(not self._compare(each, choice, path) for choice in new[1]) for each in old[1])

    # --- schemas of one type ------------------------------------------------------------------------------------------

    def _plain(self, old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Difference]:
        if "enum" in new or "const" in new:
            yield from self._values(old, new, path)
        if "not" in new:
            if "not" not in old or self._swapped(new["not"], old["not"], path):
                yield Difference("NOT_TYPE_EXTENDED", f"{path}not")
        old_type, new_type = _type(old), _type(new)
        if new_type is None:
            return
        listed = _listed(old)
        if listed is not None:
            # The values tell their type.
            if not all(_is_of(new_type, value) for value in listed):
                yield Difference("TYPE_CHANGED", f"{path}: not all values are of the type {new_type}")
            return
        if old_type != new_type and (old_type, new_type) != ("integer", "number"):
            kind = "TYPE_NARROWED" if (old_type, new_type) == ("number", "integer") else "TYPE_CHANGED"
            yield Difference(kind, f"{path}: {old_type or 'any'} became {new_type}")
            return
        if new_type == "string":
            yield from _bounds(old, new, path)
            if new.get("pattern") not in (None, old.get("pattern")):
                yield Difference("PATTERN_CHANGED" if "pattern" in old else "PATTERN_ADDED", f"{path}pattern")
        elif new_type in ("number", "integer"):
            yield from _bounds(old, new, path)
            yield from _multiple(old, new, path)
        elif new_type == "array":
            yield from _bounds(old, new, path)
            yield from self._items(old, new, path)
        elif new_type == "object":
            yield from _bounds(old, new, path)
            yield from self._object(old, new, path)

    def _swapped(self, old: Any, new: Any, path: str) -> list[Difference]:
        """What `new`, of the earlier side, does not accept of `old`, of the later side."""
        self._earlier, self._later = self._later, self._earlier
        try:
            return self._compare(old, new, path)
        finally:
            self._earlier, self._later = self._later, self._earlier

    def _values(self, old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Difference]:
        accepted, given = _listed(new), _listed(old)
        if given is None:
            yield Difference("TYPE_CHANGED", f"{path}: values are listed now")
        elif accepted is not None and not self._keys(given) <= self._keys(accepted):
            yield Difference("ENUM_ARRAY_CHANGED" if "enum" in new else "CONST_CHANGED", path)

    def _keys(self, values: list[Any]) -> set[tuple[bool, Any]]:
        """What tells values apart; true is not 1."""
        found: set[tuple[bool, Any]] = set()
        for value in values:
            is_whole = isinstance(value, (list, dict))
            key = json.dumps(value, sort_keys=True) if is_whole else value
            self._add_work(len(key) if isinstance(key, str) else 1)
            found.add((isinstance(value, bool) or is_whole, key))
        return found

    def _other_property(self, schema: dict[str, Any], name: str) -> Any:
        """The schema that holds for a property that `properties` does not name. Raises ValueError for a pattern that
        cannot be matched in linear time."""
        patterns = schema.get("patternProperties")
        if isinstance(patterns, dict):
            for pattern, found in patterns.items():
                self._add_work(MATCH_WORK + len(pattern) + len(name))
                if _is_match(pattern, name):
                    return found
        return _other(schema, *_OTHER_PROPERTIES)

    def _object(self, old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Difference]:
        old_properties, new_properties = old.get("properties") or {}, new.get("properties") or {}
        required, was_required = _names(new.get("required")), _names(old.get("required"))
        for name in sorted({*old_properties, *new_properties}):
            place = f"{path}properties/{name}"
            if name not in new_properties:
                covering = self._other_property(new, name)
                if covering is False and old_properties[name] is not False:
                    yield Difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", place)
                elif self._compare(old_properties[name], covering, place):
                    yield Difference("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place)
            elif name not in old_properties:
                yield from self._added(old, new_properties[name], name, name in required, place)
            else:
                yield from self._compare(old_properties[name], new_properties[name], place + "/")
                if name in required and name not in was_required and not _has_default(new_properties[name]):
                    yield Difference("REQUIRED_ATTRIBUTE_ADDED", f"{path}required/{name}")
        yield from self._dependencies(old, new, path)
        yield from self._rest(_other(old, *_OTHER_PROPERTIES), _other(new, *_OTHER_PROPERTIES), "PROPERTIES", path)

    def _added(
        self, old: dict[str, Any], schema: Any, name: str, is_required: bool, place: str
    ) -> Iterator[Difference]:
        covered = self._other_property(old, name)
        if _is_empty(covered):
            if not _is_empty(schema):
                kind = "REQUIRED" if is_required else "OPTIONAL"
                yield Difference(f"{kind}_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", place)
            return
        if covered is not False and self._compare(covered, schema, place):
            yield Difference("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place)
        if is_required and not _has_default(schema):
            yield Difference("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", place)

    def _rest(self, old: Any, new: Any, what: str, path: str) -> Iterator[Difference]:
        """What holds for everything that is not named."""
        place = f"{path}additional{what.capitalize()}"
        if new is False and old is not False:
            yield Difference(f"ADDITIONAL_{what}_REMOVED", place)
        elif _is_empty(old) and not _is_empty(new):
            yield Difference(f"ADDITIONAL_{what}_NARROWED", place)
        else:
            yield from self._compare(old, new, place + "/")

    def _dependencies(self, old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Difference]:
        earlier, later = _dependencies(old), _dependencies(new)
        for name in sorted(later):
            place = f"{path}dependencies/{name}"
            is_list = isinstance(later[name], list)
            kind = "ARRAY" if is_list else "SCHEMA"
            if name not in earlier or isinstance(earlier[name], list) is not is_list:
                yield Difference(f"DEPENDENCY_{kind}_ADDED", place)
            elif not is_list:
                yield from self._compare(earlier[name], later[name], place + "/")
            elif not _names(later[name]) <= _names(earlier[name]):
                is_more = _names(later[name]) >= _names(earlier[name])
                yield Difference("DEPENDENCY_ARRAY_EXTENDED" if is_more else "DEPENDENCY_ARRAY_CHANGED", place)

    def _items(self, old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Difference]:
        if new.get("uniqueItems") and not old.get("uniqueItems"):
            yield Difference("UNIQUE_ITEMS_ADDED", f"{path}uniqueItems")
        if "contains" in new:
            yield from self._compare(old.get("contains", True), new["contains"], f"{path}contains/")
        (old_first, old_rest), (new_first, new_rest) = _item_schemas(old), _item_schemas(new)
        for index in range(max(len(old_first), len(new_first))):
            place = f"{path}items/{index}"
            if index >= len(new_first):
                if new_rest is False and old_first[index] is not False:
                    yield Difference("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", place)
                elif self._compare(old_first[index], new_rest, place):
                    yield Difference("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place)
            elif index < len(old_first):
                yield from self._compare(old_first[index], new_first[index], place + "/")
            elif _is_empty(old_rest):
                if not _is_empty(new_first[index]):
                    yield Difference("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", place)
            elif old_rest is not False and self._compare(old_rest, new_first[index], place):
                yield Difference("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", place)
        yield from self._rest(old_rest, new_rest, "ITEMS", path)


def _followed(schema: Any, side: _Side) -> Any:
    """What `$ref` leads to, as often as it stands there."""
    for _ in range(100):
        if not (isinstance(schema, dict) and isinstance(schema.get("$ref"), str)):
            return schema
        schema = _target(schema["$ref"], side)
    raise ValueError("a $ref leads to itself")


def _target(reference: str, side: _Side) -> Any:
    document, _, pointer = reference.partition("#")
    if not document or (isinstance(side.root, dict) and document in (side.root.get("$id"), side.root.get("id"))):
        found = side.root
    elif document in side.referred:
        found = side.referred[document]
    else:
        raise ValueError(f"$ref {reference}: nothing of that name is referred to")
    for part in unquote(pointer).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise ValueError(f"$ref {reference}: there is nothing") from None
    return found


def _is_empty(schema: Any) -> bool:
    """Whether a schema accepts everything."""
    return schema is True or (isinstance(schema, dict) and all(name in _ASIDE for name in schema))


def _split(schema: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, list[Any]]]]:
    """The combinations of a schema, and what stands beside them. A list of types is one of them, and so are listed
    values beside a type."""
    groups = [(how, schema[how]) for how in _COMBINED if isinstance(schema.get(how), list)]
    rest = {name: value for name, value in schema.items() if name not in _COMBINED and name not in _ASIDE}
    types = rest.get("type")
    if isinstance(types, list):
        beside = {name: value for name, value in rest.items() if name != "type"}
        groups.append(("anyOf", [{"type": each, **_of_type(beside, each)} for each in types]))
        rest = {name: value for name, value in beside.items() if not any(name in each for each in _OF_TYPE.values())}
    return rest, groups


def _of_type(keywords: dict[str, Any], type_name: str) -> dict[str, Any]:
    wanted = _OF_TYPE.get("number" if type_name == "integer" else type_name, ())
    return {name: value for name, value in keywords.items() if name in wanted}


def _demands(groups: list[tuple[str, list[Any]]]) -> list[tuple[str, list[Any]]]:
    """`allOf` as one demand for each of its schemas."""
    found = []
    for how, schemas in groups:
        found += [(how, [each]) for each in schemas] if how == "allOf" else [(how, schemas)]
    return found


def _type(schema: dict[str, Any]) -> str | None:
    """The type of a schema: the one that it says, or that its keywords have."""
    if isinstance(schema.get("type"), str):
        return str(schema["type"])
    for name, keywords in _OF_TYPE.items():
        if any(keyword in schema for keyword in keywords):
            return name
    return None


def _listed(schema: dict[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    found = schema.get("enum")
    return found if isinstance(found, list) else None


_CLASSES: dict[str, Any] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def _is_of(type_name: str, value: object) -> bool:
    if isinstance(value, bool):
        return type_name == "boolean"
    if type_name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _CLASSES.get(type_name, ()))


def _bounds(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Difference]:
    for keyword, name in _UPPER.items():
        if _is_number(new.get(keyword)):
            if not _is_number(old.get(keyword)):
                yield Difference(f"{name}_ADDED", path + keyword)
            elif new[keyword] < old[keyword]:
                yield Difference(f"{name}_DECREASED", path + keyword)
    for keyword, name in _LOWER.items():
        if _is_number(new.get(keyword)):
            if not _is_number(old.get(keyword)):
                yield Difference(f"{name}_ADDED", path + keyword)
            elif new[keyword] > old[keyword]:
                yield Difference(f"{name}_INCREASED", path + keyword)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _multiple(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[Difference]:
    wanted, given = new.get("multipleOf"), old.get("multipleOf")
    if wanted is None or not _is_number(wanted) or wanted == given:
        return
    if given is None or not _is_number(given):
        yield Difference("MULTIPLE_OF_ADDED", f"{path}multipleOf")
    elif wanted and given % wanted:
        yield Difference("MULTIPLE_OF_CHANGED", f"{path}multipleOf")


def _names(value: Any) -> set[str]:
    return {each for each in value if isinstance(each, str)} if isinstance(value, list) else set()


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _other(schema: dict[str, Any], *keywords: str) -> Any:
    """The schema of everything that is not named: that of the first of `keywords` that is there."""
    for keyword in keywords:
        if keyword in schema:
            return schema[keyword]
    return True


def _is_match(pattern: str, name: str) -> bool:
    try:
        return regular_expressions.compiled(pattern).search(name) is not None
    except regular_expressions.LibraryMissing as error:
        raise ValueError(f"patternProperties: {error}") from None
    except ValueError as error:
        raise ValueError(f"patternProperties: the pattern {pattern[:100]}: {error}") from None


def _size(schema: Any) -> int:
    """How much a schema lists."""
    return sum(len(each) for each in schema.values() if isinstance(each, (list, dict, str)))


def _dependencies(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        value = schema.get(keyword)
        found |= value if isinstance(value, dict) else {}
    return found


def _item_schemas(schema: dict[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of the first items, and that of all others."""
    if isinstance(schema.get("prefixItems"), list):
        return schema["prefixItems"], _other(schema, "items", "unevaluatedItems")
    items = schema.get("items", [])
    if isinstance(items, list):
        return items, _other(schema, "additionalItems", "unevaluatedItems")
    return [], items
