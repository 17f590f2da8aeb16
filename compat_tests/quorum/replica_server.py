"""One `RaftReplica` behind real connections: it serves and sends requests, and keeps its log in memory."""

from __future__ import annotations

import asyncio
import os
import random
import struct
import time
from bisect import bisect_right
from typing import Any

from pykafkad.effects import StoredRecord
from pykafkad.metadata import record_codec
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter
from pykafkad.raft import events
from pykafkad.raft.replica import RaftReplica, Timeouts
from pykafkad.uuids import ZERO
from pykafkad.wire import frames, messages
from pykafkad.wire.batch import build_batch, parse_header

# Each request's key and the version that is spoken.
VERSIONS = {
    "Fetch": (1, 18),
    "Vote": (52, 2),
    "BeginQuorumEpoch": (53, 1),
    "EndQuorumEpoch": (54, 1),
    "FetchSnapshot": (59, 1),
    "ApiVersions": (18, 4),
    "AddRaftVoter": (80, 1),
    "RemoveRaftVoter": (81, 0),
    "UpdateRaftVoter": (82, 0),
}
NAMES = {key: name for name, (key, _) in VERSIONS.items()}
API_VERSIONS = 18
FLEXIBLE = frames.flexible_versions()
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def request_type(name: str) -> Any:
    return getattr(messages, f"{name}Request")


def response_type(name: str) -> Any:
    return getattr(messages, f"{name}Response")


async def read_frame(reader: asyncio.StreamReader) -> memoryview:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return memoryview(await reader.readexactly(size))


class ReplicaServer:
    """A replica of the metadata log. `high_watermark` is as far as it may apply; `snapshot` what it has fetched."""

    def __init__(
        self, node_id: int, voter_ids: list[int], ports: dict[int, int], cluster_id: str, *, joins: bool = False
    ) -> None:
        """Without `voter_ids` the voters are those of the log. With `joins` it becomes one of them."""
        self.node_id = node_id
        self.ports = ports
        self.machine = RaftReplica(
            node_id,
            os.urandom(16),
            [Voter(each, ZERO, []) for each in voter_ids],
            random.Random(node_id),
            cluster_id=cluster_id,
            bootstrap=[] if voter_ids else list(ports),
            endpoints=[Endpoint("CONTROLLER", "localhost", ports[node_id])] if node_id in ports else [],
            joins=joins,
        )
        self.start_offset = 0
        self.bases: list[int] = []
        self.batches: list[bytes] = []
        self.high_watermark = -1
        self.snapshot = b""
        self.failures: list[BaseException] = []
        self._timer: asyncio.TimerHandle | None = None
        self._connections: dict[int, Connection] = {}
        self._locks: dict[int, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._correlation_id = 0
        self._server: asyncio.Server | None = None

    def set_timeouts(self, *, election: float, fetch: float) -> None:
        """For the next timers: how eager this replica is to lead."""
        self.machine.timeouts = Timeouts(election=election, fetch=fetch, retry_backoff=0.1)

    async def start(self) -> None:
        if self.node_id in self.ports:
            self._server = await asyncio.start_server(self._accepted, "localhost", self.ports[self.node_id])
        self.step(events.Start(0, 0, []))

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def is_leader(self) -> bool:
        """Whether it leads, and has shown that by a commit."""
        return self.machine.state == "leader" and self.machine.role.has_committed

    def step(self, event: object) -> None:
        """Hand an event to the machine and do what it asks for."""
        for effect in self.machine.step(event, time.monotonic()):
            PERFORM[type(effect).__name__](self, effect)
        if self._timer is not None:
            self._timer.cancel()
        deadline = self.machine.next_deadline()
        if deadline is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, deadline - time.monotonic()), self.step, events.Tick())

    def fetched_by(self, node_id: int) -> int:
        """The offset that a voter has fetched up to, while this replica leads."""
        return self.machine.role.progress[node_id].end_offset  # type: ignore[no-any-return]

    def resign(self) -> None:
        """Stop leading."""
        if self.machine.state == "leader":
            self.step(events.Resign())

    def propose(self) -> None:
        """Append a record that changes nothing."""
        self._append([record_codec.encode(StoredRecord(None, messages.NoOpRecord()))], self.machine.epoch, False)
        self.step(events.Appended(self._end_offset()))

    def ask(self, request: Any) -> asyncio.Future[Any]:
        """A request of an administrator, and what becomes of it."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.step(events.Received(answer, request))
        return answer

    # Effects.

    def _end_offset(self) -> int:
        return parse_header(self.batches[-1]).end_offset if self.batches else self.start_offset

    def _append(self, records: list[Any], epoch: int, is_control: bool) -> None:
        now_ms = int(time.time() * 1000)
        self._store(
            build_batch(
                records,
                base_offset=self._end_offset(),
                leader_epoch=epoch,
                is_control=is_control,
                timestamp_ms=now_ms,
            )
        )

    def _store(self, records: bytes | bytearray) -> None:
        position = 0
        while position < len(records):
            header = parse_header(records, position)
            assert header.base_offset == self._end_offset()
            self.bases.append(header.base_offset)
            self.batches.append(bytes(records[position : position + header.size_bytes]))
            position += header.size_bytes

    def _truncate(self, effect: events.Truncate) -> None:
        count = bisect_right(self.bases, effect.end_offset - 1)
        del self.bases[count:], self.batches[count:]

    def _committed(self, effect: events.Committed) -> None:
        self.high_watermark = effect.end_offset

    def _store_snapshot(self, effect: events.StoreSnapshot) -> None:
        self.snapshot = self.snapshot[: effect.position] + effect.content
        if effect.is_last:
            self.start_offset = effect.end_offset
            self.bases.clear()
            self.batches.clear()

    def _sync(self, effect: events.Sync) -> None:
        asyncio.get_running_loop().call_soon(self.step, events.Synced(effect.number))

    def _reply_with_records(self, effect: events.ReplyWithRecords) -> None:
        response: Any = effect.message
        records = bytearray()
        for batch in self.batches[bisect_right(self.bases, effect.offset) - 1 :]:
            if records and len(records) + len(batch) > effect.max_bytes:
                break
            records += batch
        response.responses[0].partitions[0].records = bytes(records)
        self._reply(effect)

    def _reply(self, effect: Any) -> None:
        if not effect.token.done():
            effect.token.set_result(effect.message)

    # Connections.

    def _begin(self, effect: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._send(effect))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, effect: Any) -> None:
        name = type(effect.request).__name__.removesuffix("Request")
        try:
            async with self._locks.setdefault(effect.peer, asyncio.Lock()):
                response = await asyncio.wait_for(self._exchange(effect.peer, name, effect.request), ANSWER_SECONDS)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            gone = self._connections.pop(effect.peer, None)
            if gone is not None:
                gone[1].close()
            response = None
        self.step(effect.then(response))

    async def _exchange(self, peer: int, name: str, request: Any) -> Any:
        if peer not in self._connections:
            opening = asyncio.open_connection("localhost", self.ports[peer])
            self._connections[peer] = await asyncio.wait_for(opening, CONNECT_SECONDS)
        reader, writer = self._connections[peer]
        key, version = VERSIONS[name]
        self._correlation_id += 1
        chunks: list[Any] = [frames.start_request(key, version, self._correlation_id, f"raft-{self.node_id}", True)]
        messages.encoder(request_type(name), version)(request, chunks)
        frames.finish_frame(chunks)
        writer.write(b"".join(chunks))
        frame = await read_frame(reader)
        _, position = frames.read_response_header(frame, key != API_VERSIONS)
        response, end = messages.decoder(response_type(name), version)(frame, position)
        assert end == len(frame)
        return response

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                await self._serve(await read_frame(reader), writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        except Exception as failure:
            self.failures.append(failure)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, frame: memoryview, writer: asyncio.StreamWriter) -> None:
        key, version, correlation_id, _, position = frames.read_request_header(frame, FLEXIBLE)
        if key == API_VERSIONS:
            name, response = "ApiVersions", self._api_versions()
        else:
            name = NAMES[key]
            request, _ = messages.decoder(request_type(name), version)(frame, position)
            answer = asyncio.get_running_loop().create_future()
            self.step(events.Received(answer, request))
            response = await answer
        is_tagged = key != API_VERSIONS and version >= FLEXIBLE[key]
        chunks: list[Any] = [frames.start_response(correlation_id, is_tagged)]
        messages.encoder(response_type(name), version)(response, chunks)
        frames.finish_frame(chunks)
        writer.write(b"".join(chunks))

    def _api_versions(self) -> messages.ApiVersionsResponse:
        spoken = VERSIONS.values()
        row = messages.ApiVersionsResponse.ApiVersion
        feature = messages.ApiVersionsResponse.SupportedFeatureKey
        return messages.ApiVersionsResponse(
            api_keys=[row(api_key=key, min_version=4 if key == 1 else 0, max_version=last) for key, last in spoken],
            supported_features=[feature(name="kraft.version", min_version=0, max_version=1)],
        )


PERFORM: dict[str, Any] = {
    "Persist": lambda server, effect: None,
    "Send": ReplicaServer._begin,
    "Reply": ReplicaServer._reply,
    "ReplyWithRecords": ReplicaServer._reply_with_records,
    "AppendControl": lambda server, effect: server._append(
        [record_codec.encode(each) for each in effect.records], effect.epoch, True
    ),
    "AppendFetched": lambda server, effect: server._store(effect.records),
    "Truncate": ReplicaServer._truncate,
    "Sync": ReplicaServer._sync,
    "Committed": ReplicaServer._committed,
    "StoreSnapshot": ReplicaServer._store_snapshot,
    "Locate": lambda server, effect: None,
}
