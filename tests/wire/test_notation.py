"""The column notation: its meaning, and mistakes that are named with their line."""

from __future__ import annotations

import pytest

from pykafkad.wire.notation import LATEST, NotationError, headers, parse

EXAMPLE = """\
# A comment before everything.
api 7 Example request 1-4  flexible 3+
  # A comment inside.
  name             string?     null 2+ = null   # and at the end of a row
  old              int32       1-2  drop = -1
  flag             bool        3    = true
  topics           [Topic]?    = null
    name           string
    ids            [uuid]      2+
    leader         {Leader}    3+   tag 1
      id           int32       = -2147483648
  more             [Topic]     4+
  client           string?     rigid
  payload          records?

api 7 Example response 1-4  flexible 3+
  error_code       int16

record 5 ExampleKey 0  flexible none
  group            string

data ExampleThing 0-1  flexible 0+
  ratio            float64
"""


def test_headers_and_rows_are_parsed():
    """All four kinds of message, with lives, tags, nullability, defaults and shared structs."""
    found = parse(EXAMPLE, "example.txt")
    assert list(found) == list(headers(EXAMPLE)) == ["ExampleRequest", "ExampleResponse", "ExampleKey", "ExampleThing"]
    request = found["ExampleRequest"]
    assert (request.kind, request.key, request.first, request.last, request.flexible_from) == ("request", 7, 1, 4, 3)
    assert (found["ExampleKey"].kind, found["ExampleKey"].key, found["ExampleKey"].flexible_from) == ("record", 5, None)
    assert (found["ExampleThing"].kind, found["ExampleThing"].key) == ("data", None)
    assert not request.flexible(2) and request.flexible(3) and not found["ExampleKey"].flexible(0)
    fields = {field.name: field for field in request.root.fields}
    assert fields["name"].default is None and not fields["name"].nullable(1) and fields["name"].nullable(2)
    assert (fields["old"].first, fields["old"].last, fields["old"].drop, fields["old"].default) == (1, 2, True, -1)
    assert fields["old"].alive(2) and not fields["old"].alive(3)
    assert (fields["flag"].first, fields["flag"].last, fields["flag"].default) == (3, 3, True)
    assert fields["topics"].is_array and fields["topics"].default is None and fields["more"].default == []
    assert fields["more"].struct is fields["topics"].struct
    topic = {field.name: field for field in fields["topics"].struct.fields}
    assert (topic["ids"].type, topic["ids"].is_array, topic["ids"].last) == ("uuid", True, LATEST)
    assert (topic["leader"].tag, topic["leader"].default) == (1, ...)
    assert topic["leader"].struct.fields[0].default == -(2**31)
    assert fields["client"].rigid and fields["payload"].default is None


def test_versions_of_other_releases_stand_behind_those_of_ours():
    """A message may have none of ours."""
    ours, others = "api 1 Some request 2-3 of 0-4 flexible none", "api 2 New request none of 1 flexible 0+"
    some, new = parse(f"{ours}\n  id int32\n\n{others}\n  id int8\n", "f.txt").values()
    assert (some.first, some.last, some.oldest, some.newest) == (2, 3, 0, 4)
    assert (new.first, new.last, new.oldest, new.newest, new.flexible_from) == (0, -1, 1, 1, 0)


def test_only_the_selected_message_is_parsed():
    """Other messages are not parsed, so their mistakes do not matter."""
    text = EXAMPLE + "\ndata Broken 0  flexible none\n  what nothing\n"
    assert list(parse(text, "x", only="ExampleKey")) == ["ExampleKey"]
    with pytest.raises(NotationError):
        parse(text, "x")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("api Example request 0 flexible none", r"f.txt:1: a header is"),
        ("api 1 Example question 0 flexible none", r"f.txt:1: a header is"),
        ("api 1 Example request 0 flexible", r"f.txt:1: a header is"),
        ("thing 1 Example 0 flexible none", r"f.txt:1: a header is"),
        ("api 1 Example request 3-1 flexible none", r"f.txt:1: '3-1' is not a version range: write 3, 0-7 or 3\+"),
        ("api 1 Example request none flexible none", r"f.txt:1: 'none' is not a version range"),
        ("api 1 Example request 0-3 of 0-2 flexible none", r"f.txt:1: 0-2 has not all versions of 0-3"),
        ("api 1 Example request 0-3 of 1-3 flexible none", r"f.txt:1: 1-3 has not all versions of 0-3"),
        ("api 1 Example request 0 flexible x", r"f.txt:1: 'x' is not a version range"),
        ("  name string", r"f.txt:1: a row is indented"),
        ("data A 0 flexible none\n   name string", r"f.txt:2: a row is indented by two spaces"),
        ("data A 0 flexible none\n  name string\n    inner string", r"f.txt:3: a row is indented"),
        ("data A 0 flexible none\n  name", r"f.txt:2: a row is name, type"),
        ("data A 0 flexible none\n  na-me string", r"f.txt:2: a row is name, type"),
        ("data A 0 flexible none\n  name strong", r"f.txt:2: unknown type 'strong'"),
        ("data A 0 flexible none\n  name [records]", r"f.txt:2: unknown type"),
        ("data A 0 flexible none\n  name {string}", r"f.txt:2: unknown type"),
        ("data A 0 flexible none\n  name string 3-", r"f.txt:2: '3-' is not a version range"),
        ("data A 0 flexible none\n  name string sometimes", r"f.txt:2: 'sometimes' is not understood: write tag N"),
        ("data A 0 flexible 0+\n  name string tag", r"f.txt:2: 'tag' is not understood"),
        ("data A 0 flexible none\n  name string null 1+", r"f.txt:2: 'null' is not understood"),
        ("data A 0 flexible none\n  name string = null", r"f.txt:2: name is not nullable"),
        ("data A 0 flexible none\n  name int32 = many", r"f.txt:2: 'many' cannot be the default of name"),
        ("data A 0 flexible none\n  name string = 5", r"f.txt:2: '5' cannot be the default"),
        ("data A 0 flexible none\n  name int32\n  name int32", r"f.txt:3: A has two fields named name"),
        ("data A 0 flexible none\n  name int32\ndata A 0 flexible none", r"f.txt:3: A is defined twice"),
        ("data A 0 flexible none\n  name [B]", r"f.txt: A uses B, which has no rows"),
        (
            "data A 0 flexible none\n  one [B]\n    x int8\n  two [B]\n    x int8",
            r"f.txt:5: a row is indented .* below a message",
        ),
        ("data A 0 flexible none\n  name int32 tag 0", r"f.txt:2: name has a tag, but A is never flexible"),
        ("data A 0 flexible 0+\n  one int32 tag 0\n  two int32 tag 0", r"f.txt: A uses a tag twice"),
        (
            "data A 0 flexible none\n" + "".join(f"{'  ' * d}f [S{d}]\n" for d in range(1, 10)),
            r"f.txt:10: nested deeper than 8",
        ),
    ],
)
def test_mistakes_are_named_with_their_line(rows, reason):
    """The error has the file, the line, the offending words and what is allowed."""
    with pytest.raises(NotationError, match=reason):
        parse(rows, "f.txt")
