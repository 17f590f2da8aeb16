"""The requests under way to other replicas: one to each at a time, with a timeout and a back-off (Kafka's
RequestManager)."""

from __future__ import annotations


class _Connection:
    """`number` is that of the request under way, 0 for none."""

    __slots__ = ("backs_off_until", "number", "times_out_at")

    def __init__(self) -> None:
        self.number = 0
        self.times_out_at = 0.0
        self.backs_off_until = 0.0


class Connections:
    """The connections to other replicas, by node id."""

    __slots__ = ("_backoff", "_connections", "_last_number", "_request_timeout")

    def __init__(self, request_timeout: float, backoff: float) -> None:
        self._request_timeout = request_timeout
        self._backoff = backoff
        self._connections: dict[int, _Connection] = {}
        self._last_number = 0

    def sent(self, peer: int, now: float) -> int:
        """The number of a request that is sent now."""
        connection = self._connections.setdefault(peer, _Connection())
        self._last_number = connection.number = self._last_number + 1
        connection.times_out_at = now + self._request_timeout
        return connection.number

    def answered(self, peer: int, number: int) -> bool:
        """Whether the request was still under way; now it is not. A late answer counts for nothing."""
        connection = self._connections.get(peer)
        if connection is None or connection.number != number:
            return False
        connection.number = 0
        return True

    def back_off(self, peer: int, now: float) -> None:
        """A request failed: the next one waits."""
        self._connections.setdefault(peer, _Connection()).backs_off_until = now + self._backoff

    def reset(self) -> None:
        """Answers to earlier requests count for nothing, and the next requests do not wait."""
        self._connections.clear()

    def ready_at(self, peer: int, now: float) -> float:
        """When a request can be sent; `now` if at once. A request that timed out is given up."""
        connection = self._connections.get(peer)
        if connection is None:
            return now
        if connection.number and connection.times_out_at > now:
            return connection.times_out_at
        return max(now, connection.backs_off_until)

    def has_failed(self, peer: int, now: float) -> bool:
        """Whether the last request to `peer` failed or timed out just now."""
        connection = self._connections.get(peer)
        return connection is not None and (
            connection.backs_off_until > now or (connection.number > 0 and connection.times_out_at <= now)
        )

    def give_up(self, peer: int, now: float) -> None:
        """A request that timed out is given up, and the next one waits."""
        connection = self._connections[peer]
        if connection.number and connection.times_out_at <= now:
            connection.number = 0
            connection.backs_off_until = now + self._backoff

    def free_at(self, now: float) -> float:
        """When no request is under way; `now` if there is none."""
        return max(
            (each.times_out_at for each in self._connections.values() if each.number and each.times_out_at > now),
            default=now,
        )
