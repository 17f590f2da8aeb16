"""A peer's limits, its failures and its patience, over the simulated network."""

import errno
import random
from itertools import pairwise

import pytest

from pykafkad.server.peer import Limits, Peer, Peers
from pykafkad.server.peer_types import DISCONNECTED, REFUSED, TIMED_OUT, Failure
from pykafkad.server.runtime import Runtime
from pykafkad.wire import frames, messages
from tests.simulation.cluster import Cluster
from tests.simulation.echo import EchoNode
from tests.simulation.network import Link

ADDRESS = ("b", 9092)


class RecordedLogs:
    """Keeps the warnings."""

    def __init__(self):
        self.warnings = []

    def warning(self, package, event, **fields):
        self.warnings.append((event, fields))

    def debug(self, package, event, **fields):
        """Nobody looks at them."""


@pytest.fixture
def cluster():
    """Hosts a and b; b answers as the test's `answer` says."""
    return Cluster(7, ("a", "b"))


def serving(cluster, **options):
    """An echo at `ADDRESS`."""
    return EchoNode(cluster, "b", **options)


def peer_of(cluster, **limits):
    return Peer(cluster.runtimes["a"], *ADDRESS, client_id="test", limits=Limits(**limits))


def ask(peer, number, outcomes):
    # What sends does so in a turn, which knows the time.
    peer._runtime.begin_turn()
    peer.send(messages.SaslAuthenticateRequest(auth_bytes=b"%d" % number), outcomes.append)


def told(outcomes):
    return [getattr(each, "auth_bytes", each) for each in outcomes]


def test_answers_come_back_in_their_order_over_one_connection(cluster):
    """Connected to with the first request, and not before."""
    echo = serving(cluster)
    peer, outcomes = peer_of(cluster), []
    cluster.run(1.0)
    assert not len(echo.socket_server)
    for number in range(20):
        ask(peer, number, outcomes)
    assert not outcomes, "never inside the call of whoever sends"
    cluster.run(2.0)
    assert told(outcomes) == [b"%d" % number for number in range(20)] and len(echo.socket_server) == 1


def test_so_many_are_in_flight_and_so_many_wait(cluster):
    """Those that do not fit are refused; the others are sent as answers come."""
    echo = serving(cluster, answers=False)
    peer, outcomes = peer_of(cluster, max_in_flight=3, max_queued=4), []
    for number in range(4):
        ask(peer, number, outcomes)
    cluster.run(1.0)
    assert echo.heard == [b"0"], "one is in service"
    assert repr(peer).endswith("3 in flight, 1 queued)")
    for number in range(4, 8):
        ask(peer, number, outcomes)
    cluster.run(2.0)
    assert outcomes == [REFUSED]
    echo.answer_all()
    cluster.run(3.0)
    assert told(outcomes) == [REFUSED, *(b"%d" % number for number in range(7))]


def test_what_is_not_answered_in_time_ends_with_its_connection(cluster):
    """A late answer would be taken for another's. What was behind it is not known to be served either."""
    echo = serving(cluster, answers=False)
    peer, outcomes = peer_of(cluster, request_timeout_ms=500, max_in_flight=2), []
    ask(peer, 1, outcomes)
    cluster.run(0.3)
    ask(peer, 2, outcomes)
    cluster.run(0.49)
    assert not outcomes
    cluster.run(0.6)
    assert outcomes == [TIMED_OUT, DISCONNECTED]
    echo.answers = True
    ask(peer, 3, outcomes)
    cluster.run(2.0)
    assert told(outcomes)[2:] == [b"3"] and echo.heard == [b"1", b"3"]


def test_one_that_waits_for_a_connection_has_the_same_time(cluster):
    """Nobody listens there."""
    peer, outcomes = peer_of(cluster, request_timeout_ms=700), []
    ask(peer, 1, outcomes)
    cluster.run(0.69)
    assert not outcomes
    cluster.run(0.8)
    assert outcomes == [TIMED_OUT]


def test_pauses_grow_to_the_longest_and_are_never_the_same(cluster, monkeypatch):
    """Between attempts at an address where nobody listens."""
    attempts, connect = [], cluster.network.connect
    monkeypatch.setattr(
        cluster.network, "connect", lambda *where: (attempts.append(cluster.clock.now()), connect(*where))[1]
    )
    peer, outcomes = peer_of(cluster, backoff_ms=100, backoff_max_ms=800, request_timeout_ms=60_000), []
    ask(peer, 1, outcomes)
    cluster.run(6.0)
    pauses = [later - earlier for earlier, later in pairwise(attempts)]
    assert len(pauses) > 6 and len(set(pauses)) == len(pauses)
    for pause, usual in zip(pauses, [0.1, 0.2, 0.4, 0.8, 0.8, 0.8], strict=False):
        assert 0.8 * usual <= pause <= 1.2 * usual
    serving(cluster)
    cluster.run(8.0)
    assert told(outcomes) == [b"1"]


def test_a_connection_attempt_that_takes_too_long_is_given_up(cluster):
    """Its packets are lost. When they are not any more, the next attempt comes through."""
    serving(cluster)
    cluster.network.cut("a", "b")
    peer, outcomes = peer_of(cluster, connect_timeout_ms=300, backoff_ms=50), []
    ask(peer, 1, outcomes)
    cluster.run(0.2)
    assert len(cluster.runtimes["a"].reactor.connector) == 1
    cluster.run(0.31)
    assert not len(cluster.runtimes["a"].reactor.connector)
    cluster.network.mend("a", "b")
    cluster.run(2.0)
    assert told(outcomes) == [b"1"]


def test_a_reset_disconnects_what_is_in_flight_and_keeps_what_waits(cluster):
    """Nobody knows whether the first were served; the others were never sent."""
    echo = serving(cluster, answers=False)
    peer, outcomes = peer_of(cluster, max_in_flight=2), []
    for number in range(4):
        ask(peer, number, outcomes)
    cluster.run(0.5)
    echo.answers = True
    cluster.network.reset("a", "b")
    cluster.run(2.0)
    assert told(outcomes) == [DISCONNECTED, DISCONNECTED, b"2", b"3"]


def test_a_closed_peer_refuses(cluster):
    """What waited was not sent, what was sent is disconnected."""
    serving(cluster, answers=False)
    peer, outcomes = peer_of(cluster, max_in_flight=1), []
    ask(peer, 1, outcomes)
    ask(peer, 2, outcomes)
    cluster.run(0.5)
    peer.close()
    ask(peer, 3, outcomes)
    cluster.run(1.0)
    assert outcomes == [DISCONNECTED, REFUSED, REFUSED]


def test_a_node_without_an_address_refuses_at_the_end_of_the_turn(cluster):
    """Never inside the call of whoever sends, who would be asked again in the middle of what he does."""
    runtime, outcomes = cluster.runtimes["a"], []
    peers = Peers(runtime, "test")
    runtime.begin_turn()
    for then in (lambda outcome: 1 // 0, outcomes.append):
        peers.send(5, messages.SaslAuthenticateRequest(), then)
    assert outcomes == []
    cluster.run(1.0)
    assert outcomes == [REFUSED] and runtime.metrics.unexpected_errors == 1


@pytest.mark.parametrize("answer", [b"\0\0\0\x63" + b"\0\0", b"\0", b"\0\0\0\1"])
def test_an_answer_that_is_not_understood_ends_the_connection(cluster, answer):
    """To another request, or broken."""
    serving(cluster, raw=answer)
    peer, outcomes = peer_of(cluster, backoff_ms=100_000, backoff_max_ms=100_000), []
    ask(peer, 1, outcomes)
    cluster.run(1.0)
    assert outcomes == [DISCONNECTED]


def test_a_larger_answer_than_allowed_ends_the_connection(cluster):
    """Before it takes memory."""
    serving(cluster)
    peer, outcomes = peer_of(cluster, max_frame_bytes=1000), []
    peer.send(messages.SaslAuthenticateRequest(auth_bytes=bytes(2000)), outcomes.append)
    cluster.run(0.01)
    assert outcomes == [DISCONNECTED]


def test_a_bug_in_what_an_answer_leads_to_is_no_other_requests(cluster):
    """It is counted, and the others get their answers."""
    serving(cluster)
    peer, outcomes = peer_of(cluster), []
    peer.send(messages.SaslAuthenticateRequest(auth_bytes=b"1"), lambda outcome: 1 // 0)
    ask(peer, 2, outcomes)
    cluster.run(1.0)
    assert told(outcomes) == [b"2"] and cluster.runtimes["a"].metrics.unexpected_errors == 1


def test_what_a_peer_does_not_read_yet_does_not_keep_its_answers_from_being_read(cluster):
    """Each side of a connection has more to send than fits into its windows. If both waited for the other to read, no
    request would ever be answered."""
    cluster.network.set_usual_link(Link(delay=0.001, window_bytes=20_000))
    serving(cluster)
    peer, outcomes = peer_of(cluster), []
    texts = [str(number) * 100_000 for number in range(5)]
    for text in texts:
        cluster.runtimes["a"].begin_turn()
        peer.send(messages.SaslAuthenticateRequest(auth_bytes=text.encode()), outcomes.append)
    cluster.run(60.0)
    assert told(outcomes) == [text.encode() for text in texts]


@pytest.mark.parametrize("call", [1, 2], ids=["the attempt", "the connection"])
def test_a_connection_that_cannot_be_waited_for_is_tried_again(cluster, call):
    """The system limits how many descriptors a user waits for."""
    serving(cluster)
    peer, outcomes = peer_of(cluster), []
    poller = cluster.runtimes["a"].reactor._poller
    register, calls = poller.register, []

    def refuse_one(fileno, mask):
        calls.append(fileno)
        if len(calls) == call:
            raise OSError(errno.ENOSPC, "No space left on device")
        register(fileno, mask)

    poller.register = refuse_one
    ask(peer, 1, outcomes)
    cluster.run(5.0)
    assert told(outcomes) == [b"1"] and len(calls) == call + 2


def test_the_versions_are_asked_for_once_for_each_connection(cluster):
    """The node of today may be another release than that of yesterday."""
    echo = serving(cluster)
    peer, outcomes = peer_of(cluster), []
    for number in range(3):
        ask(peer, number, outcomes)
    cluster.run(1.0)
    assert echo.asked_in == [4] and echo.heard_in == [2, 2, 2]
    echo.ranges = {36: (0, 1)}
    cluster.network.reset("a", "b")
    cluster.run(2.0)
    ask(peer, 3, outcomes)
    cluster.run(3.0)
    assert echo.asked_in == [4, 4] and echo.heard_in == [2, 2, 2, 1]
    assert told(outcomes) == [b"0", b"1", b"2", b"3"]


def test_nothing_is_sent_before_the_versions_are_known(cluster):
    """Not what comes while they are asked for, either."""
    cluster.network.set_usual_link(Link(delay=0.1))
    echo = serving(cluster)
    peer, outcomes = peer_of(cluster), []
    ask(peer, 1, outcomes)
    cluster.run(0.35)
    assert echo.asked_in == [4]
    ask(peer, 2, outcomes)
    cluster.run(0.39)
    assert not echo.heard
    cluster.run(1.0)
    assert told(outcomes) == [b"1", b"2"]


@pytest.mark.parametrize("knows", [0, 2, 3])
def test_an_older_node_is_asked_for_its_versions_as_it_understands(cluster, knows):
    """It answers a version that it does not know in version 0, with those of ApiVersions."""
    echo = serving(cluster, knows=knows)
    peer, outcomes = peer_of(cluster), []
    ask(peer, 1, outcomes)
    cluster.run(1.0)
    assert echo.asked_in == [4, knows] and told(outcomes) == [b"1"]


@pytest.mark.parametrize(
    ("ranges", "reason"),
    [
        ({18: (0, 4)}, "b:9092 does not answer SaslAuthenticate"),
        ({36: (3, 5)}, "b:9092 answers SaslAuthenticate in the versions 3-5, and this node asks in 0-2"),
    ],
)
def test_an_api_without_a_common_version_is_said_to_be_lacking(cluster, ranges, reason):
    """At once, for each request, over a connection that stays. The log names it once."""
    echo = serving(cluster, ranges=ranges)
    logs = RecordedLogs()
    cluster.runtimes["a"].logs = logs
    peer, outcomes = peer_of(cluster), []
    for number in range(12):
        ask(peer, number, outcomes)
    cluster.run(1.0)
    assert outcomes == [Failure(reason, is_final=True)] * 12 and not echo.heard
    assert logs.warnings == [("peer-lacks-api", {"peer": "b:9092", "reason": reason, "more": None})]
    assert len(echo.socket_server) == 1


def test_a_request_that_an_older_version_cannot_say_fails_alone(cluster):
    """No field of it is left out in silence."""
    echo = serving(cluster, ranges={36: (0, 2), 57: (0, 0)})
    logs = cluster.runtimes["a"].logs = RecordedLogs()
    peer, outcomes = peer_of(cluster), []
    cluster.runtimes["a"].begin_turn()
    # A dry run, which version 0 does not know.
    for _ in range(3):
        peer.send(messages.UpdateFeaturesRequest(validate_only=True), outcomes.append)
    ask(peer, 1, outcomes)
    cluster.run(1.0)
    for each in outcomes[:3]:
        assert each.is_final and "b:9092 has no version of UpdateFeatures for this request" in each.reason
    assert told(outcomes)[3:] == [b"1"] and echo.heard == [b"1"]
    assert [event for event, _ in logs.warnings] == ["request-not-sent"], "a host is named once a minute"


@pytest.mark.parametrize("error_code", [35, 42, 0])
def test_a_node_that_does_not_tell_its_versions_gets_no_request(cluster, error_code):
    """Whatever it says instead; and the next attempt comes after a pause that grows."""
    echo = serving(cluster)
    told_versions = messages.ApiVersionsResponse(error_code=error_code)

    def refuse(correlation_id, version):
        chunks = [frames.start_response(correlation_id, False)]
        messages.encoder(messages.ApiVersionsResponse, 0)(told_versions, chunks)
        frames.finish_frame(chunks)
        return chunks

    echo._tell_versions = refuse
    peer, outcomes = peer_of(cluster, backoff_ms=100, backoff_max_ms=400, request_timeout_ms=3000), []
    ask(peer, 1, outcomes)
    cluster.run(5.0)
    assert outcomes == [TIMED_OUT] and not echo.heard
    assert 6 <= len(echo.asked_in) <= 12


def test_a_greeting_without_an_answer_ends_its_connection(cluster):
    """What waits behind it is not kept longer than it may be."""
    echo = serving(cluster)
    echo._tell_versions = lambda correlation_id, version: []
    peer, outcomes = peer_of(cluster, request_timeout_ms=500, backoff_ms=100_000, backoff_max_ms=100_000), []
    ask(peer, 1, outcomes)
    cluster.run(0.49)
    assert not outcomes and len(echo.socket_server) == 1
    cluster.run(0.7)
    assert outcomes == [TIMED_OUT] and not len(echo.socket_server)


def test_through_real_sockets():
    """The same between two reactors of this process, where nothing is simulated but the turns' order."""
    from tests.server.echo import EchoNode as RealEcho

    def answer(connection, payload):
        key, version, correlation_id, _, position = frames.read_request_header(memoryview(payload), {36: 2, 18: 3})
        if key == 18:
            known = messages.ApiVersionsResponse.ApiVersion(api_key=36, min_version=0, max_version=2)
            response = messages.ApiVersionsResponse(api_keys=[known])
        else:
            request, _ = messages.decoder(messages.SaslAuthenticateRequest, 2)(memoryview(payload), position)
            response = messages.SaslAuthenticateResponse(auth_bytes=request.auth_bytes)
        chunks = [frames.start_response(correlation_id, key == 36)]
        messages.encoder(type(response), version)(response, chunks)
        frames.finish_frame(chunks)
        return b"".join(chunks)

    node = RealEcho().open()
    node.answer = answer
    port = node.listen()
    runtime = Runtime(random=random.Random(1))
    peer, outcomes = Peer(runtime, "127.0.0.1", port, client_id="test"), []
    for number in range(3):
        ask(peer, number, outcomes)
    for _ in range(3000):
        if len(outcomes) == 3:
            break
        runtime.reactor.turn(0.001)
        node.reactor.turn(0.001)
    assert told(outcomes) == [b"0", b"1", b"2"]
    peer.close()
    nobody = Peer(runtime, "127.0.0.1", 1, client_id="test", limits=Limits(request_timeout_ms=50))
    ask(nobody, 1, outcomes)
    for _ in range(3000):
        if len(outcomes) == 4:
            break
        runtime.reactor.turn(0.001)
    assert outcomes[3] == TIMED_OUT
    nobody.close()
    runtime.close()
    node.close()


@pytest.mark.parametrize("waits", [True, False])
def test_a_request_waits_for_a_connection_or_ends_with_the_failed_one(cluster, waits):
    """Who can ask somebody else hears at once that nobody is there."""
    peer, outcomes = peer_of(cluster, request_timeout_ms=5000, waits_for_connection=waits), []
    ask(peer, 1, outcomes)
    cluster.run(1.0)
    assert outcomes == ([] if waits else [DISCONNECTED])
    cluster.run(6.0)
    assert outcomes == [TIMED_OUT if waits else DISCONNECTED]
    serving(cluster)
    ask(peer, 2, outcomes)
    cluster.run(8.0)
    assert told(outcomes)[1:] == [b"2"]
