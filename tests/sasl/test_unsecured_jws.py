"""Tokens without a signature: which claims count, and when a token does not."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from pykafkad.errors import ConfigError
from pykafkad.sasl.compact_jwt import JSON_BYTES_MAX, InvalidToken
from pykafkad.sasl.unsecured_jws import UnsecuredValidator
from tests.sasl.tokens import part, unsecured
from tests.seeds import examples, seed_of_the_code

NOW_S = 1_700_000_000
GOOD = {"sub": "alice", "exp": NOW_S + 60}


def validate(token: str, **options: str) -> Any:
    """What the token says, with options of the login module."""
    named = {f"unsecuredValidator{name}": value for name, value in options.items()}
    return UnsecuredValidator(named, lambda: 1000 * NOW_S)(token)


def test_the_example_of_the_rfc() -> None:
    """RFC 7515, appendix A.5 (and RFC 7519, section 6.1): its time is over, and it has no subject."""
    token = (
        "eyJhbGciOiJub25lIn0.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290"
        "Ijp0cnVlfQ."
    )
    check = UnsecuredValidator({"unsecuredValidatorPrincipalClaimName": "iss"}, lambda: 1_300_819_379_999)
    assert check(token) == ("joe", 1_300_819_380_000)
    check = UnsecuredValidator({"unsecuredValidatorPrincipalClaimName": "iss"}, lambda: 1_300_819_380_000)
    with pytest.raises(InvalidToken, match="it has expired"):
        check(token)


@pytest.mark.parametrize(
    ("claims", "principal", "expires_ms"),
    [
        (GOOD, "alice", 1000 * NOW_S + 60_000),
        (GOOD | {"exp": NOW_S + 0.0015, "iat": NOW_S}, "alice", 1000 * NOW_S + 2),
        (GOOD | {"sub": " a b "}, " a b ", 1000 * NOW_S + 60_000),
        (GOOD | {"sub": "\u00a0"}, "\u00a0", 1000 * NOW_S + 60_000),
        # What is no text is one in Kafka's eyes.
        (GOOD | {"sub": True}, "true", 1000 * NOW_S + 60_000),
        (GOOD | {"sub": None}, "null", 1000 * NOW_S + 60_000),
    ],
)
def test_what_a_token_says(claims: Any, principal: str, expires_ms: int) -> None:
    """Its subject and its end."""
    assert validate(unsecured(claims)) == (principal, expires_ms)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "it does not have three parts"),
        ("a.b", "it does not have three parts"),
        ("a.b.c.d", "it does not have three parts"),
        (unsecured(GOOD, signature="YQ"), "it is signed"),
        (unsecured(GOOD, {"alg": "HS256"}), "it is signed"),
        (unsecured(GOOD, {"alg": "None"}), "it is signed"),
        (unsecured(GOOD, {}), "it is signed"),
        (unsecured([GOOD]), "a part of it is no JSON object"),
        (unsecured(b"{"), "a part of it is no JSON"),
        (unsecured(b"\xff"), "a part of it is no JSON"),
        (unsecured(b'{"sub":"alice","exp":NaN}'), "a part of it is no JSON"),
        (unsecured(b"[" * 40_000), "a part of it is no JSON"),
        (unsecured(b'{"exp":' + b"9" * 5000 + b"}"), "a part of it is no JSON"),
        (f"{part({'alg': 'none'})}.*.", "a part of it is no base64url"),
        (f"{part({'alg': 'none'})}.ab/+.", "a part of it is no base64url"),
        (f"{part({'alg': 'none'})}.a.", "a part of it is no base64url"),
        (f"{part({'alg': 'none'})}.\u00e4.", "a part of it is no base64url"),
        (unsecured({"sub": "alice"}), "exp and iat must be numbers"),
        (unsecured(GOOD | {"exp": str(NOW_S + 60)}), "exp and iat must be numbers"),
        (unsecured(GOOD | {"exp": True}), "exp and iat must be numbers"),
        (unsecured(GOOD | {"exp": 10**400}), "exp and iat must be numbers"),
        (unsecured(b'{"sub":"alice","exp":1e400}'), "exp and iat must be numbers"),
        (unsecured(GOOD | {"iat": None}), "exp and iat must be numbers"),
        (unsecured(GOOD | {"exp": NOW_S}), "it has expired"),
        (unsecured(GOOD | {"iat": NOW_S + 1}), "it is issued in the future"),
        (unsecured(GOOD | {"iat": NOW_S, "exp": NOW_S}), "it ends before it is issued"),
        (unsecured({"exp": NOW_S + 60}), "it has no text as its claim sub"),
        (unsecured(GOOD | {"sub": 1}), "it has no text as its claim sub"),
        (unsecured(GOOD | {"sub": ["alice"]}), "it has no text as its claim sub"),
        (unsecured(GOOD | {"sub": {}}), "it has no text as its claim sub"),
        (unsecured(GOOD | {"sub": " "}), "it has no text as its claim sub"),
        (unsecured(GOOD | {"scope": 1}), "its claim scope is neither a text nor a list"),
    ],
    ids=lambda value: value[-20:],
)
def test_tokens_that_do_not_count(token: str, reason: str) -> None:
    """Each with the reason for the broker's log, which quotes nothing of the token."""
    with pytest.raises(InvalidToken, match=reason) as caught:
        validate(token)
    assert caught.value.missing_scope is None and "alice" not in str(caught.value)


def test_a_part_has_a_limit() -> None:
    """What is just as long as allowed is read; what is longer is not."""
    claims = json.dumps(GOOD)
    room = JSON_BYTES_MAX * 3 // 4
    assert validate(unsecured(claims.ljust(room).encode())).principal == "alice"
    with pytest.raises(InvalidToken, match=f"longer than {JSON_BYTES_MAX} bytes"):
        validate(unsecured(claims.ljust(room + 1).encode()))


def test_clocks_may_differ() -> None:
    """By as much as the login module says, in both directions."""
    late, early = unsecured(GOOD | {"exp": NOW_S - 2}), unsecured(GOOD | {"iat": NOW_S + 3})
    assert validate(late, AllowableClockSkewMs="2001").expires_ms == 1000 * NOW_S - 2000
    assert validate(early, AllowableClockSkewMs="3000").principal == "alice"
    for token, skew in ((late, "2000"), (early, "2999")):
        with pytest.raises(InvalidToken):
            validate(token, AllowableClockSkewMs=skew)


@pytest.mark.parametrize("scope", [["read", "write", "more"], [" write ", "read"], ["read", "write", 1, None, ["x"]]])
def test_a_token_has_the_required_scopes(scope: Any) -> None:
    """In any order, and more of them."""
    assert validate(unsecured(GOOD | {"scope": scope}), RequiredScope=" read  write ").principal == "alice"


@pytest.mark.parametrize("scope", [None, [], ["read"], "read", "read write", ["read write"]])
def test_a_token_that_lacks_a_scope(scope: Any) -> None:
    """All that are required are told, also of one that has some of them; a text is one scope."""
    with pytest.raises(InvalidToken) as caught:
        validate(unsecured(GOOD | {"scope": scope}), RequiredScope="read write")
    assert caught.value.missing_scope == "[read, write]"


def test_claims_may_have_other_names() -> None:
    """As the login module says; blanks are none."""
    token = unsecured({"who": "alice", "may": "read", "exp": NOW_S + 60})
    options = {"PrincipalClaimName": " who ", "ScopeClaimName": "may", "RequiredScope": "read"}
    assert validate(token, **options).principal == "alice"
    assert validate(unsecured(GOOD), PrincipalClaimName=" ").principal == "alice"


@pytest.mark.parametrize(
    "options",
    [
        {"AllowableClockSkewMs": "-1"},
        {"AllowableClockSkewMs": "soon"},
        {"AllowableClockSkewMs": "2147483648"},
        {"RequiredScope": 'read "write"'},
        {"RequiredScope": "re\\ad"},
        {"RequiredScope": "l\u00e4sen"},
    ],
)
def test_options_that_cannot_be(options: dict[str, str]) -> None:
    """They are refused at start, where Kafka refuses each login."""
    with pytest.raises(ConfigError, match=f"unsecuredValidator{next(iter(options))}: "):
        validate("", **options)


def test_any_text_gives_a_token_or_the_error() -> None:
    """Broken copies of a good token."""
    good = unsecured(GOOD)
    for number in range(examples(300)):
        chance = Random(f"{seed_of_the_code()} {number}")
        letters = list(good)
        for _ in range(chance.randrange(1, 4)):
            letters[chance.randrange(len(letters))] = chance.choice("AbZ.-_+/= 0\u00e4")
        try:
            assert validate("".join(letters)).expires_ms
        except InvalidToken:
            pass
