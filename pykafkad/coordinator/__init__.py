"""Groups, committed offsets and producer ids: pure state machines.

Knows: the rules of consumer groups (classic protocol) and offset commits, and the form in which Kafka keeps them in
`__consumer_offsets`. Must not know: sockets, logs, topics' metadata, the clock, chance (an instance of `random.Random`
comes in by constructor).

Start reading at `shard.py`: one `GroupShard` per partition of `__consumer_offsets`. `events.py` lists what can happen
to it; `classic_group.py` and `member.py` hold the state; `membership.py` (who belongs to the group), `rebalance.py`
(the phases of a rebalance) and `assignment.py` (who gets what) are the rules; `offsets.py` the committed offsets;
`record_codec.py` the bytes, `loading.py` what of a log counts."""
