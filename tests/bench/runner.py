"""Runs cases: both brokers up, loaded in turn, the order swapped from round to round."""

from __future__ import annotations

import shutil
import tempfile
import traceback
from pathlib import Path

from . import loadgen, wire_bytes
from .brokers import Before, Kafka, Pykafkad
from .clusters import CheckoutCluster, KafkaCluster, OwnCluster
from .load import CaseSkipped
from .request_loads import PARTITIONS, encoded_batch, produce_templates
from .results import summarise
from .session import Session


class Bench:
    """What a load may use: `options`, `scratch` (a folder), `libs` (Kafka's jars or None), fresh brokers and names.

    `options` has `seconds` and `warmup` of each run, `rounds`, `quick`, `produce_version`, `fetch_version`, `python`.
    """

    def __init__(self, options, libs, folder=None):
        self.options = options
        self.libs = libs
        self.scratch = Path(tempfile.mkdtemp(prefix="bench-", dir=folder))
        self.brokers = {}
        self._names = 0

    def new_name(self, stem):
        """A topic name that was not used before in this run."""
        self._names += 1
        return f"{stem.lower()}-{self._names}"

    def fresh(self, broker_name):
        """A broker of that kind, on a fresh folder, not started."""
        if broker_name == Kafka.name:
            return Kafka(self.scratch, self.libs)
        if broker_name == Before.name:
            return Before(self.scratch, self.options.python, self.options.before)
        return Pykafkad(self.scratch, self.options.python)

    def cluster(self, broker_name, settings=(), **shape):
        """A cluster of brokers of that kind, on fresh folders, not started; `shape` says how pykafkad runs it."""
        if broker_name == Kafka.name:
            return KafkaCluster(self.scratch, settings, libs=self.libs)
        if broker_name == Before.name:
            return CheckoutCluster(
                self.scratch, settings, python=self.options.python, checkout=self.options.before, **shape
            )
        return OwnCluster(self.scratch, settings, python=self.options.python, **shape)

    def start(self, broker_names, warm_seconds):
        """Starts one broker of each kind and warms it: a JVM compiles for a while before it shows what it can do."""
        for name in broker_names:
            self.brokers[name] = self.fresh(name)
            self.brokers[name].start()
            self._warm(self.brokers[name], warm_seconds)

    def _warm(self, broker, seconds):
        """Small produces, larger produces and fetches, a third of the time each."""
        topic = self.new_name("warm")
        with Session(broker.port) as session:
            topic_id = session.create_topics({topic: PARTITIONS})[topic]
            for size in (None, 16 * 1024):
                path = produce_templates(self, topic, topic_id, encoded_batch(size))
                loadgen.run(broker.port, path, connections=50, seconds=seconds / 3)
            version = self.options.fetch_version
            fetches = [wire_bytes.fetch(version, topic, topic_id, p, 0, max_bytes=4096) for p in range(PARTITIONS)]
            loadgen.write_templates(path, fetches)
            loadgen.run(broker.port, path, connections=50, seconds=seconds / 3)
            path.unlink()
            session.delete_topics([topic])
        broker.wait_until_deleted(topic)

    def _deaths(self):
        """Names the brokers that have ended, with the end of their logs."""
        dead = [broker for broker in self.brokers.values() if broker.process.poll() is not None]
        return "".join(
            f"\n{broker.name} ended with {broker.process.poll()}; its log:\n{broker.log_tail()}" for broker in dead
        )

    def close(self):
        """Stops the brokers and removes everything."""
        for broker in self.brokers.values():
            broker.discard()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def run(self, case, progress):
        """The summary (`results.summarise`) of one case; `progress(text)` is told each step."""
        rounds = {name: [] for name in self.brokers}
        trouble = skipped = None
        try:
            for broker in self.brokers.values():
                progress(f"{case.name}: preparing {broker.name}")
                case.load.prepare(broker, self)
            for number in range(self.options.rounds):
                order = list(self.brokers.values())
                for broker in order if number % 2 == 0 else reversed(order):
                    progress(f"{case.name}: round {number + 1} of {self.options.rounds}, {broker.name}")
                    rounds[broker.name].append(case.load.round(broker, self))
        except CaseSkipped as reason:
            skipped = str(reason)
        except Exception as error:  # One case that fails must not take the others' figures with it.
            trouble = f"{type(error).__name__}: {error}" + self._deaths()
            if self.options.verbose:
                traceback.print_exc()
        for broker in self.brokers.values():
            try:
                case.load.finish(broker, self)
            except Exception as error:
                trouble = trouble or f"{type(error).__name__}: {error}"
        return summarise(case, rounds, trouble, skipped)
