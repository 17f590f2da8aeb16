"""Signed tokens: the vectors of the RFCs, each algorithm, and each claim that can be wrong."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from pykafkad.errors import ConfigError
from pykafkad.sasl import signed_jwt
from pykafkad.sasl.compact_jwt import InvalidToken
from pykafkad.sasl.jwks import KEY_TYPES, KEYS_MAX, choose, parse
from pykafkad.sasl.signed_jwt import Rules, SignedValidator
from tests.sasl.issuer import jwk, key_set, signed
from tests.sasl.tokens import part, unsecured
from tests.seeds import examples, seed_of_the_code

NOW_S = 1_700_000_000
GOOD = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 60}
ANY = Rules(frozenset(), None, "scope", "sub", 30)


class PublishedKeys:
    """An issuer's keys, and what was missed among them."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys = parse(key_set(*keys))
        self.missed: list[str | None] = []

    def current(self) -> Sequence[Any]:
        return self.keys

    def miss(self, key_id: str | None) -> None:
        self.missed.append(key_id)

    def close(self) -> None:
        pass


def validate(token: str, *keys: dict[str, Any], now_ms: int = 1000 * NOW_S, **rules: Any) -> Any:
    """What the token says."""
    published = PublishedKeys(*(keys or [jwk("ES256")]))
    return SignedValidator(published, ANY._replace(**rules), lambda: now_ms)(token)


# RFC 7515, appendix A.1 (HS256) and A.3 (ES256): the same claims, of an issuer without a subject.
_CLAIMS = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
RFC_7515 = [
    (
        f"eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.{_CLAIMS}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        {
            "kty": "oct",
            "k": "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow",
        },
    ),
    (
        f"eyJhbGciOiJFUzI1NiJ9.{_CLAIMS}."
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        {
            "kty": "EC",
            "crv": "P-256",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        },
    ),
]


@pytest.mark.parametrize(("token", "key"), RFC_7515, ids=["HS256", "ES256"])
def test_the_signatures_of_the_rfc(token: str, key: dict[str, Any]) -> None:
    """Its claims lack what Kafka asks for; that is found out only where the signature is right."""
    with pytest.raises(InvalidToken, match="its claim iat must be a number"):
        validate(token, key)
    with pytest.raises(InvalidToken, match="its signature is not the issuer's"):
        validate(token[:-6] + "AAAAAA", key)


@pytest.mark.parametrize("algorithm", KEY_TYPES)
def test_each_algorithm(algorithm: str) -> None:
    """A token of the issuer counts, and one that another key has signed does not."""
    key = jwk(algorithm, kid="one")
    assert validate(signed(GOOD, algorithm, kid="one"), key) == ("alice", 1000 * (NOW_S + 60))
    assert validate(signed(GOOD, algorithm), key).principal == "alice"
    with pytest.raises(InvalidToken, match="its signature is not the issuer's"):
        validate(signed(GOOD, algorithm, 1, kid="one"), key)


def test_a_changed_token_does_not_count() -> None:
    """Neither with other claims nor with another header."""
    header, claims, signature = signed(GOOD).split(".")
    for token in (
        f"{header}.{part(GOOD | {'sub': 'root'})}.{signature}",
        f"{part({'alg': 'ES256', 'typ': 'x'})}.{claims}.{signature}",
    ):
        with pytest.raises(InvalidToken, match="its signature is not the issuer's"):
            validate(token)


def test_a_public_key_is_no_secret() -> None:
    """Who knows the issuer's key of RSA cannot sign with its text by HMAC."""
    public = jwk("RS256", kid="one")
    said = f"{part({'alg': 'HS256', 'kid': 'one'})}.{part(GOOD)}"
    token = f"{said}.{part(hmac.digest(json.dumps(public).encode(), said.encode(), 'sha256'))}"
    with pytest.raises(InvalidToken, match="the issuer has no key of that id and algorithm"):
        validate(token, public)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "it does not have three parts"),
        ("a.b", "it does not have three parts"),
        ("a.b.c.d.e", "it does not have three parts"),
        (unsecured(GOOD), "it does not have three parts"),
        (unsecured(GOOD, signature="YQ"), "its algorithm is none of RS256"),
        (unsecured(GOOD, {"alg": ["ES256"]}, "YQ"), "its algorithm is none of RS256"),
        (unsecured(GOOD, {"alg": "ES256", "kid": 1}, "YQ"), "the id of its key is no text"),
        (unsecured(GOOD, {"alg": "ES256", "crit": ["b64"], "b64": False}, "YQ"), "it asks for an extension"),
        (unsecured(GOOD, {"alg": "ES256", "b64": False}, "YQ"), "its signature is not the issuer's"),
        (unsecured(GOOD, {"alg": "ES256"}, "*"), "its signature is not the issuer's"),
        (unsecured([], {"alg": "ES256"}, "YQ"), "a part of it is no JSON object"),
        (unsecured(GOOD, {"alg": "RS256"}, "YQ"), "the issuer has no key of that id and algorithm"),
        (unsecured(GOOD, {"alg": "ES256", "kid": "x"}, "YQ"), "the issuer has no key of that id and algorithm"),
    ],
    ids=lambda value: value[-20:],
)
def test_tokens_that_do_not_count(token: str, reason: str) -> None:
    """Each with a reason that quotes nothing of the token."""
    with pytest.raises(InvalidToken, match=reason):
        validate(token)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"sub": "alice", "exp": NOW_S + 60}, "its claim iat must be a number"),
        ({"sub": "alice", "iat": NOW_S}, "its claim exp must be a number"),
        (GOOD | {"exp": str(NOW_S + 60)}, "its claim exp must be a number"),
        (GOOD | {"exp": True}, "its claim exp must be a number"),
        (GOOD | {"iat": -1}, "its claim iat must be a number from 0 on"),
        (GOOD | {"nbf": None}, "its claim nbf must be a number"),
        (GOOD | {"exp": NOW_S - 30}, "it has expired"),
        (GOOD | {"exp": NOW_S - 11, "iat": NOW_S - 10}, "it ends before it begins"),
        (GOOD | {"nbf": NOW_S + 61}, "it ends before it begins"),
        (GOOD | {"nbf": NOW_S + 31}, "it does not count yet"),
        ({"iat": NOW_S, "exp": NOW_S + 60}, "it has no text as its claim sub"),
        (GOOD | {"sub": 1}, "its claim sub is no text"),
        (GOOD | {"sub": " "}, "it has no text as its claim sub"),
        (GOOD | {"jti": 1}, "its claim jti is no text"),
        (GOOD | {"iss": 1}, "its claim iss is no text"),
        (GOOD | {"aud": "kafka"}, "it is for an audience, and none is expected"),
        (GOOD | {"aud": []}, "it is for an audience, and none is expected"),
        (GOOD | {"aud": [1]}, "its claim aud is neither a text nor a list of texts"),
        (GOOD | {"aud": 1}, "its claim aud is neither a text nor a list of texts"),
        (GOOD | {"scope": [1]}, "its claim scope must have texts, each once"),
        (GOOD | {"scope": ["a", " a"]}, "its claim scope must have texts, each once"),
        (GOOD | {"scope": ""}, "its claim scope must have texts, each once"),
    ],
)
def test_claims_that_do_not_count(claims: Any, reason: str) -> None:
    """Though they are signed."""
    with pytest.raises(InvalidToken, match=reason):
        validate(signed(claims))


@pytest.mark.parametrize(
    "claims",
    [
        GOOD | {"exp": NOW_S - 29, "iat": NOW_S - 100},
        GOOD | {"nbf": NOW_S + 30},
        GOOD | {"iat": NOW_S + 60},
        GOOD | {"sub": " alice "},
        GOOD | {"scope": ["a", "b"]},
        GOOD | {"scope": "a b"},
        GOOD | {"scope": 1},
    ],
)
def test_claims_that_count(claims: Any) -> None:
    """Clocks may differ by the skew, and a token that is issued in the future counts, as in Kafka."""
    assert validate(signed(claims)) == ("alice", 1000 * claims["exp"])


def test_only_the_blanks_of_java_are_taken_off() -> None:
    """Who is called by an odd blank is not who is called without it."""
    for blank in ("\0", "\n", "\x1f", " "):
        assert validate(signed(GOOD | {"sub": f"{blank}alice{blank}"})).principal == "alice"
        with pytest.raises(InvalidToken, match="its claim scope must have texts, each once"):
            validate(signed(GOOD | {"scope": ["a", f"a{blank}"]}))
    for blank in ("\x7f", "\x85", "\u00a0", "\u2003", "\u3000"):
        for sub in (f"{blank}alice{blank}", blank):
            assert validate(signed(GOOD | {"sub": sub, "scope": ["a", f"a{blank}", blank]})).principal == sub


def test_audiences_and_issuers() -> None:
    """Those that are expected must be there: one of the audiences, and just that issuer."""
    expected = {"audiences": frozenset(("kafka", "all")), "issuer": "https://issuer"}
    for aud in ("kafka", ["other", "all"]):
        claims = GOOD | {"aud": aud, "iss": "https://issuer"}
        assert validate(signed(claims), **expected).principal == "alice"
        with pytest.raises(InvalidToken, match="it is not from the issuer that is expected"):
            validate(signed(claims | {"iss": "https://issuer/"}), **expected)
    for wrong in ({}, {"aud": "other"}, {"aud": []}):
        with pytest.raises(InvalidToken, match="it is not for an audience that is expected"):
            validate(signed(GOOD | wrong | {"iss": "https://issuer"}), **expected)
    with pytest.raises(InvalidToken, match="it is not from the issuer that is expected"):
        validate(signed(GOOD | {"aud": "kafka"}), **expected)


def test_claims_may_have_other_names() -> None:
    """As the settings say."""
    token = signed({"who": "alice", "may": ["a", "a"], "iat": NOW_S, "exp": NOW_S + 1})
    assert validate(token, principal_claim="who").principal == "alice"
    with pytest.raises(InvalidToken, match="its claim may must have texts"):
        validate(token, principal_claim="who", scope_claim="may")


def test_which_key_is_meant() -> None:
    """By its id; without one by what the key is for, and then by algorithm and curve."""
    es, es384, rsa = jwk("ES256", kid="a"), jwk("ES384", kid="b"), jwk("RS256", kid="c")
    keys = [es384, es, rsa]
    assert choose(keys, "RS256", None) is rsa and choose(keys, "PS256", "c") is rsa
    assert choose(keys, "ES256", None) is es and choose(keys, "ES384", None) is es384
    assert choose(keys, "ES256", "b") is es384 and choose(keys, "ES256", "d") is None
    assert choose([{"kty": "EC"}], "ES256", "a") is None
    assert choose([es | {"use": "enc"}], "ES256", None) is None and choose([es | {"use": "sig"}], "ES256", None)
    assert choose([es | {"key_ops": ["sign"]}], "ES256", None) is None
    two = [rsa | {"alg": "RS512"}, rsa | {"alg": "RS256"}]
    assert choose(two, "RS256", None) is two[1] and choose(two[:1], "RS256", None) is two[0]


def test_a_missing_key_is_told_of() -> None:
    """So that the issuer can be asked."""
    published = PublishedKeys(jwk("ES256", kid="a"))
    check = SignedValidator(published, ANY, lambda: 1000 * NOW_S)
    for token in (signed(GOOD, kid="b"), signed(GOOD, "RS256")):
        with pytest.raises(InvalidToken):
            check(token)
    assert published.missed == ["b", None]
    assert check(signed(GOOD, kid="a")).principal == "alice" and len(published.missed) == 2


def test_weak_keys_do_not_count() -> None:
    """As in Kafka: RSA has at least 2048 bits, and a secret the length of the hash."""
    number = (1 << 1023) + 1
    public = {"kty": "RSA", "n": part(number.to_bytes(128, "big")), "e": "AQAB"}
    header = part({"alg": "RS256"})
    with pytest.raises(InvalidToken, match="the issuer's key has less than 2048 bits"):
        validate(f"{header}.{part(GOOD)}.YQ", public)
    token = unsecured(GOOD, {"alg": "HS256"}, "YQ")
    with pytest.raises(InvalidToken, match="the issuer's key has less than 32 bytes"):
        validate(token, {"kty": "oct", "k": part(b"x" * 31)})
    with pytest.raises(InvalidToken, match="its signature is not the issuer's"):
        validate(token, {"kty": "oct", "k": part(b"x" * 32)})


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "EC"},
        {"kty": "EC", "crv": "P-256", "x": 1, "y": "AA"},
        {"kty": "EC", "crv": [], "x": "AA", "y": "AA"},
        {"kty": "EC", "x": ""},
        {"kty": "oct"},
        {"kty": "oct", "k": 5},
        {"kty": "oct", "k": "\u00e9"},
    ],
    ids=str,
)
def test_a_broken_key_does_not_count(key: dict[str, Any]) -> None:
    """It is found out when a token means it."""
    token = signed(GOOD, "ES256" if key["kty"] == "EC" else "HS256")
    with pytest.raises(InvalidToken, match="the issuer's key cannot be used"):
        validate(token, key)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "Expecting value"),
        (b"[]", "it has no list of keys"),
        (b'{"keys":{}}', "it has no list of keys"),
        (b"\xff\xfe\xfd", "decode"),
        (key_set(*({"kty": "EC"} for _ in range(KEYS_MAX + 1))), "more than 1000 are not taken"),
    ],
    ids=lambda value: str(value[:20]),
)
def test_what_is_no_key_set(data: bytes, problem: str) -> None:
    """A key of an unknown type is left out, and the others count."""
    with pytest.raises(ValueError, match=problem):
        parse(data)
    assert parse(key_set({"kty": "new"}, {}, {"kty": "EC"})) == [{"kty": "EC"}]
    odd = [{"kty": ["EC"]}, {"kty": {}}, {"kty": 5}, {"kty": "EC", "key_ops": 5}, {"kty": "EC", "key_ops": "verify"}]
    assert parse(key_set(*odd, {"kty": "EC", "key_ops": None})) == [{"kty": "EC", "key_ops": None}]
    assert len(parse(key_set(*({"kty": "EC"} for _ in range(KEYS_MAX))))) == KEYS_MAX


def test_the_library_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.setattr("jwt.algorithms.has_crypto", False)
    with pytest.raises(ConfigError, match=r"needs cryptography beside PyJWT; pip install 'pykafkad\[oauth\]'"):
        signed_jwt.check_library()
    monkeypatch.setitem(__import__("sys").modules, "jwt.algorithms", None)
    with pytest.raises(ConfigError, match=r"needs PyJWT .*; pip install 'pykafkad\[oauth\]'"):
        signed_jwt.check_library()


def test_any_text_gives_a_token_or_the_error() -> None:
    """Broken copies of a good token; none of them is somebody else's."""
    good = signed(GOOD)
    for number in range(examples(200)):
        chance = Random(f"{seed_of_the_code()} {number}")
        letters = list(good)
        for _ in range(chance.randrange(1, 4)):
            letters[chance.randrange(len(letters))] = chance.choice("AbZ.-_+/= 0\u00e4")
        try:
            assert validate("".join(letters)).principal == "alice"
        except InvalidToken:
            pass
