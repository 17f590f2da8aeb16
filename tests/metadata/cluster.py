"""A node in memory: it performs the effects of quorum and controller on a list of encoded records, like
`server/machine_runner.py` on disk."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.config import Settings
from pykafkad.effects import Append, Persist, Reply
from pykafkad.metadata import events, quorum, quorum_states, record_codec, snapshots
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.controller import Controller
from pykafkad.metadata.image import TYPE_BROKER, Image, MetadataDelta
from pykafkad.metadata.voters import Voter

CLUSTER_ID = "AAsoE0KTRP2R9A4sSTVg0g"
DIRECTORY_ID = bytes(range(16))
NODE_ID = 1
BOOTSTRAP = [record for record in snapshots.read(snapshots.bootstrap(0)) if not record_codec.is_control(record)]


class Disk:
    """The data that survives a stop: batches of `(epoch, [(key, value)])`, and the small files."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[tuple[bytes | None, bytes]]]] = []
        self.files: dict[str, bytes] = {}
        self.broker_epoch = -1


def settings(**overrides: str) -> Settings:
    """Broker settings with `overrides`, named as attributes (`num_partitions="3"`)."""
    properties = {"node.id": "1", **{name.replace("_", "."): value for name, value in overrides.items()}}
    return Settings.from_properties({name: (value, "test") for name, value in properties.items()})


class Cluster:
    """One node, started from `disk`."""

    def __init__(self, disk: Disk | None = None, *, seed: int = 1, clean: bool = True, **overrides: str) -> None:
        self.disk = disk or Disk()
        self.random = Random(seed)
        self.settings = settings(**overrides)
        self.image = Image()
        self.replies: list[tuple[object, object]] = []
        self.now = 0.0
        self.delta = MetadataDelta()
        epoch = 0
        for epoch, records in self.disk.batches:
            for key, value in records:
                self.image.apply(record_codec.decode(key, value), epoch=epoch)
        self.image.take_delta()
        endpoint = Endpoint("CONTROLLER", "localhost", 9093)
        self.quorum = quorum.Quorum(
            NODE_ID,
            DIRECTORY_ID,
            self.image.voters or [Voter(NODE_ID, DIRECTORY_ID, [endpoint])],
            self.random,
            voters_in_log=bool(self.image.voters),
            state_file=self.disk.files.get(quorum.STATE_FILE),
        )
        self.controller = Controller(NODE_ID, CLUSTER_ID, self.settings, self.image, self.random)
        self.perform(self.quorum.step(quorum.Start(self.image.offset + 1, epoch), self.now, 0))
        assert self.quorum.state == quorum_states.LEADER
        self.submit(events.Activate(self.quorum.epoch, b"i" * 16, [endpoint], BOOTSTRAP))
        listener = Endpoint("PLAINTEXT", "localhost", 9092)
        previous = self.disk.broker_epoch if clean else -1
        self.submit(
            events.RegisterBroker(NODE_ID, b"b" * 16, [listener], [DIRECTORY_ID], previous_broker_epoch=previous)
        )
        self.disk.broker_epoch = self.image.brokers[NODE_ID].epoch
        self.submit(events.UnfenceBroker(NODE_ID, self.disk.broker_epoch))

    def submit(self, event: object) -> object:
        """Step the controller. Returns the message of its reply, or None without one."""
        count = len(self.replies)
        self.perform(self.controller.step(event, self.now, 0))
        return self.replies[-1][1] if len(self.replies) > count else None

    def perform(self, effects: list[object]) -> None:
        for effect in effects:
            if type(effect) is Append:
                assert effect.log == record_codec.LOG
                assert len({record_codec.is_control(record) for record in effect.records}) == 1, (
                    "control records stand alone"
                )
                encoded = [record_codec.encode(record) for record in effect.records]
                self.disk.batches.append((self.quorum.epoch, encoded))
                end_offset = self.image.offset + 1 + len(encoded)
                self.quorum.step(quorum.Durable(NODE_ID, end_offset), self.now, 0)
                assert self.quorum.high_watermark == end_offset
                for key, value in encoded:
                    self.image.apply(record_codec.decode(key, value), epoch=self.quorum.epoch)
                self.delta = self.image.take_delta()
                if any(resource_type == TYPE_BROKER for resource_type, _ in self.delta.configs):
                    own, everyone = self.image.configs(TYPE_BROKER, str(NODE_ID)), self.image.configs(TYPE_BROKER, "")
                    self.settings.set_dynamic(everyone, own)
            elif type(effect) is Persist:
                self.disk.files[effect.name] = effect.value
            else:
                assert type(effect) is Reply
                self.replies.append((effect.token, effect.message))

    def restart(self, *, clean: bool = True) -> Cluster:
        """A new process on the same disk."""
        return Cluster(self.disk, seed=len(self.disk.batches), clean=clean)


def count_made(monkeypatch: pytest.MonkeyPatch, most: int) -> list[object]:
    """Set the limit of the records of a change. Returns a list that collects the value of every record that is made,
    also for refused changes."""
    made: list[object] = []
    real = record_codec.record
    monkeypatch.setattr(record_codec, "MAX_RECORDS_PER_CHANGE", most)
    monkeypatch.setattr(record_codec, "record", lambda value: made.append(value) or real(value))
    return made


def facts(value: object) -> object:
    """The content of an image in a comparable form, without the state that only a running process has."""
    if isinstance(value, Image):
        return {
            name: facts(getattr(value, name))
            for name in Image.__slots__
            if name not in ("_shared", "before_change", "changed_tokens", "delta", "brokers_generation", "topic_askers")
        }
    if isinstance(value, dict):
        return {key: facts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [facts(item) for item in value]
    names = getattr(type(value), "__slots__", None)
    if names and type(value).__module__.startswith("pykafkad.metadata"):
        return {name: facts(getattr(value, name)) for name in names if name not in ("described", "pages")}
    return value
