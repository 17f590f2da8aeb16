"""Log lines about peers, which can cause any number of them.

A host is named with one reason at most once in `NAMED_AGAIN_SECONDS`: a health check that speaks HTTP comes every few
seconds."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.server.logs import Logs

NAMED_AGAIN_SECONDS = 60.0
HOSTS = 1000
REASONS = 20
"""Of how many hosts, and how many reasons of each, it is known that they were named. Those above it are named after
others were forgotten, or only counted."""


class _Host:
    """The reasons that were named of a host since the second `since`, and how many lines it was spared."""

    __slots__ = ("reasons", "since", "spared")

    def __init__(self, since: float, spared: int = 0) -> None:
        self.since = since
        self.reasons: set[str] = set()
        self.spared = spared


class PeerLines:
    """What one node says of its peers."""

    __slots__ = ("_hosts", "_logs")

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._hosts: dict[str, _Host] = {}

    def refused(self, now: float, event: str, peer: str, reason: str | None, **fields: object) -> None:
        """A connection was refused or closed for `reason`, in second `now`. Lines that the host was spared are counted
        in its next one."""
        name = peer.rpartition(":")[0]
        host = self._hosts.get(name)
        if host is None:
            if len(self._hosts) >= HOSTS:
                del self._hosts[next(iter(self._hosts))]
            host = self._hosts[name] = _Host(now)
        elif now - host.since >= NAMED_AGAIN_SECONDS:
            host = self._hosts[name] = _Host(now, host.spared)
        text = f"{event} {reason}"
        if text in host.reasons or len(host.reasons) >= REASONS:
            host.spared += 1
            self._logs.debug("server", event, peer=peer, reason=reason, **fields)
            return
        host.reasons.add(text)
        self._logs.warning("server", event, peer=peer, reason=reason, **fields, more=host.spared or None)
        host.spared = 0
