"""What is on disk: segments, indexes, producer state, checkpoints, and the rules by which a batch gets there.

Knows record batches (`wire.batch`, `wire.records`), the `Disk` and the numbers of a clock. Must not know sockets,
requests, metadata or groups. Deterministic: the same calls on the same disk give the same files, which are Kafka's own
formats under Kafka's own names, so that a real Kafka can open the directory.

Start with `partition_log.py` (append and read of one partition) and `log_files.py` below it (write, roll, sync). Then
read `segment.py` and `directory.py` (one `log.dirs` entry). `large_writes.py` has the batches that are written beside
the loop. `append_rules.py` says what is refused, `roll_rules.py` when a segment is full, `transactions.py` what belongs
to a transaction, `replica.py` what is committed. `recovery.py` opens a log after a crash. `retention.py` and
`cleaner.py` remove records, `cleaner_runs.py` says how many logs are cleaned at a time. `moves.py` takes a log to
another directory.
"""
