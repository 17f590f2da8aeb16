"""Consumer groups, committed offsets, transactions and producer ids, as pure state machines.

Knows: the rules of groups (classic protocol and KIP-848) and of offset commits, and the records in which Kafka keeps
both in `__consumer_offsets`. Must not know: sockets, logs, the clock, random numbers (an instance of `random.Random`
comes in by constructor), and of the cluster's metadata more than a view (`group_types.ClusterView`).

Start reading at `shard.py`: there is one `GroupShard` per partition of `__consumer_offsets`. `events.py` lists its
events. `group_types.py` says what a shard knows of a group of any type, and where the rules of each type are.
`classic_group.py` and `member.py` hold the state of a group. `membership.py` (joining, heartbeats, leaving),
`rebalance.py` (the phases of a rebalance) and `assignment.py` (SyncGroup) hold the rules. `offsets.py` holds the
committed offsets. Groups of KIP-848 begin at `consumer_heartbeat.py`; `consumer_group.py`, `consumer_member.py` and
`consumer_records.py` hold their state, `assignors.py` who shall have which partition, `reconciliation.py` how a member
gets there. `record_codec.py` translates records to bytes and back. `loading.py` picks the records of a log that
take effect.

`transaction_shard.py` is the same for transactions: one `TransactionShard` per partition of `__transaction_state`, with
the events of `transaction_events.py`. `transaction.py` holds one transactional id, `transaction_states.py` its states
as tables, `transaction_rules.py` the checks of a producer, `transaction_records.py` the bytes."""
