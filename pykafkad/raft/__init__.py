"""One replica of the metadata log in a quorum of several voters (KRaft: KIP-595, KIP-630, KIP-996).

Knows: epochs, votes, leaders, what a majority of voters has on disk, and the requests between replicas.
Must not know: files, sockets, clocks, what the records of the log say. Imports `wire`, `effects`, `errors`, and of
`metadata` the voters, the table of states, and `quorum-state`.

Start reading at `replica.py`: `RaftReplica.step(event, now)` returns effects, and `next_deadline()` says when a `Tick`
is due. `events.py` has the events and the effects, `roles.py` what a replica remembers in each state, `leader.py` the
leader's part, `polls.py` what a replica does by itself, `requests.py` what it does with requests of others,
`answers.py` with their answers.

What it does: Vote with pre-vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch with divergence and high watermark,
FetchSnapshot, observers, and the leader that resigns without fetches of a majority. The voters are static
(kraft.version 0).

What it does not do yet: voters that are added, removed or updated (kraft.version 1, KIP-853), DescribeQuorum, addresses
of leaders in answers. No broker runs it: a broker is a quorum of one voter through `metadata/quorum.py`. What
runs it is the simulation of `tests/simulation/raft_world.py`, and `compat_tests/test_quorum_with_kafka.py` beside a
real Kafka.

A shell keeps three rules. It performs the effects of all steps in the order in which they were returned; `Persist`,
`Truncate` and the last `StoreSnapshot` are done before the effects after them. `Sync` is answered by `Synced` when what
was written before it is on disk. A leader's shell appends in `RaftReplica.epoch` and says so with `Appended`."""
