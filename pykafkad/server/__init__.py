"""The shell: sockets, the loop, dispatch, and the performing of effects.

What it knows: how bytes arrive and leave, which API row serves a frame, what is parked and until when, in which order
things become durable and leave. What it must not know: what any API means; that is in `handlers/` and the cores below
it.

Start reading at `reactor.py` (one turn of the loop), then `connection.py`, `dispatch.py`, `node.py`.

What is not where one looks for it. Produce answers are encoded when the append is made and sit in the outbox until the
turn's gathered write is done, so that frames that are already read are served within the same turn; if that write
fails, the answers it covered are rewritten before anything is sent (`commits.py`). Delayed operations are retried after
that write, because only written bytes count as committed. The commonest Produce and Fetch requests are served from
their bytes, without a message (`handlers/produce_fast_path.py`, `handlers/fetch_fast_path.py`): that is half the cost
of a small request. Sockets are bound in `binding.py` and belong to the reactor from then on. Which directory holds
which partition is `directories.py`, how one moves to another `moves.py`."""
