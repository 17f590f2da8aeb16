"""Parked operations as values."""

from pykafkad.server.waits import Waits


class Wait:
    """Answers when its box holds something."""

    ends_early = False

    def __init__(self, keys, deadline):
        self.keys = keys
        self.deadline = deadline
        self.box = None
        self.attempts = 0

    def attempt(self, now):
        self.attempts += 1
        return self.box

    def expire(self, now):
        return "expired"


def make():
    answers = []
    return Waits(lambda token, message: answers.append((token, message)), lambda token, error: answers.append((token, error))), answers


def test_touching_marks_and_retry_answers():
    waits, answers = make()
    wait = Wait(["log"], 10.0)
    waits.park("token", wait)
    waits.touch("log")
    assert wait.attempts == 0, "nothing happens inside the call stack of what touched"
    waits.retry(1.0, 100)
    assert answers == []
    wait.box = "records"
    waits.touch("log")
    waits.retry(1.0, 100)
    assert answers == [("token", "records")]
    assert waits.count == 0 and waits.next_deadline() is None


def test_a_wait_on_several_keys_is_tried_once_and_forgotten_everywhere():
    waits, answers = make()
    wait = Wait(["a", "b", "c"], 10.0)
    waits.park("token", wait)
    wait.box = "answer"
    for key in "abc":
        waits.touch(key)
    waits.retry(1.0, 100)
    assert answers == [("token", "answer")]
    assert wait.attempts == 1
    assert waits._by_key == {}


def test_a_deadline_answers_with_what_there_is():
    waits, answers = make()
    waits.park("first", Wait(["a"], 2.0))
    waits.park("second", Wait(["a"], 1.0))
    waits.expire(0.5)
    assert answers == []
    waits.expire(1.5)
    assert answers == [("second", "expired")]
    waits.expire(9.0)
    assert answers == [("second", "expired"), ("first", "expired")]


def test_a_discarded_wait_is_never_answered():
    waits, answers = make()
    parked = waits.park("token", Wait(["a"], 1.0))
    waits.discard(parked)
    waits.discard(parked)
    waits.touch("a")
    waits.retry(5.0, 100)
    waits.expire(5.0)
    assert answers == []
    assert waits.count == 0


def test_ten_thousand_waits_that_come_and_go_leave_nothing_behind():
    waits, answers = make()
    for number in range(10_000):
        wait = Wait(["log"], 1000.0)
        wait.box = number
        waits.park(number, wait)
        waits.touch("log")
        waits.retry(0.0, 100)
    assert len(answers) == 10_000
    assert len(waits._heap) <= 65


def test_a_wait_that_raises_ends_alone():
    waits, answers = make()
    broken, healthy = Wait(["log"], 10.0), Wait(["log"], 10.0)
    broken.attempt = lambda now: 1 // 0
    healthy.box = "records"
    waits.park("broken", broken)
    waits.park("healthy", healthy)
    waits.touch("log")
    waits.retry(1.0, 100)
    assert [(token, type(answer)) for token, answer in answers] == [("broken", ZeroDivisionError), ("healthy", str)]
    assert waits.count == 0


def test_a_turn_tries_so_many_and_the_next_goes_on():
    waits, answers = make()
    for number in range(1000):
        wait = Wait(["log"], 1.0)
        wait.box = number
        waits.park(number, wait)
    waits.touch("log")
    tried = []
    while waits.is_behind or not tried:
        tried.append(waits.retry(0.0, 300))
        # Whoever touches meanwhile adds nobody twice.
        waits.touch("log")
    assert tried == [300, 300, 300, 100] and [token for token, _ in answers] == list(range(1000))


def test_deadlines_are_answered_so_many_at_a_time_too():
    waits, answers = make()
    for number in range(25):
        waits.park(number, Wait(["log"], 1.0))
    assert [waits.expire(2.0, 10) for _ in range(4)] == [10, 10, 5, 0] and len(answers) == 25
