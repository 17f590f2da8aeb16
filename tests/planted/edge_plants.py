"""Bugs to plant in `pykafkad/server`: between a socket and the dispatcher, and between tenants."""

from __future__ import annotations

from tests.planted.plant import Plant

CONNECTION = ("tests/server/test_connection.py",)
RECEIVING = ("tests/server/test_receiving.py",)
REACTOR = ("tests/server/test_reactor.py",)
STRANGERS = ("tests/server/test_strangers.py",)

PLANTS = (
    Plant(
        "a frame of any length is read",
        "server/connection.py",
        "if (size < 0 or size > self.max_frame_bytes) and self._refuse(",
        "if size < 0 and self._refuse(",
        CONNECTION,
    ),
    Plant(
        "one connection may serve any number of frames in a turn",
        "server/connection.py",
        "or served == FRAMES_PER_TURN",
        "",
        REACTOR,
    ),
    Plant(
        "a full outbox does not stop the serving",
        "server/connection.py",
        "if self.state or self.outbox_bytes > OUTBOX_LIMIT_BYTES or served == FRAMES_PER_TURN:",
        "if self.state or served == FRAMES_PER_TURN:",
        CONNECTION,
    ),
    Plant(
        "a buffer that somebody still looks at is used again",
        "server/frame_buffers.py",
        "buffer.append(0)",
        "pass",
        CONNECTION,
    ),
    Plant(
        "a whole large frame behind others is waited for",
        "server/connection.py",
        "size + 4 > max(OWN_BUFFER_FROM_BYTES, left)",
        "size + 4 > OWN_BUFFER_FROM_BYTES",
        RECEIVING,
    ),
    Plant(
        "more is read for a connection that has kept a whole scratch",
        "server/receiving.py",
        "if room <= 0:",
        "if False:",
        RECEIVING,
    ),
    Plant(
        "frames of moderate size are read one by one",
        "server/receiving.py",
        "if is_moderate and connection.large is None:",
        "if False:",
        RECEIVING,
    ),
    Plant(
        "parts of large frames are copied",
        "server/receiving.py",
        "if is_moderate and connection.large is None:",
        "if connection.large is None:",
        RECEIVING,
    ),
    Plant(
        "short frames behind others pile up",
        "server/receiving.py",
        "WIDE_SCRATCH_BYTES if is_moderate else SCRATCH_BYTES",
        "WIDE_SCRATCH_BYTES",
        RECEIVING,
    ),
    Plant(
        "a read that filled the buffer forgets what is to leave",
        "server/receiving.py",
        "length in (0, WIDE_SCRATCH_BYTES) and transport.interest == READ",
        "length in (0, WIDE_SCRATCH_BYTES)",
        RECEIVING,
    ),
    Plant(
        "a read that filled the scratch forgets what is to leave",
        "server/reactor.py",
        "length == SCRATCH_BYTES and transport.interest == READ",
        "length == SCRATCH_BYTES",
        RECEIVING,
    ),
    Plant(
        "an answer of a held connection leaves",
        "server/reactor.py",
        "if len(outbox) == 1 and not connection.state and not connection.held:",
        "if len(outbox) == 1 and not connection.state:",
        ("tests/server/test_commit_syncs.py",),
    ),
    Plant(
        "an answer of which a part was taken is sent from its beginning",
        "server/reactor.py",
        "if sent < len(data):\n    outbox[0] = memoryview(data)[sent:]",
        "if sent < len(data):\n    outbox[0] = data",
        REACTOR,
    ),
    Plant(
        "the last requests of a long line wait for another event",
        "server/reactor.py",
        "if self._unserved:\n    self._resumable += self._unserved\n    self._unserved.clear()",
        "",
        REACTOR,
    ),
    Plant(
        "what a peer did not take of several answers is sent twice",
        "server/sending.py",
        "outbox[last - 1] = memoryview(joined)[sent:]",
        "outbox[last - 1] = memoryview(joined)",
        ("tests/server/test_sending.py",),
    ),
    Plant(
        "a request that waits is cut off as idle",
        "server/socket_server.py",
        "if connection.delayed is None and now - connection",
        "if now - connection",
        REACTOR,
    ),
    Plant(
        "a failed login is told only of who waits for its end",
        "server/socket_server.py",
        "if was_closed_here or refusal is not None:",
        "if was_closed_here:",
        STRANGERS,
    ),
    Plant(
        "a start that asks no entry of access control is silent",
        "server/run.py",
        "broker.image.acls and broker.sessions.authorizer is None",
        "False",
        ("tests/cli/test_users.py",),
    ),
    Plant(
        "a user with the name of strangers is one",
        "server/logins.py",
        "return self._login.principal is not None",
        'return self._login.principal not in (None, "User:ANONYMOUS")',
        STRANGERS,
    ),
    Plant(
        "what controls one tenant controls another",
        "cli/serve_tenants.py",
        "_named(name, _add, tenants, name, prepared, controls.get(name))",
        "_named(name, _add, tenants, name, prepared, next(iter(controls.values()), None))",
        ("tests/cli/test_serve_tenants.py",),
    ),
    Plant(
        "each tenant's strangers may hold what all may",
        "server/login_bytes.py",
        "LARGE_TOKENS_BYTES // self.sharers",
        "LARGE_TOKENS_BYTES",
        ("tests/testing/test_tenants.py",),
    ),
    Plant(
        "who leaves takes the share with it",
        "server/tenants.py",
        "del self._served[tenant.poller.fileno()]\n        self._share_out()",
        "del self._served[tenant.poller.fileno()]",
        ("tests/testing/test_tenants.py",),
    ),
    Plant(
        "each tenant may have as many handshakes as all",
        "server/tls_endpoint.py",
        "max(1, HANDSHAKES_MAX // self.sharers)",
        "HANDSHAKES_MAX",
        ("tests/server/test_tls_transport.py",),
    ),
)
