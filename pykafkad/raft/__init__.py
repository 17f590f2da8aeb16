"""One replica of the metadata log in a quorum of several voters (KRaft: KIP-595, KIP-630, KIP-853, KIP-996).

Knows: epochs, votes, leaders, who votes, what a majority of voters has on disk, and the requests between replicas.
Must not know: files, sockets, clocks, what the records of the log say but for its control records. Imports `wire`,
`effects`, `errors`, and of `metadata` the voters, the table of states, and `quorum-state`.

Start reading at `replica.py`: `RaftReplica.step(event, now)` returns effects, and `next_deadline()` says when a `Tick`
is due. `events.py` has the events and the effects, `roles.py` what a replica remembers in each state, `leader.py` the
leader's part, `polls.py` what a replica does by itself, `requests.py` what it does with requests of others,
`answers.py` with their answers. `voter_sets.py` has the voters by the offsets of their records, `voter_changes.py` how
a leader changes them, `membership.py` what a follower does to be one of them, `description.py` DescribeQuorum.

What it does: Vote with pre-vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch with divergence and high watermark,
FetchSnapshot, observers, and the leader that resigns without fetches of a majority. With kraft.version 0 the voters
are those of the settings, with 1 those of the log: by id and directory, with AddRaftVoter, RemoveRaftVoter,
UpdateRaftVoter, replicas that join by themselves, and the upgrade from 0 to 1.

It knows no addresses but those of the voters in its log: its shell tells and learns where a leader is
(`server/raft_addresses.py`). What runs it is `server/raft_member.py`, in a controller or in an observer; the simulation
of `tests/simulation/raft_world.py`; and `compat_tests/test_quorum_with_kafka.py` and
`compat_tests/test_voters_with_kafka.py` beside a real Kafka. A broker whose own controller is the only voter does
without it (`metadata/quorum.py`).

A shell keeps four rules. It performs the effects of all steps in the order in which they were returned; `Persist`,
`Truncate` and the last `StoreSnapshot` are done before the effects after them. `Sync` is answered by `Synced` when what
was written before it is on disk. A leader's shell appends in `RaftReplica.epoch` and says so with `Appended`. The first
batch of a snapshot has the control records of `voter_sets.before` its end. A shell answers ApiVersions by itself."""
