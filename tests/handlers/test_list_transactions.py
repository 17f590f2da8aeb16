"""ListTransactions: every filter, and invalid ones."""

import pytest

from pykafkad import errors
from pykafkad.handlers import list_transactions
from pykafkad.settings import regular_expressions
from pykafkad.wire import messages
from tests.handlers.transaction_requests import Producer, Refusing
from tests.rows import in_turn
from tests.simulation.world import World


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_list_is_empty_in_every_version(peer, version):
    """Unknown states are returned once."""
    asked = {"state_filters": ["Ongoing", "Dead", "ongoing", "", "ongoing"], "producer_id_filters": [1, -1]}
    if version:
        asked["duration_filter"] = 5
    answer = peer.ask(messages.ListTransactionsRequest(**asked), version)
    assert (answer.error_code, answer.transaction_states, answer.unknown_state_filters) == (0, [], ["ongoing", ""])
    assert peer.ask(messages.ListTransactionsRequest(), version).unknown_state_filters == []


@in_turn(
    "pattern",
    [
        "(", "[", "*", "\\", "a)", "x{2,1}", "{2}", "a**", "a++", "a{2}+", "a{1001}", "(a{2,1001}|b)", "\\p{Alpha}+",
        "\\p{", "(a)\\1", "(?=a)", "(?!a)", "(?<=a)",
        "(?>a)", "(?#a)", "(?x)a", "(?P=n)", "(?<n", "\\Z", "\\h", "a|(b|c++)", "((a++)*)",
    ],
)  # fmt: skip
def test_an_invalid_pattern_is_refused(peer, pattern):
    """KIP-1152: by RE2's rules. No other filter is checked then."""
    answer = peer.ask(messages.ListTransactionsRequest(transactional_id_pattern=pattern, state_filters=["none"]), 2)
    assert (answer.error_code, answer.unknown_state_filters) == (errors.INVALID_REGULAR_EXPRESSION, [])


@in_turn(
    "pattern",
    [
        None, "", "a.*", "a{2}", "a{2,}", "a{1000}", "a{", "{", "a{1", "a{,3}", "}", "\\{", "[{]", "a*?", "\\Qa(b\\E.*",
        "\\Q(", "\\pL", "\\PN", "\\p{Lu}\\p{^Greek}",
        "(?<n>a)", "(?P<n>a)", "[[:alpha:]]", "\\d{3}-\\w*", "\\\\", "\\\\p{", "(?i)a", "a(?is-m:b)", "(?U)a*",
        "a(?-s)", "\\x{41}\\z", "[(?=]", "(a|b)*",
    ],
)  # fmt: skip
def test_a_valid_pattern_is_accepted(peer, pattern):
    """Also one that Python's `re` does not accept."""
    assert peer.ask(messages.ListTransactionsRequest(transactional_id_pattern=pattern), 2).error_code == errors.NONE


def test_a_long_pattern_is_compiled_beside_the_loop(world, peer, monkeypatch):
    """The longest pattern that is compiled on the loop takes two milliseconds."""
    longest = list_transactions.MAX_PATTERN_CHARACTERS
    beside = []
    compute = world.broker.services.compute
    monkeypatch.setattr(
        world.broker.services, "compute", lambda token, job, answer: beside.append(1) or compute(token, job, answer)
    )
    for length in (longest, longest + 1):
        for pattern, error in (("(" * length, errors.INVALID_REGULAR_EXPRESSION), ("a" * length, errors.NONE)):
            assert listed(world, peer, transactional_id_pattern=pattern).error_code == error
    assert len(beside) == 2


def listed(world, peer, **fields):
    """The answer, which the thread for long computations may have to make."""
    before = len(peer.answers)
    peer.send(messages.ListTransactionsRequest(**fields), 2)
    world.runtime.cpu_offload.close()
    world.turn()
    return peer.answers[before]


def ids(peer, version=2, **fields):
    answer = peer.ask(messages.ListTransactionsRequest(**fields), version)
    assert answer.error_code == 0
    return sorted(row.transactional_id for row in answer.transaction_states)


@pytest.fixture
def producers(world, peer):
    """One producer without a transaction, one with an open one since 10 s, one whose transaction has ended."""
    made = [Producer(world, peer, each).create_topic().find() for each in ("empty", "open", "ended")]
    for producer in made:
        producer.init()
    made[1].add(0)
    made[2].add(0)
    made[2].end()
    world.clock.advance(10)
    return made


def test_ids_are_listed_with_producer_and_state(peer, producers):
    answer = peer.ask(messages.ListTransactionsRequest(), 0)
    assert {(row.transactional_id, row.producer_id, row.transaction_state) for row in answer.transaction_states} == {
        ("empty", producers[0].producer_id, "Empty"),
        ("open", producers[1].producer_id, "Ongoing"),
        ("ended", producers[2].producer_id, "CompleteCommit"),
    }


def test_each_filter_chooses(world, peer, producers):
    assert ids(peer, state_filters=["Ongoing", "Empty"]) == ["empty", "open"]
    assert ids(peer, state_filters=["unknown"]) == []
    assert ids(peer, producer_id_filters=[producers[2].producer_id, 5]) == ["ended"]
    assert ids(peer, transactional_id_pattern="e.*") == ["empty", "ended"]
    assert ids(peer, transactional_id_pattern="e") == []
    long = listed(world, peer, transactional_id_pattern="(e|" + "x" * 300 + ").*")
    assert sorted(row.transactional_id for row in long.transaction_states) == ["empty", "ended"]
    assert ids(peer, duration_filter=9_999, state_filters=["Ongoing"]) == ["open"]
    assert ids(peer, duration_filter=10_000, state_filters=["Ongoing"]) == []
    # An id without a transaction counts as open since the epoch of all clocks, as in Kafka.
    assert ids(peer, duration_filter=10**9) == ["empty"]
    assert ids(peer, duration_filter=-1, transactional_id_pattern="") == ["empty", "ended", "open"]


def test_without_the_library_no_pattern_is_valid(peer, monkeypatch):
    def missing(expression):
        raise regular_expressions.LibraryMissing(expression)

    monkeypatch.setattr(regular_expressions, "compiled", missing)
    answer = peer.ask(messages.ListTransactionsRequest(transactional_id_pattern="a"), 2)
    assert answer.error_code == errors.INVALID_REGULAR_EXPRESSION


def test_ids_that_the_caller_may_not_describe_are_left_out(tmp_path):
    refusing = Refusing()
    world = World(tmp_path, authorizer=refusing)
    peer = world.connect()
    for each in ("open", "secret"):
        Producer(world, peer, each).find().init()
    refusing.refuse(world, ("Describe", "TransactionalId", "secret"))
    assert ids(peer) == ["open"]
