"""The shape of the functions that the compiler writes, for small schemas."""

from __future__ import annotations

import pytest

from pykafkad.errors import ProtocolError
from pykafkad.wire import compiler, messages, notation


def _codec(rows: str, version: int, flexible: str = "none"):
    text = f"data Sample 0-9  flexible {flexible}\n{rows}"
    message = notation.parse(text, "sample")["Sample"]
    cls = messages._make_classes(message)
    parts = messages._registry.parts[cls]
    return (
        cls,
        message,
        parts,
        *(compiler.build(direction, message, version, *parts) for direction in ("decode", "encode")),
    )


def _text(direction, message, version, parts):
    return {"decode": compiler.write_decoder, "encode": compiler.write_encoder}[direction](message, version, *parts)[0]


def test_consecutive_fixed_fields_are_one_struct():
    """Fixed-size fields and the length after them are one unpack and one pack."""
    types = ("int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "bool", "uuid", "string")
    rows = "".join(f"  {name} {kind}\n" for name, kind in zip("abcdefghij", types, strict=True))
    cls, message, parts, decode, encode = _codec(rows, 0)
    assert "unpack_from_bhHiIqdo16sh(view, position)" in _text("decode", message, 0, parts)
    assert _text("decode", message, 0, parts).count("unpack_from_") == 1
    value = cls(a=-1, b=-2, c=65535, d=-4, e=2**32 - 1, f=-6, g=0.5, h=True, i=bytes(range(16)), j="é")
    chunks = [bytearray()]
    encode(value, chunks)
    assert (
        chunks[0].hex()
        == "fffffeFFFFfffffffcfffffffffffffffffffffffa3fe000000000000001".lower() + bytes(range(16)).hex() + "0002c3a9"
    )
    assert decode(chunks[0], 0) == (value, len(chunks[0]))


def test_absent_fields_are_assigned_their_defaults():
    """Only a field without `drop` is checked when it is encoded."""
    cls, message, parts, decode, encode = _codec("  old int32 0-3 = 7\n  new string 4+ drop\n  list [int32] 4+\n", 4)
    assert "m0.old = 7" in _text("decode", message, 4, parts)
    assert "'Sample.old'" in _text("encode", message, 4, parts)
    assert "'Sample.new'" not in _text("encode", message, 3, parts)
    with pytest.raises(ProtocolError, match="Sample.old is set"):
        encode(cls(old=8), [bytearray()])
    assert decode(b"\0\1a\0\0\0\1\0\0\0\5", 0)[0] == cls(old=7, new="a", list=[5])


@pytest.mark.parametrize("flexible", ["none", "0+"])
def test_every_kind_of_null_is_encoded(flexible):
    """Strings, bytes, arrays, structs and records, null and not null, with both kinds of length."""
    rows = "  s string?\n  b bytes?\n  a [string]?\n  t {T}?\n    x int8\n"
    rows += "  u [uuid]?\n  n [int16]?\n  r records?\n  z [bytes]?\n"
    cls, _, _, decode, encode = _codec(rows, 0, flexible)
    struct = cls.T
    full = cls(s="s", b=b"b", a=["", "a"], t=struct(x=3), u=[bytes(16)], n=[1, -1], r=memoryview(b"rr"), z=[b"", b"z"])
    for value in (cls(), full, cls(s=None, b=None, a=None, t=None, u=None, n=None, r=None, z=None)):
        chunks = [bytearray()]
        encode(value, chunks)
        assert decode(chunks[0], 0) == (value, len(chunks[0]))
    null = (
        "ffff ffffffff ffffffff ff ffffffff ffffffff ffffffff ffffffff"
        if flexible == "none"
        else "00 00 00 ff 00 00 00 00 00"
    )
    assert chunks[0].hex() == null.replace(" ", "")


def test_tagged_fields_are_encoded_in_ascending_order():
    """The order of the rows does not matter. Defaults are left out. A null that is not the default is written."""
    rows = "  b bytes tag 3\n  s string? tag 0\n  a [int32]? tag 1\n  t {T} tag 2\n    x int8 = 5\n"
    rows += "  n {U}? tag 130 = null\n    y bool\n  o {V}? tag 4\n    z bool\n"
    cls, _, _, decode, encode = _codec(rows, 0, "0+")

    def data(value):
        chunks = [bytearray()]
        encode(value, chunks)
        assert decode(chunks[0], 0) == (value, len(chunks[0]))
        return chunks[0].hex()

    assert data(cls()) == "00"
    assert data(cls(s=None)) == "01000100"
    assert data(cls(a=None)) == "01010100"
    assert (
        data(cls(b=b"q", s="w", a=[1], t=cls.T(x=6))) == "04" + "00020277" + "01050200000001" + "02020600" + "03020271"
    )
    assert data(cls(t=cls.T(x=5))) == "00"
    assert data(cls(o=None)) == "01040100", "a tagged struct's null is an unsigned 0"
    assert data(cls(o=cls.V())) == "00" and data(cls(o=cls.V(z=True))) == "010403010100"
    assert data(cls(n=cls.U(y=True))) == "01" + "8201" + "03" + "010100", "a large tag number takes two bytes"


@pytest.mark.parametrize("flexible", ["none", "0+"])
def test_cached_arrays_are_encoded_once_per_version(flexible):
    """The bytes are those of a plain list. Each version remembers its own, and elements are not encoded again."""
    rows = "  before int8\n  items [T] cached\n    name string\n    size int32 1+ drop\n  after int16\n"
    for version in (0, 1):
        cls, _, _, decode, encode = _codec(rows, version, flexible)
        items = [cls.T(name="a", size=3 * version), cls.T(name="b" * 200)]
        cached = messages.CachedArray(items)
        plain, first, second = ([bytearray()] for _ in range(3))
        encode(cls(before=1, items=items, after=2), plain)
        encode(cls(before=1, items=cached, after=2), first)
        items[0].name = "changed behind its back"
        encode(cls(before=1, items=cached, after=2), second)
        assert plain == first == second and list(cached.encoded) == [version]
        assert len(decode(plain[0], 0)[0].items) == 2


def test_cached_is_allowed_for_arrays_of_structs_only():
    """Other types would gain nothing."""
    for row in ("  a int8 cached\n", "  a [int8] cached\n", "  a [T]? cached\n    b int8\n"):
        with pytest.raises(notation.NotationError, match="cached"):
            notation.parse(f"data Sample 0 flexible none\n{row}", "sample")
