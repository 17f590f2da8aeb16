"""Timers as data."""

from pykafkad.server.timers import Timers


def test_due_timers_come_out_in_order_of_time():
    timers = Timers()
    timers.set("late", 3.0)
    timers.set("early", 1.0)
    timers.set("middle", 2.0)
    assert timers.next_at() == 1.0
    assert timers.due(2.5) == ["early", "middle"]
    assert timers.due(2.5) == []
    assert timers.next_at() == 3.0


def test_setting_a_key_again_moves_its_timer():
    timers = Timers()
    timers.set("session", 1.0)
    timers.set("session", 5.0)
    assert timers.due(4.0) == []
    assert timers.due(5.0) == ["session"]


def test_a_cancelled_timer_never_fires():
    timers = Timers()
    timers.set("join", 1.0)
    timers.cancel("join")
    timers.cancel("unknown")
    assert timers.due(9.0) == []
    assert timers.next_at() is None


def test_the_heap_stays_proportional_to_living_timers():
    """A heartbeat that moves its timer a hundred thousand times must not fill the memory."""
    timers = Timers()
    for at in range(100_000):
        timers.set("member", float(at))
    assert len(timers) == 1
    assert len(timers._heap) <= 64 + 1
    assert timers.due(1e9) == ["member"]
