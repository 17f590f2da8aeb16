"""What a broker asks of a controller in another process, and what its clients get of it."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.metadata import events
from pykafkad.server import controller_channel
from pykafkad.server.controller_channel import ControllerLink
from pykafkad.server.metadata_source import ActiveController
from pykafkad.server.peer_greeting import Greeting
from pykafkad.server.peer_types import PLAIN_TEXT, TIMED_OUT
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.simulation.broker_processes import CONTROLLER, BrokerProcesses


class Recording:
    """An authorizer that refuses what it is told to, and keeps the questions."""

    def __init__(self):
        self.refused = set()
        self.asked = []

    def authorize(self, principal, client_address, operation, resource_type, resource_name):
        self.asked.append((client_address, operation, resource_type))
        return (client_address, operation) not in self.refused


@pytest.fixture
def authorizer():
    return Recording()


@pytest.fixture
def world(authorizer):
    made = BrokerProcesses(authorizer=authorizer)
    made.until_serving()
    made.until_read()
    yield made
    made.close()


def alteration(*resources, validate_only=False):
    """`resources` are (type, name, {setting: value})."""
    request = messages.IncrementalAlterConfigsRequest
    return request(
        validate_only=validate_only,
        resources=[
            request.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    request.AlterableConfig(name=key, config_operation=0, value=value) for key, value in changes.items()
                ],
            )
            for kind, name, changes in resources
        ],
    )


def test_a_request_of_a_client_is_decided_for_the_client(world, authorizer):
    world.create_topic(2, "t", [[2]])
    assert ("client", "Create", "Cluster") not in authorizer.asked
    assert ("0.0.0.0", "Create", "Topic") in authorizer.asked, "no address: the clients of this world have a name"
    authorizer.refused = {("0.0.0.0", "Delete")}
    names = messages.DeleteTopicsRequest.DeleteTopicState(name="t")
    (row,) = world.connect(3).ask(messages.DeleteTopicsRequest(topics=[names], timeout_ms=1000), 6).responses
    assert row.error_code == errors.TOPIC_AUTHORIZATION_FAILED and "t" in world.controller.image.topics


def test_settings_are_decided_by_the_broker_and_the_controller(world):
    """The broker answers for loggers and for what is wrong with the request, the controller for the rest."""
    world.create_topic(2, "t", [[2]])
    asked = alteration(
        (8, "2", {"root": "ERROR"}),
        (2, "t", {"retention.ms": "7"}),
        (2, "none", {"retention.ms": "7"}),
        (2, "twice", {}),
        (2, "twice", {}),
        (4, "2", {"log.retention.ms": "9"}),
    )
    answer = world.connect(2).ask(asked, 1)
    assert [(row.resource_type, row.resource_name, row.error_code) for row in answer.responses] == [
        (8, "2", 0),
        (2, "t", 0),
        (2, "none", errors.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "twice", errors.INVALID_REQUEST),
        (2, "twice", errors.INVALID_REQUEST),
        (4, "2", 0),
    ]
    world.until_read()
    assert world.broker(3).image.configs(2, "t") == {"retention.ms": "7"}
    assert world.broker(2).settings.dynamic_broker["log.retention.ms"] == "9"


def test_a_setting_that_the_broker_itself_wants(world):
    answers = []

    class Token:
        def deliver(self, message):
            answers.append(message)

    changes = [(4, "", [("log.retention.ms", 0, "7")])]
    world.broker(2).controller.submit(events.AlterConfigs(Token(), changes, incremental=True))
    world.until(lambda: answers)
    assert [row.error_code for row in answers[0].responses] == [0]
    assert world.controller.image.configs(4, "")["log.retention.ms"] == "7"


@pytest.mark.parametrize("incremental", [True, False])
def test_what_the_broker_refuses_as_a_whole_asks_nobody(world, incremental):
    served = world.controller.metrics.requests
    if incremental:
        answer = world.connect(2).ask(alteration((8, "2", {"root": "ERROR"})), 1)
    else:
        request = messages.AlterConfigsRequest
        answer = world.connect(2).ask(
            request(resources=[request.AlterConfigsResource(resource_type=2, resource_name="a", configs=[])] * 2), 2
        )
    assert [row.error_code for row in answer.responses] == [0] if incremental else [errors.INVALID_REQUEST] * 2
    assert world.controller.metrics.requests == served


def test_the_older_request_replaces_all_settings(world):
    world.create_topic(2, "t", [[2]])
    request = messages.AlterConfigsRequest
    change = request.AlterableConfig(name="retention.ms", value="7")
    resource = request.AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
    assert world.connect(3).ask(request(resources=[resource]), 2).responses[0].error_code == 0
    assert world.controller.image.configs(2, "t") == {"retention.ms": "7"}


def test_tokens_are_asked_of_the_controller(world):
    """It is the one that refuses them where they are off; clients without a login are refused here."""
    answer = world.connect(2).ask(messages.CreateDelegationTokenRequest(), 3)
    assert answer.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_producers_get_their_ids_from_the_controller(world):
    request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    ids = [world.connect(node_id).ask(request, 4) for node_id in (2, 3, 2)]
    assert [each.error_code for each in ids] == [0, 0, 0]
    assert len({each.producer_id for each in ids}) == 3
    assert abs(ids[0].producer_id - ids[1].producer_id) == 1000, "blocks of their own"


def test_a_topic_that_is_asked_for_is_created(world):
    named = [messages.MetadataRequest.MetadataRequestTopic(name="new")]
    peer = world.connect(2)
    peer.ask(messages.MetadataRequest(topics=named, allow_auto_topic_creation=True), 12)
    world.until(lambda: "new" in world.broker(2).image.topics)
    world.until_read()
    (topic,) = peer.ask(messages.MetadataRequest(topics=named, allow_auto_topic_creation=False), 12).topics
    assert topic.error_code == 0 and topic.partitions[0].leader_id in (2, 3)


def test_replicas_join_and_leave_the_isr_by_requests(world):
    world.create_topic(2, "t", [[2, 3]])
    world.kill(3)
    world.until(lambda: world.controller.image.topics["t"].partitions[0].isr == (2,))
    world.until_read()
    peer = world.connect(2)
    (row,) = peer.ask(produce("t", {0: batch(b"v")}, acks=-1), 9).responses[0].partition_responses
    assert row.error_code == 0
    world.start(3)
    world.until(lambda: world.controller.image.topics["t"].partitions[0].isr == (2, 3))
    assert world.controller.image.topics["t"].partitions[0].leader == 2


def test_a_follower_that_joins_counts_until_the_metadata_says_so(world):
    """The answer to AlterPartition comes before the leader has read the change."""
    world.create_topic(2, "t", [[2, 3]])
    world.kill(3)
    world.until(lambda: world.controller.image.topics["t"].partitions[0].isr == (2,))
    world.start(3)
    world.until(lambda: world.state(3) == "running")
    world.until_read()
    leader = world.processes[2]
    leader.source.is_stuck = True
    world.until(lambda: world.controller.image.topics["t"].partitions[0].isr == (2, 3))
    world.advance(1.0)
    replica = leader.broker.partitions.get("t", 0).replica
    assert replica.isr == (2,) and set(replica.maximal_isr) == {2, 3}
    leader.source.is_stuck = False
    world.until_read()
    assert replica.isr == (2, 3)


def test_replicas_of_several_directories_are_assigned():
    world = BrokerProcesses(brokers=())
    process = world.start(2, ["/data", "/more"])
    world.until_serving()
    world.until_read()
    world.create_topic(2, "t", [[2], [2]])
    ids = set(process.directories.ids())
    states = world.controller.image.topics["t"].partitions
    world.until(lambda: {each for state in states for each in state.directories} == ids)
    world.close()


def test_a_request_without_a_controller_times_out(world, monkeypatch):
    monkeypatch.setattr(controller_channel, "FORWARD_SECONDS", 2.0)
    source = world.processes[2].source
    source.move(None)
    outcomes = []
    link = ControllerLink(world.processes[2].runtime, source, "test", 1000, PLAIN_TEXT)
    request = messages.UnregisterBrokerRequest(broker_id=9)
    link.send(request, outcomes.append, 2.0)
    world.advance(1.9)
    assert outcomes == []
    world.advance(0.5)
    assert outcomes == [TIMED_OUT]
    link.close()
    link.send(request, outcomes.append)
    world.advance(0.1)
    assert outcomes == [TIMED_OUT] * 2


def test_what_the_controller_does_not_answer_is_said_at_once(world, monkeypatch):
    """And not looked for in vain until the time is over: the node is the same, however often it is asked."""
    known = Greeting.version
    lacking = {"Envelope", "UnregisterBroker"}
    monkeypatch.setattr(
        Greeting, "version", lambda self, row: None if row.name in lacking else known(self, row)
    )  # fmt: skip
    outcomes = []
    link = ControllerLink(world.processes[2].runtime, world.processes[2].source, "test", 1000, PLAIN_TEXT)
    link.send(messages.UnregisterBrokerRequest(broker_id=9), outcomes.append)
    world.advance(1.0)
    (failure,) = outcomes
    assert failure.is_final and failure.reason.startswith("controller:9093 answers UnregisterBroker in the versions")
    link.close()
    topic = messages.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    before = world.clock.now()
    (row,) = world.connect(2).ask(messages.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7).topics
    assert row.error_code == errors.UNKNOWN_SERVER_ERROR and world.clock.now() - before < 1.0


def test_so_many_requests_wait_for_a_controller(world, monkeypatch):
    monkeypatch.setattr(controller_channel, "MAX_WAITING", 3)
    source = world.processes[2].source
    source.move(None)
    outcomes = []
    link = ControllerLink(world.processes[2].runtime, source, "test", 1000, PLAIN_TEXT)
    for _ in range(4):
        link.send(messages.UnregisterBrokerRequest(broker_id=9), outcomes.append)
    world.advance(0.1)
    assert outcomes == [TIMED_OUT]
    source.move(ActiveController(1, 2, CONTROLLER, 9093))
    world.advance(1.0)
    assert [each.error_code for each in outcomes[1:]] == [errors.BROKER_ID_NOT_REGISTERED] * 3
    link.close()


def test_a_client_whose_request_found_no_controller_is_told(world):
    world.processes[2].source.move(None)
    peer = world.connect(2)
    peer.send(messages.UnregisterBrokerRequest(broker_id=9), 0)
    world.advance(61.0)
    peer.take_what_came()
    assert [each.error_code for each in peer.answers] == [errors.REQUEST_TIMED_OUT]


def test_a_version_that_the_controller_does_not_know_ends_the_connection(world, monkeypatch):
    from pykafkad.handlers import envelope

    monkeypatch.setattr(envelope, "FORWARDABLE", frozenset())
    peer = world.connect(2)
    answer = peer.ask(messages.UnregisterBrokerRequest(broker_id=9), 0)
    assert answer.error_code == errors.UNKNOWN_SERVER_ERROR, "INVALID_REQUEST on the envelope is no client's"
    monkeypatch.undo()
    real = envelope.table.by_key
    newer = real(64)._replace(min_version=1, max_version=1)
    monkeypatch.setattr(envelope.table, "by_key", lambda key, release=None: newer if key == 64 else real(key))
    other = world.connect(2)
    other.send(messages.UnregisterBrokerRequest(broker_id=9), 0)
    world.until(lambda: other.closed)
    assert other.closed == "the controller does not know this version"


def test_versions_of_forwarded_apis_are_those_that_the_controller_has_too(world, monkeypatch):
    """A client that learns of a newer one would be cut off for it, again and again. Other APIs are the broker's own."""

    def told():
        answer = world.connect(2).ask(messages.ApiVersionsRequest(), 0)
        return {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}

    reassign, unregister, fetch = 45, 64, 1
    before = told()
    channel = world.processes[2].controller
    ranges = dict(channel.api_ranges)
    ranges |= {reassign: (0, 0), fetch: (4, 5)}
    del ranges[unregister]
    monkeypatch.setattr(type(channel), "api_ranges", ranges)
    after = told()
    assert (before[reassign], after[reassign]) == ((0, 1), (0, 0))
    assert unregister in before and unregister not in after
    assert after[fetch] == before[fetch]
    monkeypatch.setattr(type(channel), "api_ranges", None)
    assert told() == before, "nobody knows yet"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (messages.SaslHandshakeResponse(error_code=errors.NOT_CONTROLLER), True),
        (messages.CreateTopicsResponse(), False),
        (
            messages.DeleteAclsResponse(
                filter_results=[messages.DeleteAclsResponse.DeleteAclsFilterResult(error_code=errors.NOT_CONTROLLER)]
            ),
            True,
        ),
        (messages.ListGroupsResponse.ListedGroup(), False),
    ],
)
def test_answers_with_and_without_rows(answer, expected):
    """What has no row with an error is an answer, whatever else it is: its request must end."""
    assert controller_channel._is_not_controller(answer) is expected
