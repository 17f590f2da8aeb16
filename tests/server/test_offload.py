"""Work on another thread, and how its results come back."""

from __future__ import annotations

import threading

import pytest

from pykafkad.server.offload import Offload

SOON_SECONDS = 10


class Loop:
    """What an offload tells the loop."""

    def __init__(self) -> None:
        self.woken = threading.Event()
        self.errors: list[Exception] = []
        self.offload = Offload(self.woken.set, self.errors.append)


@pytest.fixture
def loop() -> Loop:
    return Loop()


def test_a_job_runs_on_another_thread_and_its_result_is_taken_on_the_loop(loop: Loop) -> None:
    results: list[object] = []
    loop.offload.submit(threading.get_ident, lambda result: results.append((result, threading.get_ident())))
    assert loop.woken.wait(SOON_SECONDS)
    assert results == []
    loop.offload.finished()
    ((worked, told),) = results
    assert worked != told == threading.get_ident()
    loop.offload.close()


def test_without_a_thread_a_job_runs_at_once_and_its_result_is_taken_on_the_loop(loop: Loop) -> None:
    results: list[object] = []
    loop.offload.has_thread = False
    loop.offload.submit(threading.get_ident, results.append)
    assert loop.woken.is_set() and results == []
    loop.offload.finished()
    assert results == [threading.get_ident()]


def test_what_another_thread_posts_runs_on_the_loop(loop: Loop) -> None:
    results: list[object] = []
    thread = threading.Thread(target=loop.offload.post, args=(lambda _: results.append(threading.get_ident()),))
    thread.start()
    thread.join()
    assert loop.woken.is_set() and results == []
    loop.offload.finished()
    assert results == [threading.get_ident()]


def test_a_thread_that_nobody_waits_for_ends_with_its_job(loop: Loop) -> None:
    results: list[object] = []
    loop.offload.submit(threading.current_thread, results.append)
    loop.offload.end_alone()
    assert loop.woken.wait(SOON_SECONDS)
    loop.offload.finished()
    (thread,) = results
    assert isinstance(thread, threading.Thread)
    thread.join(SOON_SECONDS)
    assert not thread.is_alive()


def test_an_exception_is_a_result(loop: Loop) -> None:
    results: list[object] = []
    loop.offload.submit(lambda: 1 // 0, results.append)
    loop.offload.close()
    assert [type(result) for result in results] == [ZeroDivisionError] and loop.errors == []


def test_jobs_run_in_order_and_a_stop_finishes_them(loop: Loop) -> None:
    results: list[object] = []
    for number in range(100):
        loop.offload.submit(lambda number=number: number, results.append)
    loop.offload.close()
    assert results == list(range(100))


def test_a_bug_in_what_follows_a_job_is_told_and_the_next_result_taken(loop: Loop) -> None:
    results: list[object] = []
    loop.offload.submit(lambda: 0, lambda result: 1 // result)
    loop.offload.submit(lambda: 2, results.append)
    loop.offload.close()
    assert results == [2] and [type(error) for error in loop.errors] == [ZeroDivisionError]


def test_without_a_thread_the_loop_does_the_job(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody waits for its result."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    results: list[object] = []
    with monkeypatch.context() as lacking:
        lacking.setattr(threading.Thread, "start", refuse)
        loop.offload.submit(threading.get_ident, results.append)
        assert loop.woken.is_set() and results == []
        loop.offload.finished()
        assert results == [threading.get_ident()]
    loop.offload.submit(threading.get_ident, results.append)
    loop.offload.close()
    assert len(results) == 2 and results[1] != results[0], "the next one tries again"
