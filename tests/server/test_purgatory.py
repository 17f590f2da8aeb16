"""PurgatoryEntry operations as values."""

from pykafkad.server.purgatory import Purgatory


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
    return Purgatory(
        lambda token, message: answers.append((token, message)), lambda token, error: answers.append((token, error))
    ), answers


def test_touching_marks_and_retry_answers():
    purgatory, answers = make()
    wait = Wait(["log"], 10.0)
    purgatory.park("token", wait)
    purgatory.touch("log")
    assert wait.attempts == 0, "nothing happens inside the call stack of what touched"
    purgatory.retry(1.0, 100)
    assert answers == []
    wait.box = "records"
    purgatory.touch("log")
    purgatory.retry(1.0, 100)
    assert answers == [("token", "records")]
    assert purgatory.count == 0 and purgatory.next_deadline() is None


def test_it_tells_whether_something_is_to_be_retried():
    """What an attempt touches counts, and a key for which nobody waits does not."""
    purgatory, _ = make()
    wait = Wait(["log"], 10.0)
    purgatory.park("token", wait)
    purgatory.touch("other")
    assert not purgatory.is_touched
    purgatory.touch("log")
    assert purgatory.is_touched
    wait.attempt = lambda now: purgatory.touch("log")
    purgatory.retry(1.0, 100)
    assert purgatory.is_touched
    del wait.attempt
    purgatory.retry(1.0, 100)
    assert not purgatory.is_touched


def test_a_wait_on_several_keys_is_tried_once_and_forgotten_everywhere():
    purgatory, answers = make()
    wait = Wait(["a", "b", "c"], 10.0)
    purgatory.park("token", wait)
    wait.box = "answer"
    for key in "abc":
        purgatory.touch(key)
    purgatory.retry(1.0, 100)
    assert answers == [("token", "answer")]
    assert wait.attempts == 1
    assert purgatory._by_key == {}


def test_a_deadline_answers_with_what_there_is():
    purgatory, answers = make()
    purgatory.park("first", Wait(["a"], 2.0))
    purgatory.park("second", Wait(["a"], 1.0))
    purgatory.expire(0.5)
    assert answers == []
    purgatory.expire(1.5)
    assert answers == [("second", "expired")]
    purgatory.expire(2.0)
    assert answers == [("second", "expired"), ("first", "expired")], "at the deadline, not only after it"


def test_a_discarded_wait_is_never_answered():
    purgatory, answers = make()
    delayed = purgatory.park("token", Wait(["a"], 1.0))
    purgatory.discard(delayed)
    purgatory.discard(delayed)
    purgatory.touch("a")
    purgatory.retry(5.0, 100)
    purgatory.expire(5.0)
    assert answers == []
    assert purgatory.count == 0


def test_ten_thousand_waits_that_come_and_go_leave_nothing_behind():
    purgatory, answers = make()
    for number in range(10_000):
        wait = Wait(["log"], 1000.0)
        wait.box = number
        purgatory.park(number, wait)
        purgatory.touch("log")
        purgatory.retry(0.0, 100)
    assert len(answers) == 10_000
    assert len(purgatory._heap) <= 65


def test_a_wait_that_raises_ends_alone():
    purgatory, answers = make()
    broken, healthy = Wait(["log"], 10.0), Wait(["log"], 10.0)
    broken.attempt = lambda now: 1 // 0
    healthy.box = "records"
    purgatory.park("broken", broken)
    purgatory.park("healthy", healthy)
    purgatory.touch("log")
    purgatory.retry(1.0, 100)
    assert [(token, type(answer)) for token, answer in answers] == [("broken", ZeroDivisionError), ("healthy", str)]
    assert purgatory.count == 0


def test_a_turn_tries_so_many_and_the_next_goes_on():
    purgatory, answers = make()
    for number in range(1000):
        wait = Wait(["log"], 1.0)
        wait.box = number
        purgatory.park(number, wait)
    purgatory.touch("log")
    tried = []
    while purgatory.is_behind or not tried:
        tried.append(purgatory.retry(0.0, 300))
        # Whoever touches meanwhile adds nobody twice.
        purgatory.touch("log")
    assert tried == [300, 300, 300, 100] and [token for token, _ in answers] == list(range(1000))


def test_deadlines_are_answered_so_many_at_a_time_too():
    purgatory, answers = make()
    for number in range(25):
        purgatory.park(number, Wait(["log"], 1.0))
    assert [purgatory.expire(2.0, 10) for _ in range(4)] == [10, 10, 5, 0] and len(answers) == 25
