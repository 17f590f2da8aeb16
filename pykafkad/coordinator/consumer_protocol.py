"""The topics that a member of a `consumer` group subscribes to, read from its metadata.

This is the only part of a member's metadata that a coordinator reads. Every version of the consumer protocol's
subscription begins like version 0: version (int16), topics (array of string), user data (nullable bytes). Only that
prefix is decoded."""

from __future__ import annotations

from struct import error as StructError, unpack_from

PROTOCOL_TYPE = "consumer"


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of an encoded subscription, or None when the bytes are not a subscription."""
    try:
        version, count = unpack_from(">hi", metadata, 0)
        if version < 0 or count < 0:
            return None
        position = 6
        topics = []
        for _ in range(min(count, len(metadata))):
            (length,) = unpack_from(">h", metadata, position)
            position += 2
            if length < 0 or position + length > len(metadata):
                return None
            topics.append(str(metadata[position : position + length], "utf-8", "replace"))
            position += length
        (user_data_length,) = unpack_from(">i", metadata, position)
    except StructError:
        return None
    if position + 4 + max(user_data_length, 0) > len(metadata):
        return None
    return frozenset(topics)
