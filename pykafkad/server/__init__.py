"""The shell: sockets, the loop, dispatch, and whatever performs what the cores decide.

What it knows: how bytes arrive and leave, which row of the API table serves a frame, which requests are delayed and
until when, and in which order records become durable, committed and answered. What it must not know: what an API means
(`handlers/`), or how records, metadata and groups are decided on (`log/`, `metadata/`, `coordinator/`).

Start reading at `wiring.py`, which puts a process together: one `Runtime` (`runtime.py`), a `ControllerNode`
(`controller_node.py`), a `Broker` (`broker.py`), or both. A request goes through `reactor.py` (one turn of the loop),
`connection.py` (bytes to frames) and `dispatch.py` (a frame to a handler, its answer to bytes). `commits.py` says when
an append counts; `metadata_log.py` feeds the controller and applies what is committed; `coordinator_host.py` runs the
groups.

Where the shape differs from the obvious one, and why:

* An answer to Produce is encoded when the append is made, before the turn's write. So frames that are already read are
  served within the same turn. It waits in the outbox; if the write fails, it is rewritten before anything is sent
  (`commits.py`).
* A large batch is written by one of two threads, from the buffer of its frame (`log_writer.py`). What stands behind it
  in the same log waits for it, and everybody else is served.
* Delayed operations are retried after that write (`purgatory.py`), because only written bytes can be committed.
* The commonest Produce and Fetch requests are served from their bytes, without a message (`produce_fast_path.py`,
  `fetch_fast_path.py`), and so are repeated heartbeats of consumer groups (`heartbeat_fast_path.py`). Building messages
  is half of what a small request costs.
* The directories and the housekeeping are nodes of the runtime, beside controller and broker: both use them, and a
  controller alone has them too.
* A broker calls the controller of its process directly (`ControllerNode.submit`), and hears of committed records by a
  subscription (`ControllerNode.on_committed`). Requests to it are values, so that they can travel between processes.
* `housekeeping.py`, `compaction.py` and `moves.py` give time to work that `log/` decides on.

While a broker serves, its loop waits for no sync (`tests/server/test_no_sync_on_the_loop.py`), because one slow device
would hold up every client. The exceptions are the start, the stop, and the way of a whole broker back to a snapshot:
nobody is served then."""
