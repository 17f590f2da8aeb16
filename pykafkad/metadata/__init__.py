"""The cluster's metadata: the quorum that keeps the metadata log, the controller that writes its records, and the image
that the records describe.

Knows: the records of `__cluster_metadata-0`, topics, partitions, brokers, dynamic settings, feature levels, voters.
Must not know: files, sockets, clocks, logs of other topics, the coordinators. Imports `wire`, `effects`, `errors`,
`config`.

Start reading at `image.py` (the metadata), then `controller.py` (its changes), then `quorum.py` (the leader that may
change it).

A shell drives it in these steps:

1. Load: decode every record of the log (`record_codec.decode`), `image.apply(record, offset, leader epoch of its
   batch)`.
2. Make a `Quorum` with `image.voters` (or, for a new log, its first voters), `step(Start(end offset, last epoch))`;
   perform `Persist` and `Append`, sync, `step(Durable(node id, end offset))`.
3. When its state is LEADER: `Controller.step(Activate)`, then `RegisterBroker`, and once the node is ready to serve
   `UnfenceBroker`.
4. For every `Append`: append as one batch (a control batch if `record_codec.is_control`) in leader epoch
   `quorum.epoch`; apply each record below the high watermark to the image; then act on `image.take_delta()`; then send
   the replies.
"""
