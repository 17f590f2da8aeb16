"""Sessions of brokers and what their heartbeats lead to, without a controller."""

from __future__ import annotations

import pytest

from pykafkad.metadata import heartbeats
from pykafkad.metadata.brokers import Broker
from pykafkad.metadata.heartbeats import CONTROLLED_SHUTDOWN, FENCED, SHUTDOWN_NOW, UNFENCED, Heartbeats
from pykafkad.wire import messages


def broker(number, *, epoch=10, fenced=False):
    return Broker(messages.RegisterBrokerRecord(broker_id=number, broker_epoch=epoch, fenced=fenced))


def request(number=1, offset=10, **wishes):
    return messages.BrokerHeartbeatRequest(broker_id=number, broker_epoch=10, current_metadata_offset=offset, **wishes)


def test_a_session_ends_when_its_timeout_is_over():
    sessions = Heartbeats(9.0)
    assert sessions.next_deadline() == float("inf")
    sessions.contact(1, 10, 100.0)
    assert not sessions.is_alive(1, 11, 100.0), "another life of the broker"
    assert sessions.is_alive(1, 10, 109.0) and not sessions.is_alive(1, 10, 109.001)
    assert sessions.take_overdue(109.0) is None
    assert sessions.next_deadline() == 100 + 9 * 1.125
    assert sessions.take_overdue(109.001) == (1, 10)
    assert sessions.take_overdue(200.0) is None and sessions.next_deadline() == float("inf")


def test_the_most_silent_broker_is_overdue_first():
    sessions = Heartbeats(9.0)
    for number, at in ((1, 0.0), (2, 1.0), (3, 2.0), (1, 3.0)):
        sessions.contact(number, 10, at)
    assert [sessions.take_overdue(11.5) for _ in range(3)] == [(2, 10), (3, 10), None]
    assert sessions.take_overdue(13.0) == (1, 10)


def test_a_new_active_controller_gives_fresh_sessions_to_unfenced_brokers():
    sessions = Heartbeats(9.0)
    sessions.begin([broker(1), broker(2, fenced=True)], 50.0)
    assert sessions.is_alive(1, 10, 59.0) and not sessions.is_alive(2, 10, 50.0)


@pytest.mark.parametrize(
    ("is_fenced", "wishes", "leads", "state"),
    [
        (True, {"want_fence": True}, False, FENCED),
        (True, {}, False, UNFENCED),
        (True, {"offset": 9}, False, FENCED),
        (True, {"want_shut_down": True}, True, SHUTDOWN_NOW),
        (True, {"want_shut_down": True, "want_fence": True}, True, SHUTDOWN_NOW),
        (False, {}, False, UNFENCED),
        (False, {"offset": 0}, False, UNFENCED),
        (False, {"want_fence": True}, True, FENCED),
        (False, {"want_fence": True, "want_shut_down": True}, True, SHUTDOWN_NOW),
        (False, {"want_shut_down": True}, True, CONTROLLED_SHUTDOWN),
        (False, {"want_shut_down": True}, False, SHUTDOWN_NOW),
    ],
)
def test_what_a_heartbeat_leads_to(is_fenced, wishes, leads, state):
    """The table of Kafka's `BrokerHeartbeatManager.calculateNextBrokerState`."""
    sessions, one = Heartbeats(9.0), broker(1, fenced=is_fenced)
    sessions.begin([one], 0.0)
    assert sessions.next_state(one, request(**wishes), lambda: leads, {1: one}) == state


def test_a_broker_may_shut_down_when_all_others_have_read_of_it():
    one, two = broker(1), broker(2)
    brokers, sessions = {1: one, 2: two}, Heartbeats(9.0)
    sessions.begin(brokers.values(), 0.0)
    wish = request(offset=12, want_shut_down=True)
    assert sessions.next_state(one, wish, lambda: True, brokers) == CONTROLLED_SHUTDOWN
    sessions.take(one, wish, CONTROLLED_SHUTDOWN, 20)
    assert sessions.is_shutting_down(one)
    assert sessions.next_state(one, wish, lambda: False, brokers) == CONTROLLED_SHUTDOWN, "2 has read nothing yet"
    # A later heartbeat of it does not move the offset that the others have to reach.
    sessions.take(one, wish, CONTROLLED_SHUTDOWN, 30)
    sessions.take(two, request(2, 20), UNFENCED, 30)
    assert sessions.next_state(one, wish, lambda: True, brokers) == CONTROLLED_SHUTDOWN, "it leads something again"
    assert sessions.next_state(one, wish, lambda: False, brokers) == SHUTDOWN_NOW
    sessions.contact(1, 10, 1.0)
    sessions.take(one, wish, SHUTDOWN_NOW, 30)
    assert not sessions.is_alive(1, 10, 1.0), "its next life need not wait"
    assert not sessions.is_shutting_down(one)


def test_who_is_fenced_or_gone_holds_up_no_shutdown():
    one, two, three = broker(1), broker(2), broker(3, fenced=True)
    sessions = Heartbeats(9.0)
    sessions.begin([one, two, three], 0.0)
    wish = request(want_shut_down=True)
    sessions.take(one, wish, CONTROLLED_SHUTDOWN, 20)
    assert sessions.next_state(one, wish, lambda: False, {1: one, 3: three}) == SHUTDOWN_NOW
    assert sessions.next_state(one, wish, lambda: False, {1: one, 2: two, 3: three}) == CONTROLLED_SHUTDOWN
    sessions.forget(2)
    assert sessions.next_state(one, wish, lambda: False, {1: one, 2: two, 3: three}) == SHUTDOWN_NOW


def test_a_registration_anew_is_to_be_read_again():
    """By the same life of the broker: the rest of what is known stays."""
    sessions, one = Heartbeats(9.0), broker(1, fenced=True)
    sessions.begin([one], 0.0)
    assert sessions.is_caught_up(one, request(offset=10)) and not sessions.is_caught_up(one, request(offset=9))
    sessions.register(1, 40, is_new=False)
    assert not sessions.is_caught_up(one, request(offset=39)) and sessions.is_caught_up(one, request(offset=40))
    one.fenced = False
    sessions.take(one, request(), CONTROLLED_SHUTDOWN, 50)
    sessions.register(1, 60, is_new=False)
    assert sessions.is_shutting_down(one)
    sessions.register(1, 70, is_new=True)
    assert not sessions.is_shutting_down(one)


def test_the_states_have_words():
    assert len({heartbeats.FENCED, UNFENCED, CONTROLLED_SHUTDOWN, SHUTDOWN_NOW}) == 4
