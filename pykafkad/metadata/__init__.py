"""The cluster's metadata: a quorum that keeps a log of Kafka's own records, a controller that writes them, an image
they draw.

Knows: records of `__cluster_metadata-0`, topics, partitions, brokers, dynamic settings, feature levels, voters. Must
not know: files, sockets, clocks, logs of other topics, the coordinators. Imports `wire`, `effects`, `errors`, `config`.

Start reading at `image.py` (what there is), then `controller.py` (how it changes), then `quorum.py` (who may change
it).

How a shell drives it, from start to serving:

1. Load: decode every record of the log (`stored.decode`), `image.apply(record, offset, leader epoch of its batch)`.
2. Make a `Quorum` with `image.voters` (or, for a new log, the voters it begins with), `step(Start(end offset, last
   epoch))`; perform `Persist` and `Append`, sync, `step(Durable(node id, end offset))`.
3. When its state is LEADER: `Controller.step(Activate)`, then `RegisterBroker`, and once everything serves
  `UnfenceBroker`.
4. For every `Append`: append as one batch (a control batch if `stored.is_control`) in leader epoch `quorum.epoch`;
   apply each record below the high watermark to the image; then act on `image.take_delta()`; then let the replies go.
"""
