"""`pykafkad acls`: entries in plain words."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest

from pykafkad.cli import acl_words, acls, client
from pykafkad.cli.acl_words import Entry, cells, parse, quoted
from pykafkad.cli.commands import main
from pykafkad.metadata.standard_authorizer import OPERATION_NUMBERS, RESOURCE_TYPES

ALLOW, DENY, LITERAL, PREFIXED = 3, 2, 3, 4

SENTENCES = [
    ("alice read topic orders", Entry(ALLOW, "User:alice", 3, 2, "orders", LITERAL, "*")),
    ("allow alice read topic orders", Entry(ALLOW, "User:alice", 3, 2, "orders", LITERAL, "*")),
    ("deny alice all group g", Entry(DENY, "User:alice", 2, 3, "g", LITERAL, "*")),
    ("everybody describe topic *", Entry(ALLOW, "User:*", 8, 2, "*", LITERAL, "*")),
    ("alice write topic orders-*", Entry(ALLOW, "User:alice", 4, 2, "orders-", PREFIXED, "*")),
    ("alice write literal-topic orders-*", Entry(ALLOW, "User:alice", 4, 2, "orders-*", LITERAL, "*")),
    ("alice read literal-group **", Entry(ALLOW, "User:alice", 3, 3, "**", LITERAL, "*")),
    ("alice write topic **", Entry(ALLOW, "User:alice", 4, 2, "*", PREFIXED, "*")),
    ("alice write transactional-id x from 10.0.0.1", Entry(ALLOW, "User:alice", 4, 5, "x", LITERAL, "10.0.0.1")),
    ("alice read topic x from ::1", Entry(ALLOW, "User:alice", 3, 2, "x", LITERAL, "0:0:0:0:0:0:0:1")),
    ("alice read topic x from 2001:db8::/32", Entry(ALLOW, "User:alice", 3, 2, "x", LITERAL, "2001:db8::/32")),
    ("alice cluster-action cluster", Entry(ALLOW, "User:alice", 9, 4, "kafka-cluster", LITERAL, "*")),
    ("'User:CN=a, O=b' create topic t", Entry(ALLOW, "User:CN=a, O=b", 5, 2, "t", LITERAL, "*")),
    ("DOMAIN\\alice read group a\\b", Entry(ALLOW, "User:DOMAIN\\alice", 3, 3, "a\\b", LITERAL, "*")),
    ('"it\'s a" read group \'"g"\'', Entry(ALLOW, "User:it's a", 3, 3, '"g"', LITERAL, "*")),
    ("alice read group #1", Entry(ALLOW, "User:alice", 3, 3, "#1", LITERAL, "*")),
    ("Group:x alter-configs topic t", Entry(ALLOW, "Group:x", 11, 2, "t", LITERAL, "*")),
    ("from read topic from", Entry(ALLOW, "User:from", 3, 2, "from", LITERAL, "*")),
]


@pytest.mark.parametrize(("text", "entry"), SENTENCES)
def test_a_sentence_is_an_entry(text: str, entry: Entry) -> None:
    """And the cells of the entry, put together, are a sentence for it."""
    assert parse(text) == [entry]
    permission, principal, operation, resource, name, address = cells(entry)
    again = [permission, quoted(principal), operation, resource, *([quoted(name)] if name else []), "from", address]
    assert parse(" ".join(again)) == [entry]


def test_a_literal_name_with_a_star_is_told_from_a_prefix() -> None:
    """Only there the kind of resource has the word, which a sentence may have before any name."""
    names = (("jobs*", LITERAL), ("jobs", PREFIXED), ("jobs", LITERAL), ("*", LITERAL))
    shown = [cells(Entry(ALLOW, "User:a", 3, 3, name, pattern, "*"))[3:5] for name, pattern in names]
    assert shown == [("literal-group", "jobs*"), ("group", "jobs*"), ("group", "jobs"), ("group", "*")]
    assert parse("a read literal-group jobs") == parse("a read group jobs")
    assert parse("a read literal-group *") == parse("a read group *")
    with pytest.raises(ValueError, match="jobs is no kind of resource"):
        parse("a read literal-jobs x")


def test_what_a_list_shows_is_taken_back(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Names with spaces stand in quotes, but not in JSON."""
    entry = Entry(ALLOW, "User:CN=a, O=it's", 3, 3, "my group", LITERAL, "*")
    row = {"permission_type": 3, "principal": entry.principal, "operation": 3, "host": "*"}
    resource = {"resource_type": 3, "resource_name": entry.name, "pattern_type": LITERAL, "acls": [row]}
    monkeypatch.setattr(client, "admin", lambda options: nullcontext())
    monkeypatch.setattr(acls, "_ask", lambda admin, verb, **fields: {"error_code": 0, "resources": [resource]})
    assert main(["acls", "list"]) == 0
    *words, address = capsys.readouterr().out.splitlines()[1].split("\t")
    assert parse(" ".join(words)) == [entry] and address == "*"
    assert main(["acls", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "my group"


def test_an_entry_that_is_not_there_is_named_as_it_was_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error can be copied, too."""
    answer = {"filter_results": [{"error_code": 0, "matching_acls": []}]}
    monkeypatch.setattr(client, "admin", lambda options: nullcontext())
    monkeypatch.setattr(acls, "_ask", lambda admin, verb, **fields: answer)
    assert main(["acls", "remove", "alice read group 'my group'"]) == 1
    assert "allow alice read group 'my group': there is no such entry" in capsys.readouterr().err


def test_several_operations_are_several_entries() -> None:
    """One for each, without those that are said twice."""
    assert [each.operation for each in parse("alice read,write,read topic t")] == [3, 4]


def test_principals_that_words_could_not_name_keep_their_type() -> None:
    """A user may have a name that means something here."""
    for name in ("everybody", "deny", "allow", "a:b", ""):
        entry = Entry(ALLOW, f"User:{name}", 3, 2, "t", LITERAL, "*")
        assert cells(entry)[1] == f"User:{name}" and parse(f"User:{name} read topic t") == [entry]


def test_every_operation_and_resource_has_a_word() -> None:
    """The numbers are those of the authorizer. What a later release has is shown by its number."""
    assert sorted(acl_words.OPERATIONS.values()) == [2, *sorted(OPERATION_NUMBERS.values())]
    assert sorted(acl_words.RESOURCES.values()) == sorted(RESOURCE_TYPES.values())
    assert cells(Entry(9, "User:a", 99, 98, "t", LITERAL, "*")) == ("deny", "a", "99", "98", "t", "*")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["add"], "the following arguments are required: ENTRY"),
        (["add", "alice read topic"], "alice read topic: must be [deny] PRINCIPAL OPERATION RESOURCE NAME"),
        (["add", "alice read topic a b"], "must be [deny] PRINCIPAL OPERATION RESOURCE NAME"),
        (["add", ""], "must be [deny] PRINCIPAL OPERATION RESOURCE NAME"),
        (["add", "alice red topic t"], "'red' is no operation: name some of all, read, write,"),
        (["add", "alice read,,write topic t"], "'' is no operation"),
        (["add", "alice read topics t"], "topics is no kind of resource: name one of topic, group, cluster,"),
        (["add", "alice read topic t from ::x"], "'::x'"),
        (["remove", "alice read topic 't"], "No closing quotation"),
        (["list", "--resource", "orders"], "--resource orders: must be TYPE NAME, such as 'topic orders'"),
    ],
)
def test_other_words_are_wrong_usage(words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message says what is wrong with which words. No broker is asked."""
    assert main(["acls", *words, "--bootstrap", "localhost:1"]) == 2
    assert error in capsys.readouterr().err
