"""`python -m compat_tests.rounds`: rounds of trouble, in batches with a cluster and clients of their own each."""

from __future__ import annotations

import argparse
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import KafkaException

from compat_tests.brokers.broker import BrokerFailed
from compat_tests.exactly_once import franz_clients
from compat_tests.load.load import Load, until
from compat_tests.load.writers import compile_java
from compat_tests.rounds.cluster import Cluster
from compat_tests.rounds.namespaces import Namespaces, NamespacesUnavailable, check
from compat_tests.rounds.network import Network
from compat_tests.rounds.proxies import Proxies
from compat_tests.rounds.troubles import chosen, happen
from compat_tests.setup.kafka_jars import JarsUnavailable, fetch_jars
from compat_tests.suites.suite import SuiteUnavailable

BATCH = 20
NETWORKS = {each.name: each for each in (Proxies, Namespaces)}
BEST = "best"


class Programs:
    """What clients of other languages need; those that cannot be had are named, and left out."""

    def __init__(self, directory: Path, *, only_python: bool) -> None:
        self.java: tuple[Path, Path] | None = None
        self.franz: Path | None = None
        if only_python:
            return
        try:
            jars = fetch_jars()
            self.java = jars, compile_java(jars, directory / "classes")
        except (JarsUnavailable, FileNotFoundError) as error:
            print(f"without the Java client: {error}", flush=True)
        try:
            self.franz = franz_clients.program()
        except SuiteUnavailable as error:
            print(f"without franz-go: {error}", flush=True)


def batch(
    directory: Path, programs: Programs, network: Network, seed: int, rounds: int, counts: Counter[str]
) -> list[str]:
    """So many rounds from a seed; what is wrong with the history."""
    chance = random.Random(seed)
    cluster = Cluster(directory, network)
    load: Load | None = None
    faults: list[str] = []
    try:
        cluster.start()
        load = Load(cluster.bootstrap, directory / "clients", java=programs.java, franz=programs.franz)
        load.goes_on()
        for number in range(rounds):
            troubles = chosen(chance, cuts_clients=network.cuts_clients)
            begun = time.monotonic()
            happen(cluster, troubles)
            load.clients.start_again()
            until("every partition has all its replicas", cluster.is_whole)
            for each in troubles:
                counts[each.kind] += 1
            words = "; ".join(map(str, troubles))
            print(f"seed {seed} round {number + 1}/{rounds}: {words}: whole {time.monotonic() - begun:.1f} s after",
                  flush=True)  # fmt: skip
        load.goes_on()
        faults += [*load.end(), *load.errors()]
        print(f"seed {seed}: {load.summary()}", flush=True)
    except (AssertionError, BrokerFailed, KafkaException) as error:
        faults.append(str(error))
    finally:
        if load is not None:
            load.close()
        faults += cluster.close()
    return faults


def run(
    rounds: int,
    seed: int,
    directory: Path,
    programs: Programs,
    size: int = BATCH,
    network: type[Proxies] | type[Namespaces] = Proxies,
) -> int:
    """All the rounds; the exit code. A batch that fails keeps its data."""
    counts: Counter[str] = Counter()
    failed = done = 0
    begun = time.monotonic()
    while done < rounds:
        some = min(size, rounds - done)
        place = directory / f"seed-{seed}"
        place.mkdir()
        faults = batch(place, programs, network(), seed, some, counts)
        if faults:
            failed += 1
            again = f"python -m compat_tests.rounds --network {network.name} --seed {seed} --rounds {some}"
            print(f"seed {seed} FAILED; its data is in {place}; once more: {again}", flush=True)
            for each in faults[:20]:
                print(f"  {each}", flush=True)
        else:
            shutil.rmtree(place)
        done += some
        seed += 1
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    print(f"{done} rounds in {time.monotonic() - begun:.0f} s ({kinds}): {failed or 'no'} batches failed", flush=True)
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compat_tests.rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=BATCH, help=f"how many (default: {BATCH})")
    parser.add_argument(
        "--seed", type=int, help="of the first batch; the next ones follow (default: another each time)"
    )
    parser.add_argument("--only-python", action="store_true", help="without the clients of Java and Go")
    parser.add_argument(
        "--network", choices=(*NETWORKS, BEST), default=Proxies.name,
        help="what cuts links: a proxy for each node, or network namespaces, which drop packets, or the best that this "
        "machine allows (default: %(default)s)",
    )  # fmt: skip
    options = parser.parse_args()
    # The processes of a cluster end with it, also when this one is told to stop.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    network = NETWORKS.get(options.network, Namespaces)
    if network is Namespaces:
        try:
            check()
        except NamespacesUnavailable as error:
            words = f"this machine allows no network namespaces: {error}"
            if options.network != BEST:
                parser.error(words)
            print(f"{words}; with proxies", flush=True)
            network = Proxies
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    directory = Path(tempfile.mkdtemp(prefix="rounds-"))
    programs = Programs(directory, only_python=options.only_python)
    code = run(options.rounds, seed, directory, programs, network=network)
    if not code:
        shutil.rmtree(directory)
    return code


if __name__ == "__main__":
    sys.exit(main())
