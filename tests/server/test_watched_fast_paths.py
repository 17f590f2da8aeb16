"""Fast paths of callers whom an authorizer watches: they serve what the caller may do, and nothing else."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.server import watched_fast_paths
from pykafkad.server.fault_injection import FaultInjection
from pykafkad.server.injected_fault import Fault
from pykafkad.wire import messages
from tests import seeds
from tests.handlers.requests import batch, fetch, produce
from tests.metadata.naive_authorizer import ALL, ALLOW, DENY, LITERAL, PREFIXED, READ, WRITE, allowed
from tests.metadata.test_acls import chosen, entry
from tests.simulation.world import World

REFUSED = errors.TOPIC_AUTHORIZATION_FAILED
TOPIC = 2


def guarded(path: Path) -> World:
    """One on which everybody may do what no entry is about, with two topics."""
    made = World(path, authorizer_class_name=STANDARD_AUTHORIZER, allow_everyone_if_no_acl_found="true")
    for name in ("t", "u"):
        made.create_topic(name)
        produced(made.connect(), name)
    return made


@pytest.fixture
def world(tmp_path: Path) -> World:
    return guarded(tmp_path)


def produced(peer, topic: str = "t", version: int = 8) -> int:
    """The error of a small batch."""
    return peer.ask(produce(topic, {0: batch(b"x")}), version).responses[0].partition_responses[0].error_code


def fetched(peer, topic: str = "t", version: int = 6) -> int:
    """The error of a small fetch."""
    return peer.ask(fetch(topic, {0: 0}), version).responses[0].partitions[0].error_code


def add(peer, *entries) -> None:
    answer = peer.ask(messages.CreateAclsRequest(creations=list(entries)), 3)
    assert not any(row.error_code for row in answer.results)


def own(name: str, operation: int, **fields: object):
    return entry(name, principal="User:ANONYMOUS", operation=operation, **fields)


def watch(peer) -> list[bool]:
    """A list that gets, for each frame that a fast path of the peer's caller looks at, whether it was served."""
    served: list[bool] = []
    fast_paths = peer.connection.session.fast_paths

    def watched(serve):
        def look(*arguments):
            served.append(serve(*arguments))
            return served[-1]

        return look

    for word, serve in list(fast_paths.items()):
        fast_paths[word] = watched(serve)
    return served


def test_a_caller_gets_fast_paths_with_the_first_topic_that_it_may_use(world: World) -> None:
    """A session that does something else has none. All sessions of the caller share them."""
    peer, other = world.connect(), world.connect()
    peer.ask(messages.MetadataRequest(topics=[]), 8)
    assert peer.connection.session.fast_paths == {}
    assert fetched(peer) == produced(other) == errors.NONE
    assert peer.connection.session.fast_paths is other.connection.session.fast_paths
    served = watch(peer)
    assert fetched(peer) == produced(peer) == produced(other) == produced(peer, "u") == errors.NONE
    assert served == [True] * 4
    assert world.broker.fast_paths.keys() >= peer.connection.session.fast_paths.keys()


def test_they_serve_no_topic_that_the_caller_may_not_use(world: World) -> None:
    """Neither reading where it may write, nor the other way round."""
    peer = world.connect()
    add(peer, own("t", WRITE), own("u", READ))
    assert produced(peer) == fetched(peer, "u") == errors.NONE
    served = watch(peer)
    assert produced(peer) == fetched(peer, "u") == errors.NONE and served == [True, True]
    assert produced(peer, "u") == fetched(peer) == REFUSED and True not in served[2:]


def test_changed_entries_count_from_the_next_frame_on(world: World) -> None:
    """The bytes of the frame are the same."""
    peer, other = world.connect(), world.connect()
    assert produced(peer) == fetched(peer) == errors.NONE
    served = watch(peer)
    assert produced(peer) == fetched(peer) == errors.NONE and served == [True, True]
    add(other, own("t", ALL, permission_type=DENY))
    assert produced(peer) == fetched(peer) == REFUSED
    other.ask(messages.DeleteAclsRequest(filters=[chosen(resource_name_filter="t")]), 3)
    del served[:]
    assert produced(peer) == fetched(peer) == errors.NONE and served == [True, True]


def test_another_principal_has_others(world: World) -> None:
    """Also on the same connection, after another login."""
    peer, alice = world.connect(), world.connect()
    alice.connection.session.principal = "User:alice"
    add(peer, entry("t", principal="User:alice", operation=WRITE))
    assert produced(alice) == produced(alice) == errors.NONE
    assert (produced(peer), produced(peer)) == (REFUSED, REFUSED)
    assert peer.connection.session.fast_paths == {} != alice.connection.session.fast_paths


def test_so_many_callers_have_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more takes them from the first, whose requests are served all the same."""
    monkeypatch.setattr(watched_fast_paths, "MAX_CALLERS", 2)
    peers = [world.connect() for _ in range(3)]
    for number, peer in enumerate(peers[:2]):
        peer.connection.session.principal = f"User:{number}"
        assert produced(peer) == errors.NONE
    served = watch(peers[0])
    assert produced(peers[0]) == errors.NONE
    assert produced(peers[2]) == errors.NONE
    assert produced(peers[0]) == errors.NONE
    assert True in served and served[-1] is False
    assert len(world.broker.sessions.watched_fast_paths._callers) == 2


def remembered(world: World) -> int:
    """What all callers remember."""
    paths = [path for caller in world.broker.sessions.watched_fast_paths._callers.values() for path in caller._paths]
    keys = [getattr(path, "_partition_keys", None) or path._log.__self__ for path in paths]
    preambles = [each for path in paths for each in getattr(path, "_preambles", ())]
    return sum(map(len, preambles)) + sum(len(each.logs) for each in keys)


def test_so_much_is_remembered_of_all_callers_together(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever names, versions and client ids they use. They are served all the same."""
    monkeypatch.setattr(watched_fast_paths, "MAX_REMEMBERED", 7)
    peers = [world.connect() for _ in range(3)]
    for number, peer in enumerate(peers):
        peer.connection.session.principal = f"User:{number}"
    most = 0
    for topic in ("t", "u"):
        for version in (4, 5, 7, 8):
            for peer in peers:
                assert produced(peer, topic, version) == fetched(peer, topic, version) == errors.NONE
                most = max(most, remembered(world))
                assert most <= 7
    assert most == 7, "the callers have met more than that"


def test_faults_take_them_away(world: World) -> None:
    """They would not meet the fault; afterwards callers get them again."""
    peer = world.connect()
    assert produced(peer) == errors.NONE and peer.connection.session.fast_paths
    faults = FaultInjection(world.broker)
    fault = Fault("error", frozenset({1}), error_code=errors.UNKNOWN_SERVER_ERROR)
    faults.add(fault)
    assert produced(peer) == produced(peer, "u") == errors.NONE and peer.connection.session.fast_paths == {}
    faults.clear()
    assert produced(world.connect()) == errors.NONE


@pytest.mark.parametrize("seed", seeds.sampled(range(60), 15))
def test_random_frames_meet_what_the_entries_say(tmp_path: Path, seed: int) -> None:
    """Entries come and go while several principals produce and fetch by the same few frames."""
    random = Random(seeds.seed_of_the_code() * 1000 + seed)
    world = guarded(tmp_path)
    admin = world.connect()
    names = ("User:ANONYMOUS", "User:a", "User:b")
    peers = {name: [world.connect(), world.connect()] for name in names}
    for name, of_name in peers.items():
        for peer in of_name:
            peer.connection.session.principal = name
    for _ in range(60):
        if random.random() < 0.2:
            fields = {
                "operation": random.choice((READ, WRITE, ALL)),
                "principal": random.choice((*names, "User:*")),
                "resource_pattern_type": random.choice((LITERAL, PREFIXED)),
                "permission_type": random.choice((ALLOW, ALLOW, DENY)),
            }
            if random.random() < 0.6:
                add(admin, entry(random.choice(("t", "u", "*")), **fields))
            else:
                admin.ask(messages.DeleteAclsRequest(filters=[chosen(principal_filter=fields["principal"])]), 3)
        principal, topic = random.choice(names), random.choice("tu")
        peer = random.choice(peers[principal])
        if random.random() < 0.5:
            code, operation = produced(peer, topic, random.choice((7, 9, 12))), WRITE
        else:
            code, operation = fetched(peer, topic, random.choice((4, 12))), READ
        expected = allowed(
            list(world.broker.image.acls.values()),
            principal,
            "127.0.0.1",
            operation,
            TOPIC,
            topic,
            allow_if_no_acl=True,
        )
        assert code == (errors.NONE if expected else REFUSED)
