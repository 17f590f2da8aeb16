"""A process that was asked for a snapshot answers after its end, on the connection that it has kept."""

from __future__ import annotations

import io
import socket
import threading
from types import SimpleNamespace

from pykafkad.clock import Clock
from pykafkad.server.asked_snapshots import AskedSnapshots
from pykafkad.server.child_nodes import ChildNode

ANSWER = b"the answer"


def asked(served: socket.socket) -> AskedSnapshots:
    """One whose process has stopped and kept this connection."""
    transport = SimpleNamespace(socket=served, flush=lambda outbox: served.sendall(outbox.pop()), close=served.close)
    connection = SimpleNamespace(transport=transport, outbox=[], peer="peer")
    broker = SimpleNamespace(
        node_id=1,
        runtime=SimpleNamespace(clock=Clock()),
        dispatcher=SimpleNamespace(encode=lambda context, answer: [ANSWER]),
    )
    found = AskedSnapshots(broker, ["data"], lambda line: None)  # type: ignore[arg-type]
    found._left = connection, None  # type: ignore[assignment]
    return found


def test_a_client_that_has_asked_for_more_hears_the_answer() -> None:
    """kafka-python asks for the metadata meanwhile. With a byte of that unread, the connection would be reset: the
    client would drop the answer."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        served, _ = server.accept()
        client.sendall(b"another request")
        thread = threading.Thread(target=asked(served).answer, args=(0, None))
        thread.start()
        client.settimeout(30)
        assert client.recv(len(ANSWER), socket.MSG_WAITALL) == ANSWER
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
        thread.join()


def test_a_node_that_has_ended_is_told_nothing() -> None:
    """Whoever asked may be gone before the others have stopped: the parent goes on."""
    node = object.__new__(ChildNode)
    node.process = SimpleNamespace(stdin=io.StringIO())  # type: ignore[assignment]
    assert node.process.stdin is not None
    node.process.stdin.close()
    node.tell(0, None, is_last=True)
