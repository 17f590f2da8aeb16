"""The turn's writes: what is promised is written, and what could not be written is taken back."""

from struct import Struct

from pykafkad import errors
from pykafkad.server.writes import Writes

ROW = Struct(">hqq")


class Log:
    """A log that counts its writes; `failure` is raised by the next one."""

    def __init__(self, failure=None, closed=False):
        self.failure, self.closed, self.offline, self.directory, self.written = failure, closed, None, "t-0", 0

    def write_pending(self):
        assert not self.closed, "a closed log is not written"
        if self.failure:
            raise self.failure
        self.written += 1


class Connection:
    """An outbox."""

    def __init__(self):
        self.outbox = []


def finish(*logs):
    """One answer per log on one connection, then the end of the turn: (error codes, logs told written, logs told
    failed)."""
    written, failed = [], []
    writes = Writes(written.append, lambda log, _: failed.append(log), lambda *_: None, lambda *_: None)
    connection = Connection()
    for log in logs:
        writes.mark(log)
        writes.fast_answers.append((log, connection, len(connection.outbox), 0))
        connection.outbox.append(ROW.pack(0, 7, -1))
    writes.finish()
    writes.finish()
    return [ROW.unpack_from(answer)[0] for answer in connection.outbox], written, failed


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
