"""Topics that are created because somebody asked for them, a few per turn of the loop.

Each takes a directory and two files for every partition, so hundreds at once would keep everybody waiting. Who asked is
told that the topic is not there yet, and asks again."""

from __future__ import annotations

from pykafkad.metadata.events import AutoCreateTopics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.metadata.events import MutationQuota
    from pykafkad.metadata.topic_askers import Asker
    from pykafkad.server.controller_node import ControllerNode

PARTITIONS_PER_TURN = 16
MAX_WAITING = 10_000
"""Names that may wait; what is asked for beyond is forgotten, and asked for again."""

_GO_ON = "create topics"


class AutoCreation:
    """The names that wait. `create(event)` hands an `AutoCreateTopics` to the controller."""

    __slots__ = ("_create", "_node", "_waiting")

    def __init__(self, node: ControllerNode, create: Callable[[AutoCreateTopics], object]) -> None:
        self._node = node
        self._create = create
        self._waiting: dict[str, tuple[MutationQuota | None, Asker | None]] = {}
        """Each with the client that asked for it first: what counts its partitions, and what the log says of it."""

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, event: AutoCreateTopics) -> None:
        """Create its topics: the first of them now, unless others wait."""
        go_on = not self._waiting
        for name in event.names:
            if len(self._waiting) >= MAX_WAITING:
                break
            self._waiting.setdefault(name, (event.mutations, event.askers.get(name)))
        if go_on:
            self.fired(_GO_ON)

    def fired(self, _key: str) -> None:
        """The part of this turn."""
        waiting = self._waiting
        topics = max(1, PARTITIONS_PER_TURN // self._node.settings.num_partitions)
        chosen: list[str] = []
        askers: dict[str, Asker] = {}
        mutations, _ = next(iter(waiting.values()), (None, None))
        for name, (counted_by, asker) in waiting.items():
            # One client's at a time.
            if len(chosen) >= topics or counted_by is not mutations:
                break
            chosen.append(name)
            if asker is not None:
                askers[name] = asker
        for name in chosen:
            del waiting[name]
        if chosen:
            self._create(AutoCreateTopics(chosen, mutations, askers))
        if waiting:
            self._node.runtime.timers.set((self, _GO_ON), self._node.runtime.now)
