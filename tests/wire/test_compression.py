"""The codecs return the same bytes, never exceed the limit, and reject garbage."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given, settings, strategies as st

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.wire.compression import CODECS, FRAME_STARTS, GZIP, IDS, LZ4, SNAPPY, ZSTD, compress, decompress
from tests.seeds import examples
from tests.wire.kafka_python import codec as kafka_python

CAP = 1 << 20
REAL = (GZIP, SNAPPY, LZ4, ZSTD)
THEIRS = {
    GZIP: (kafka_python.gzip_encode, kafka_python.gzip_decode),
    SNAPPY: (kafka_python.snappy_encode, kafka_python.snappy_decode),
    LZ4: (kafka_python.lz4_encode, kafka_python.lz4_decode),
    ZSTD: (kafka_python.zstd_encode, kafka_python.zstd_decode),
}


@pytest.mark.parametrize("codec", REAL)
@settings(max_examples=examples(30), deadline=None)
@given(data=st.binary(max_size=2000), times=st.integers(1, 200))
def test_decompressing_returns_the_compressed_data(codec, data, times):
    data *= times
    assert decompress(codec, compress(codec, data), CAP) == data


@pytest.mark.parametrize("codec", REAL)
def test_kafka_pythons_frames_are_compatible(codec):
    """We read frames of kafka-python, and it reads ours."""
    encode, decode = THEIRS[codec]
    data = b"".join(b"%d " % number for number in range(20_000))
    assert bytes(decode(compress(codec, data))) == data
    assert decompress(codec, memoryview(encode(data)), CAP) == data
    assert compress(codec, data)[:2] == FRAME_STARTS[codec]


@pytest.mark.parametrize("codec", REAL)
@pytest.mark.parametrize("size", [10, 100_000, CAP])
def test_decompressing_stops_at_the_limit(codec, size):
    data = bytes(size)
    squeezed = compress(codec, data)
    assert decompress(codec, squeezed, size) == data
    with pytest.raises(KafkaError) as caught:
        decompress(codec, squeezed, size - 1)
    assert caught.value.code == errors.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", REAL)
def test_damaged_data_is_a_corrupt_message(codec):
    squeezed = compress(codec, b"some text that is long enough " * 50)
    for damaged in (squeezed[:-5], b"\x5a" * 60, squeezed[:4], b""):
        if codec == SNAPPY and damaged in (b"",):
            continue
        with pytest.raises(KafkaError) as caught:
            decompress(codec, damaged, CAP)
        assert caught.value.code == errors.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", REAL)
@settings(max_examples=examples(100), deadline=None)
@given(data=st.binary(max_size=80), framed=st.booleans())
def test_any_bytes_decompress_or_raise_a_kafka_error(codec, data, framed):
    if framed:
        data = compress(codec, b"x" * 50)[:12] + data
    try:
        assert len(decompress(codec, data, CAP)) <= CAP
    except KafkaError as error:
        assert error.code in (errors.CORRUPT_MESSAGE, errors.MESSAGE_TOO_LARGE)


def test_a_snappy_block_with_a_false_size_allocates_nothing():
    """The preamble may claim four gigabytes. The claim is checked before allocating (as in CVE-2023-34455)."""
    lie = b"\xff\xff\xff\xff\x0f" + b"\0" * 20
    xerial = compress(SNAPPY, b"x")[:16] + struct.pack(">i", len(lie)) + lie
    for data in (lie, xerial):
        for cap in (CAP, 1 << 40):
            with pytest.raises(KafkaError):
                decompress(SNAPPY, data, cap)


def test_raw_snappy_is_read():
    """Some old clients send one block without the xerial frame."""
    import cramjam

    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(b"text" * 50)), CAP) == b"text" * 50


def test_lz4_frames_suit_kafkas_reader():
    """They have version 1 and independent blocks. Kafka's reader refuses linked blocks."""
    flags = compress(LZ4, b"x" * 100)[4]
    assert (flags >> 6, flags >> 5 & 1) == (1, 1)


def test_levels_of_the_codecs():
    data = b"".join(b"%d " % (number * 7919 % 5000) for number in range(20_000))
    for codec in (GZIP, LZ4, ZSTD):
        _, low, high, _ = CODECS[codec]
        assert len(compress(codec, data, high)) < len(compress(codec, data, 1))
        assert decompress(codec, compress(codec, data, low), CAP) == data
    assert zlib.decompress(compress(GZIP, b"x"), 31) == b"x"


def test_unknown_codecs_are_refused():
    assert IDS == {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
    with pytest.raises(KafkaError) as caught:
        decompress(5, b"", CAP)
    assert caught.value.code == errors.UNSUPPORTED_COMPRESSION_TYPE
    assert decompress(0, memoryview(b"x"), CAP) == b"x"
