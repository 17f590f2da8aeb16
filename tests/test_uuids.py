"""Ids and their text."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad import uuids


def test_text_is_kafkas():
    """22 characters of url-safe base64 without padding."""
    assert uuids.to_text(b"\0" * 15 + b"\1") == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuids.from_text("AAAAAAAAAAAAAAAAAAAAAQ") == b"\0" * 15 + b"\1"
    value = bytes(range(240, 256))
    assert uuids.from_text(uuids.to_text(value)) == value
    assert "+" not in uuids.to_text(value) and "/" not in uuids.to_text(value)


def test_text_of_another_length_is_refused():
    with pytest.raises(ValueError, match="22 characters"):
        uuids.from_text("AAAA")


def test_random_ids_never_begin_with_a_dash():
    """A tool would take such an id for an option."""
    random = Random(3)
    texts = {uuids.to_text(uuids.random_uuid(random)) for _ in range(2000)}
    assert len(texts) == 2000
    assert not [text for text in texts if text.startswith("-")]
