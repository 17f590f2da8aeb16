"""A blocking connection for set-up: create topics, wait until they serve, delete them."""

from __future__ import annotations

import socket
import struct
import time

from . import wire_bytes
from .loadgen import LoadFailed

RETRY_SECONDS = 0.02


class Session:
    """One connection to localhost:`port`; a context manager."""

    def __init__(self, port, timeout=120.0):
        self.socket = socket.create_connection(("localhost", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def call(self, request):
        """Sends a whole request and returns its answer from the correlation id on."""
        self.socket.sendall(request)
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def _receive(self, size):
        data = bytearray()
        while len(data) < size:
            chunk = self.socket.recv(min(size - len(data), 1 << 20))
            if not chunk:
                raise LoadFailed("the broker closed the connection")
            data += chunk
        return bytes(data)

    def create_topics(self, topics, configs=(), seconds=60):
        """Creates `{name: partitions}`; returns `{name: topic_id}` once every partition is served.

        Raises LoadFailed after `seconds`.
        """
        made = self._create(topics, configs, 1)
        for name, partitions in topics.items():
            self._wait_until_served(name, partitions, seconds)
        return made

    def _create(self, topics, configs, replicas):
        request = wire_bytes.create_topics(topics, dict(configs), replicas=replicas)
        rows = wire_bytes.parse_create_topics(self.call(request))
        for name, _, error_code, message in rows:
            if error_code:
                raise LoadFailed(f"topic {name} was not created: error {error_code}, {message}")
        return {name: topic_id for name, topic_id, _, _ in rows}

    def create_replicated(self, topic, partitions, replicas, configs=(), seconds=60):
        """Creates a topic of a cluster; its id and `{partition: leader}` once all replicas are in sync."""
        topic_id = self._create({topic: partitions}, configs, replicas)[topic]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.placement([topic])[1].get(topic, {})
            whole = [not error and leader >= 0 and len(isr) == replicas for error, leader, isr in found.values()]
            if len(whole) == partitions and all(whole):
                return topic_id, {index: leader for index, (_, leader, _) in found.items()}
            time.sleep(RETRY_SECONDS)
        raise LoadFailed(f"topic {topic} is not in sync after {seconds} s: {found}")

    def wait_until_led(self, topic, partitions, led, seconds=60):
        """Waits until this broker knows that it leads the partitions `led` of so many of a topic."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ends = wire_bytes.parse_list_offsets(self.call(wire_bytes.list_offsets(topic, partitions)))
            if not any(ends[each] for each in led):
                return
            time.sleep(RETRY_SECONDS)
        raise LoadFailed(f"partitions {led} of topic {topic} are not led after {seconds} s: {ends}")

    def placement(self, topics=()):
        """`{node_id: port}`, and of topics `{name: {partition: (error_code, leader, isr)}}`."""
        return wire_bytes.parse_placement(self.call(wire_bytes.metadata(list(topics))))

    def _wait_until_served(self, name, partitions, seconds):
        """Returns when the broker leads every partition and answers for each."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            known = wire_bytes.parse_metadata(self.call(wire_bytes.metadata([name])))[name]
            ends = wire_bytes.parse_list_offsets(self.call(wire_bytes.list_offsets(name, partitions)))
            if len(known) == len(ends) == partitions and not any(known.values()) and not any(ends.values()):
                return
            time.sleep(RETRY_SECONDS)
        raise LoadFailed(f"topic {name} is not served after {seconds} s: metadata {known}, offsets {ends}")

    def delete_topics(self, names):
        """Deletes topics; raises LoadFailed when the broker refuses."""
        for name, error_code in wire_bytes.parse_delete_topics(self.call(wire_bytes.delete_topics(names))).items():
            if error_code:
                raise LoadFailed(f"topic {name} was not deleted: error {error_code}")


def first_answer(port, deadline, is_alive=lambda: True):
    """Waits until localhost:`port` answers an ApiVersions request; returns the monotonic time of the answer.

    Raises LoadFailed at the `deadline`, or when `is_alive()` says that nobody will answer any more.
    """
    while time.monotonic() < deadline and is_alive():
        try:
            with Session(port, timeout=5.0) as session:
                session.call(wire_bytes.api_versions().request)
                return time.monotonic()
        except (OSError, LoadFailed):
            time.sleep(0.001)
    raise LoadFailed(f"no answer on port {port}")
