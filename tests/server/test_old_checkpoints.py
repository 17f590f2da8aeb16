"""An unclean start whose checkpoint gives logs a high watermark above their ends: it is written anew before the broker
serves."""

from __future__ import annotations

import errno

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log.checkpoints import HIGH_WATERMARK_FILE, decode_offsets, encode_offsets
from pykafkad.log.offset_checkpoints import OffsetCheckpoints
from tests.simulation.brokers_world import BrokersWorld

FILE = f"/data/broker2/{HIGH_WATERMARK_FILE}"


@pytest.fixture
def killed():
    """Three brokers that were killed; the second one's checkpoint says too much."""
    world = BrokersWorld()
    world.create_topic("t", 3, 3)
    world.advance(7.0)
    assert set(decode_offsets(world.disk.read(FILE)).values()) == {0}
    world.disk.kill()
    world.disk.write(FILE, encode_offsets({("t", each): 50 for each in range(3)}))
    return world


def test_a_start_corrects_it(killed):
    world = killed.restart()
    assert set(decode_offsets(world.disk.read(FILE)).values()) == {0}
    assert world.broker(2).serving


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE])
def test_a_start_that_cannot_correct_it_fails(killed, monkeypatch, code):
    def write(self, *tables):
        raise StorageFailure("write", self.path, OSError(code, "simulated"))

    monkeypatch.setattr(OffsetCheckpoints, "write", write)
    with pytest.raises(StorageFailure, match="write /data/broker2: simulated"):
        killed.restart()
