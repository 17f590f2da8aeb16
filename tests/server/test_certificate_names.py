"""Subjects of certificates as Java prints them, and Kafka's rules that shorten them."""

import random
from pathlib import Path

import pytest

from pykafkad.server.certificate_names import InvalidRule, PrincipalRules, name_text, subject
from tests import certificates

GOLDEN = Path(__file__).parent.parent / "golden" / "x500_names.tsv"
"""Names as hexadecimal DER, and what Java's X500Principal.getName() prints for each, with Java's escapes in it."""


def java_text(line):
    return line.replace("\\\\", "\0").replace("\\n", "\n").replace("\\r", "\r").replace("\0", "\\")


def test_names_are_those_of_java():
    lines = GOLDEN.read_text().split("\n")[:-1]
    assert len(lines) == 70
    for line in lines:
        encoded, _, expected = line.partition("\t")
        name = bytes.fromhex(encoded)
        length = name[1] & 0x7F if name[1] & 0x80 else 0
        assert name_text(name[2 + length :]) == java_text(expected)


def test_the_subject_of_a_certificate():
    assert subject(certificates.client().der) == "CN=alice,OU=Tea,O=Wonderland,C=FR"
    assert subject(certificates.authority().der) == "CN=Tests authority"


@pytest.mark.parametrize("seed", range(300))
def test_any_bytes_give_a_name_or_an_error(seed):
    draw = random.Random(seed)
    data = bytearray(certificates.client().der)
    if draw.random() < 0.5:
        del data[draw.randrange(len(data)) :]
    for _ in range(draw.randrange(5)):
        if data:
            data[draw.randrange(min(len(data), 250))] = draw.randrange(256)
    for parse in (subject, name_text):
        try:
            assert isinstance(parse(bytes(data)), str)
        except ValueError:
            pass


SEVERAL = "RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L , RULE:^.*[Cc]=(\\w+).*$/$1/U,DEFAULT"


@pytest.mark.parametrize("rules, name, expected", [
    ("DEFAULT", "CN=alice,O=x", "CN=alice,O=x"),
    ("", "CN=alice", None),
    (" , DEFAULT", "CN=alice", "CN=alice"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=ServiceUsers,O=x", "kafka"),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=kafka,OU=Others", None),
    (SEVERAL, "CN=Adam,OU=Dev,O=X", "adam@dev"),
    (SEVERAL, "O=X,C=fr", "FR"),
    (SEVERAL, "O=X", "O=X"),
    # The pattern must fit the whole subject, and is then replaced wherever it is found.
    ("RULE:CN=alice/x/,DEFAULT", "CN=alice,O=x", "CN=alice,O=x"),
    ("RULE:.*/x/", "CN=alice", "xx"),
    # A slash in a rule, and literal signs in a replacement.
    (r"RULE:^CN=a\/(.*)$/b\/$1\$1/", "CN=a/c", "b/c$1"),
    # A group that is not there stands for itself; of a number that is too large the beginning counts.
    ("RULE:^CN=(.*)$/$1@$4/", "CN=a", "a@$4"),
    ("RULE:^CN=(.*)$/$12/", "CN=a", "a2"),
    ("RULE:^CN=(.*)$/<$0>/", "CN=a", "<CN=a>"),
    ("RULE:^CN=(?<who>.*)$/${who}/", "CN=a", "a"),
    ("RULE:^(CN)=(?<!x)(.*)(z)?$/$2$3/", "CN=a", "a"),
])  # fmt: skip
def test_rules(rules, name, expected):
    assert PrincipalRules(rules).name(name) == expected


@pytest.mark.parametrize("rules", [
    "default", "DEFAULT/L", "DEFAULT/U", "RULE:CN=(.*?),OU=ServiceUsers.*/$1", "rule:^CN=(.*?)$/$1/",
    "RULE:^CN=(.*?)$/$1L", "RULE:^CN=(.*?)$/L", "RULE:^CN=(.*?)$/$1/LU", "RULE:^CN=(.*?)$/$1/l",
    "RULE:[/x/", "RULE:a/$/", "RULE:a/${b}/", "RULE:a/b/ RULE:c/d/", "DEFAULT RULE:a/b/",
])  # fmt: skip
def test_what_is_no_rule_is_refused(rules):
    with pytest.raises(InvalidRule):
        PrincipalRules(rules)
