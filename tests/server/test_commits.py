"""Commits: what is promised is written, what could not be written is taken back, and everybody who waits is told."""

from struct import Struct
from types import SimpleNamespace

from pykafkad import errors
from pykafkad.server.commits import Commits

ROW = Struct(">hqq")


class Log:
    """A log that counts its writes; `failure` is raised by the next one."""

    is_flush_due = False
    writes_under_way = ()
    replica = SimpleNamespace(commits_alone=True)

    def __init__(self, failure=None, closed=False):
        self.failure, self.closed, self.offline, self.directory, self.written = failure, closed, None, "t-0", 0
        self.end_offset = self.written_end_offset = self.high_watermark = 0

    def append(self, count=1):
        self.end_offset += count

    def write_pending(self):
        assert not self.closed, "a closed log is not written"
        if self.failure:
            raise self.failure
        self.written += 1
        self.written_end_offset = self.end_offset

    def advance_high_watermark(self, offset):
        self.high_watermark = max(self.high_watermark, offset)


class Connection:
    """An outbox."""

    def __init__(self):
        self.outbox = []


class Node:
    """What commits act on, and what they told it."""

    settings = SimpleNamespace(pykafkad_group_commit=False)

    def __init__(self):
        self.failed, self.bugs, self.touched = [], [], []
        self.purgatory = SimpleNamespace(count=1, touch=self.touched.append)
        self.runtime = SimpleNamespace(unexpected=self.bugs.append, trace=None)

    def log_failed(self, log, failure):
        self.failed.append(log)


def finish(*logs):
    """One answer per log on one connection, then the end of the turn: (error codes, logs with news for readers, logs
    told failed)."""
    node = Node()
    commits = Commits(node)
    connection = Connection()
    for log in logs:
        commits.mark(log)
        commits.fast_answers.append((log, connection, len(connection.outbox), 0))
        connection.outbox.append(ROW.pack(0, 7, -1))
    commits.finish()
    commits.finish()
    return [ROW.unpack_from(answer)[0] for answer in connection.outbox], node.touched, node.failed


def test_a_log_is_written_once_however_many_answers_depend_on_it():
    """Ten small batches of one turn are one write."""
    log = Log()
    assert finish(*[log] * 10) == ([0] * 10, [log], [])
    assert log.written == 1


def test_a_failed_write_takes_back_its_answers_and_no_others():
    """Kafka answers KAFKA_STORAGE_ERROR for the partitions of a failed disk; others are acknowledged."""
    good, bad = Log(), Log(errors.StorageFailure("write", "t-1", "no space"))
    codes, written, failed = finish(good, bad, good)
    assert codes == [0, errors.KAFKA_STORAGE_ERROR, 0]
    assert (written, failed) == ([good], [bad])


def test_a_topic_deleted_in_the_turn_of_its_last_produce_acknowledges_nothing():
    """The broker goes on, and the producer is not told that records were kept that went with the topic."""
    good, deleted = Log(), Log(closed=True)
    codes, written, failed = finish(deleted, good)
    assert codes == [errors.KAFKA_STORAGE_ERROR, 0]
    assert (written, failed) == ([good], [])


def test_whoever_waits_is_told_in_the_same_turn_and_in_order():
    log, told = Log(), []
    commits = Commits(Node())
    for offset in (1, 2, 2):
        log.end_offset = offset
        commits.mark(log)
        commits.after(log, offset, lambda failure, offset=offset: told.append((offset, failure)))
    assert told == [] and commits.is_waiting(log)
    commits.finish()
    assert told == [(1, None), (2, None), (2, None)] and log.written == 1
    commits.after(log, 2, lambda failure: told.append("at once"))
    assert told[-1] == "at once" and commits.is_idle


def test_what_is_appended_by_one_who_waited_is_committed_in_the_same_turn():
    log, told = Log(), []
    commits = Commits(Node())

    def again(failure):
        told.append(log.high_watermark)
        if len(told) < 5:
            log.append()
            commits.mark(log)
            commits.after(log, log.end_offset, again)

    log.append()
    commits.mark(log)
    commits.after(log, 1, again)
    commits.finish()
    assert told == [1, 2, 3, 4, 5]


def test_whoever_waits_for_a_write_that_fails_is_told():
    failure = errors.StorageFailure("write", "t-1", "no space")
    good, bad, told = Log(), Log(failure), []
    commits = Commits(Node())
    for log in (bad, good):
        log.append()
        commits.mark(log)
        commits.after(log, 1, told.append)
    commits.finish()
    assert sorted(told, key=str) == [None, failure] and commits.is_idle


def test_each_waiting_callback_is_called_once_when_one_of_them_ends_the_log():
    """The first of three callbacks finds out that nothing more of the log can be committed."""
    log, told = Log(), []
    commits = Commits(Node())
    failure = errors.StorageFailure("sync", "t-1", "no space")

    def first(result):
        told.append(("first", result))
        commits.fail(log, failure)

    log.append()
    commits.mark(log)
    commits.after(log, 1, first)
    for name in ("second", "third"):
        commits.after(log, 1, lambda result, name=name: told.append((name, result)))
    commits.finish()
    assert told == [("first", None), ("second", failure), ("third", failure)]
    assert commits.is_idle


def test_a_bug_of_one_who_waits_is_none_of_the_others():
    node, log, told = Node(), Log(), []
    commits = Commits(node)
    log.append()
    commits.mark(log)
    commits.after(log, 1, lambda failure: 1 // 0)
    commits.after(log, 1, told.append)
    commits.finish()
    assert told == [None] and [type(bug) for bug in node.bugs] == [ZeroDivisionError]


def test_everything_that_is_appended_by_now_may_be_nothing():
    log, told = Log(), []
    commits = Commits(Node())
    commits.after_all(log, told.append)
    assert told == [None]
    log.append()
    commits.mark(log)
    commits.after_all(log, told.append)
    assert told == [None]
    commits.finish()
    assert told == [None, None]
