"""A TCP proxy between clients and one broker that cuts off single clients, known by their client id.

A client that is cut off keeps its connections. What it sends, what it should be told, or both are held back, until the
cut ends: then everything arrives late, or the connections are reset and it never arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading

REQUESTS, ANSWERS = "requests", "answers"
WAYS = ((REQUESTS,), (ANSWERS,), (REQUESTS, ANSWERS))
CHUNK_BYTES = 65_536
# In front of the client id: size, API key, API version, correlation id, and the client id's length.
HEADER = struct.Struct(">ihhih")


class Connection:
    """One client's connection and the one to the broker that belongs to it."""

    def __init__(self, client: str, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.client, self.near, self.far = client, near, far

    def reset(self) -> None:
        """Close both with an RST, which discards what is under way."""
        for writer in (self.near, self.far):
            peer = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Proxy:
    """Listens on `port` of localhost and connects to `broker`, which advertises that port; it has a thread."""

    def __init__(self, port: int, broker: str) -> None:
        self.address = f"localhost:{port}"
        self._port, self._broker = port, broker.rsplit(":", 1)
        self._connections: set[Connection] = set()
        # Which ways of which clients are held; the tasks wait for the condition that something changed.
        self._held: set[tuple[str, str]] = set()
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Condition()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(30)

    def cut(self, client: str, ways: tuple[str, ...]) -> None:
        """Hold the client's requests, its answers, or both from now on, also on new connections."""
        self._call(self._change(self._held.update, {(client, way) for way in ways}))

    def heal(self, client: str, reset: bool) -> None:
        """Let everything pass again; with `reset` what was held is lost with its connections."""
        self._call(self._heal(client, reset))

    def close(self) -> None:
        """Reset every connection and stop."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _call(self, work) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "localhost", self._port)

    async def _change(self, change, clients: set[tuple[str, str]]) -> None:
        async with self._changed:
            change(clients)
            self._changed.notify_all()

    async def _heal(self, client: str, reset: bool) -> None:
        if reset:
            for connection in [each for each in self._connections if each.client == client]:
                connection.reset()
        await self._change(self._held.difference_update, {(client, way) for way in (REQUESTS, ANSWERS)})

    async def _close(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._connections:
            connection.reset()

    async def _serve(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        """Read who connects, connect to the broker, and forward both ways until one side closes."""
        try:
            header = await reader.readexactly(HEADER.size)
            name = await reader.readexactly(max(HEADER.unpack(header)[-1], 0))
            await self._pass(name.decode(errors="replace"), REQUESTS)
            answers, far = await asyncio.open_connection(*self._broker)
        except (OSError, asyncio.IncompleteReadError):
            near.transport.abort()
            return
        connection = Connection(name.decode(errors="replace"), near, far)
        self._connections.add(connection)
        far.write(header + name)
        ways = [
            asyncio.ensure_future(self._forward(connection, REQUESTS, reader, far)),
            asyncio.ensure_future(self._forward(connection, ANSWERS, answers, near)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            near.close()
            far.close()
            self._connections.discard(connection)

    async def _pass(self, client: str, way: str) -> None:
        """Return when that way of the client is not held."""
        if (client, way) in self._held:
            async with self._changed:
                await self._changed.wait_for(lambda: (client, way) not in self._held)

    async def _forward(
        self, connection: Connection, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                await self._pass(connection.client, way)
                writer.write(chunk)
                await writer.drain()
