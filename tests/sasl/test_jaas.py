"""Entries of JAAS, as Java's StreamTokenizer cuts them into words."""

from __future__ import annotations

import random

import pytest

from pykafkad.errors import ConfigError
from pykafkad.sasl import jaas
from tests.seeds import examples, seed_of_the_code

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (" required;", {}),
        (' required user_alice="secret";', {"user_alice": "secret"}),
        (' REQUISITE user_alice="a;b=c" user_bob=\'it"s\' ;\n', {"user_alice": "a;b=c", "user_bob": 'it"s'}),
        (" optional user_a-b.c$d=word-1.x;", {"user_a-b.c$d": "word-1.x"}),
        (r' required user_a="\"\\\t\61\101\400";', {"user_a": '"\\\t1A 0'}),
        (' sufficient // a comment; "\n user_a="b"/* and * another */;', {"user_a": "b"}),
        (' required user_a="//b /*c*/" / the rest;\n;', {"user_a": "//b /*c*/"}),
        (' required "user_a b"="ü€";', {"user_a b": "ü€"}),
        (' required user_a="one" user_a="two";', {"user_a": "two"}),
    ],
)
def test_an_entry_has_a_class_and_options(text: str, options: dict[str, str]) -> None:
    """Quotes are needed for what is not a word."""
    assert jaas.parse(PLAIN + text) == (PLAIN, options)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must hold one login module, and holds none"),
        ("// nothing", "must hold one login module, and holds none"),
        ("a.B required; a.C required;", "must hold one login module, and holds 2"),
        ("a.B", "must begin with a login module's class"),
        ("a.B needed;", "must begin with a login module's class"),
        (";", "must begin with a login module's class"),
        ("1 required;", "must begin with a login module's class"),
        ('a.B required user_a="hunter2"', "must end with a semicolon"),
        ('a.B required user_a "hunter2";', "option 1 is not key="),
        ('a.B required user_a="x" user_b=4hunter2;', "option 2 is not key="),
        ("a.B required user_a=-hunter2;", "option 1 is not key="),
        ("a.B required user_a=.5;", "option 1 is not key="),
        ("a.B required user_a=;", "option 1 is not key="),
        ("a.B required =hunter2;", "option 1 is not key="),
        ('a.B required user_a="x\nhunter2";', "option 2 is not key="),
        ("a.B required user_a=hunter2!;", "option 2 is not key="),
    ],
)
def test_what_is_wrong_is_said_without_a_word_of_it(text: str, problem: str) -> None:
    """Any of it may be a password."""
    with pytest.raises(ConfigError) as caught:
        jaas.parse(text)
    assert problem in str(caught.value) and "hunter2" not in str(caught.value)


def test_any_value_can_be_quoted() -> None:
    """And is read as it was."""
    chance = random.Random(seed_of_the_code())
    for _ in range(examples(2000)):
        value = "".join(chance.choice("\"'\\\n\r\t;=/*a1 ü") for _ in range(chance.randrange(12)))
        assert jaas.parse(f"a.B required user_a={jaas.quoted(value)};").options == {"user_a": value}


def test_no_text_is_too_strange() -> None:
    """It is an entry or a ConfigError."""
    chance = random.Random(seed_of_the_code())
    signs = ["a.B", " required", "user_a", "=", '"', "'", ";", "\\", "/", "*", "\n", "-", ".", "1", " ", "ü", "\x85"]
    for _ in range(examples(20_000)):
        try:
            jaas.parse("".join(chance.choice(signs) for _ in range(chance.randrange(15))))
        except ConfigError:
            pass
