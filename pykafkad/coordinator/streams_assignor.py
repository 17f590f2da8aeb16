"""The sticky assignor of streams groups (KIP-1071): which member runs which task.

It decides as Kafka's `StickyTaskAssignor` does, task for task. An active task stays with the member that had it, or
goes to one that had a standby copy of its state, as long as no member gets more than its share. The rest goes to the
least loaded processes, and within a process to the least loaded member. Standby tasks follow in the same way; no
process has a task twice. Where Kafka goes through a hash map or a priority queue, that order is computed. The targets
of a large group are computed in steps.
"""

from __future__ import annotations

from pykafkad.coordinator.assignors import table_order, text_order
from pykafkad.coordinator.in_steps import ITEMS_PER_STEP, at_once
from pykafkad.coordinator.streams_member import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    from pykafkad.coordinator.in_steps import Steps

    Task = tuple[str, int]
    """A subtopology id and a partition."""

    class Loaded(Protocol):
        """What stands in a queue: the least loaded comes first."""

        load: float


class Subscriber:
    """A member as the assignor sees it: its process, and its present target."""

    __slots__ = ("process_id", "target")

    def __init__(self, process_id: str, target: Target) -> None:
        self.process_id = process_id
        self.target = target


class Subtopology:
    """A subtopology as the assignor sees it. One with state can have standby tasks."""

    __slots__ = ("is_stateful", "task_count")

    def __init__(self, task_count: int, is_stateful: bool) -> None:
        self.task_count = task_count
        self.is_stateful = is_stateful


def assign(
    members: Mapping[str, Subscriber],
    newest: str | None,
    subtopologies: Mapping[str, Subtopology],
    standby_count: int,
) -> dict[str, Target]:
    """The targets of all members, which are given in the order in which they joined. `newest` is one that joins now.
    The targets are in the order in which Kafka writes them."""
    return at_once(assign_in_steps(members, newest, subtopologies, standby_count))


def assign_in_steps(
    members: Mapping[str, Subscriber],
    newest: str | None,
    subtopologies: Mapping[str, Subtopology],
    standby_count: int,
) -> Steps[dict[str, Target]]:
    """The same in steps. What it is given must not change meanwhile."""
    order = yield from table_order(members, newest)
    work = _Assignment(subtopologies, standby_count, len(order))
    yield
    for member_id in order:
        yield from work.add(member_id, members[member_id])
    yield from work.assign_active()
    if standby_count:
        yield from work.assign_standby()
    return (yield from work.targets())


class _PriorityQueue:
    """Java's `PriorityQueue`. Which of several items with the same load comes first follows from how it moves them."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[Loaded]) -> None:
        self._items: list[Loaded] = []
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Loaded) -> None:
        """Put an item at the end, and move it up past those with a greater load."""
        items = self._items
        at = len(items)
        items.append(item)
        while at and item.load < items[(at - 1) // 2].load:
            items[at] = items[(at - 1) // 2]
            at = (at - 1) // 2
        items[at] = item

    def poll(self) -> Loaded:
        """Take the first item out. The last one takes its place, and moves down past those with a lesser load."""
        items = self._items
        first, item = items[0], items.pop()
        size = len(items)
        if size:
            at = 0
            while at < size // 2:
                child = 2 * at + 1
                if child + 1 < size and items[child].load > items[child + 1].load:
                    child += 1
                if item.load <= items[child].load:
                    break
                items[at] = items[child]
                at = child
            items[at] = item
        return first


class _Member:
    """A member with its new tasks. `load` is their number."""

    __slots__ = ("active", "load", "member_id", "process", "standby")

    def __init__(self, member_id: str, process: _Process) -> None:
        self.member_id = member_id
        self.process = process
        self.active: dict[str, set[int]] = {}
        self.standby: dict[str, set[int]] = {}
        self.load: float = 0


class _Process:
    """A process with its members. `load` is the number of tasks per member."""

    __slots__ = ("_queue", "_task_count", "load", "members", "tasks")

    def __init__(self) -> None:
        self.members: dict[str, _Member] = {}
        self.tasks: set[Task] = set()
        self.load: float = 0
        self._task_count = 0
        self._queue: _PriorityQueue | None = None

    def add(self, member: _Member, task: Task, is_active: bool) -> None:
        """Give the task to a member."""
        self._queue = None
        self._add(member, task, is_active)

    def add_to_least_loaded(self, task: Task, is_active: bool) -> _Member:
        """Give the task to the member with the fewest tasks."""
        if len(self.members) == 1:
            member = next(iter(self.members.values()))
            self._add(member, task, is_active)
            return member
        if self._queue is None:
            self._queue = _PriorityQueue(self.members[each] for each in text_order(self.members))
        least = self._queue.poll()
        assert isinstance(least, _Member)
        self._add(least, task, is_active)
        self._queue.add(least)
        return least

    def _add(self, member: _Member, task: Task, is_active: bool) -> None:
        subtopology_id, partition = task
        self.tasks.add(task)
        (member.active if is_active else member.standby).setdefault(subtopology_id, set()).add(partition)
        member.load += 1
        self._task_count += 1
        self.load = self._task_count / len(self.members)


class _Quota:
    """The most tasks that a member gets as long as others have fewer. It follows what members with their full share
    leave to the others."""

    __slots__ = ("_member_count", "_task_count", "per_member")

    def __init__(self, task_count: int, member_count: int) -> None:
        self._task_count = task_count
        self._member_count = member_count
        self.per_member = self._share()

    def _share(self) -> int:
        return -(-self._task_count // self._member_count) if self._member_count else 0

    def member_has(self, count: float) -> None:
        """A member has as many tasks now."""
        if count == self.per_member:
            self._member_count -= 1
            self._task_count -= int(count)
            self.per_member = self._share()


class _Assignment:
    """One assignment under way. `_previous_active` and `_previous_standby` say which members have a task as their
    present target. `_ranks` has the places of the subtopologies in the order of their ids."""

    __slots__ = (
        "_active_quota",
        "_members",
        "_previous_active",
        "_previous_standby",
        "_processes",
        "_quota",
        "_ranks",
        "_standby_count",
        "_subtopologies",
    )

    def __init__(self, subtopologies: Mapping[str, Subtopology], standby_count: int, member_count: int) -> None:
        self._subtopologies = subtopologies
        self._ranks = {each: rank for rank, each in enumerate(sorted(subtopologies, key=_text_key))}
        self._standby_count = standby_count
        active = sum(each.task_count for each in subtopologies.values())
        stateful = sum(each.task_count for each in subtopologies.values() if each.is_stateful)
        self._active_quota = _Quota(active, member_count)
        self._quota = _Quota(active + stateful * standby_count, member_count)
        self._members: dict[str, _Member] = {}
        self._processes: dict[str, _Process] = {}
        self._previous_active: dict[Task, _Member] = {}
        self._previous_standby: dict[Task, list[_Member]] = {}

    def add(self, member_id: str, subscriber: Subscriber) -> Steps[None]:
        """Add a member. They come in the order of Kafka's hash map of them."""
        process = self._processes.setdefault(subscriber.process_id, _Process())
        member = self._members[member_id] = process.members[member_id] = _Member(member_id, process)
        for count, task in enumerate(_tasks(subscriber.target.active)):
            self._previous_active[task] = member
            if count % ITEMS_PER_STEP == 0:
                yield
        for count, task in enumerate(_tasks(subscriber.target.standby)):
            self._previous_standby.setdefault(task, []).append(member)
            if count % ITEMS_PER_STEP == 0:
                yield

    def targets(self) -> Steps[dict[str, Target]]:
        """The outcome."""
        targets = {}
        for each in self._members.values():
            targets[each.member_id] = Target(
                {subtopology_id: frozenset(partitions) for subtopology_id, partitions in each.active.items()},
                {subtopology_id: frozenset(partitions) for subtopology_id, partitions in each.standby.items()},
            )
            yield
        return targets

    def _queue(self) -> _PriorityQueue:
        """The processes, in the order of Kafka's hash map of them, which it makes for as many as there are members."""
        capacity = 1 << (len(self._members) - 1).bit_length()
        return _PriorityQueue(self._processes[each] for each in text_order(self._processes, capacity))

    def assign_active(self) -> Steps[None]:
        """Assign every active task."""
        left: list[Task] = []
        for count, task in enumerate((yield from self._by_partition(self._subtopologies))):
            if not self._keep(task, self._previous_active.get(task)):
                left.append(task)
            if count % ITEMS_PER_STEP == 0:
                yield
        by_rank: list[list[Task]] = [[] for _ in self._ranks]
        for count, task in enumerate(left):
            if not self._keep(task, self._with_standby(task)):
                by_rank[self._ranks[task[0]]].append(task)
            if count % ITEMS_PER_STEP == 0:
                yield
        queue = self._queue()
        for tasks in by_rank:
            for count, task in enumerate(tasks):
                process = queue.poll()
                assert isinstance(process, _Process)
                self._active_task_given(process.add_to_least_loaded(task, True))
                queue.add(process)
                if count % ITEMS_PER_STEP == 0:
                    yield

    def _by_partition(self, subtopology_ids: Iterable[str]) -> Steps[list[Task]]:
        """The tasks of subtopologies: the first of each, then the second of each, and so on."""
        ids = sorted(subtopology_ids, key=self._ranks.__getitem__)
        counts = {each: self._subtopologies[each].task_count for each in ids}
        tasks: list[Task] = []
        partition = looked_at = 0
        while ids := [each for each in ids if counts[each] > partition]:
            tasks += [(each, partition) for each in ids]
            partition += 1
            if len(tasks) - looked_at >= ITEMS_PER_STEP:
                looked_at = len(tasks)
                yield
        return tasks

    def _keep(self, task: Task, member: _Member | None) -> bool:
        """Give an active task to a member that knows it, unless the member has its share."""
        if member is None or member.load >= self._active_quota.per_member:
            return False
        member.process.add(member, task, True)
        self._active_task_given(member)
        return True

    def _active_task_given(self, member: _Member) -> None:
        self._active_quota.member_has(member.load)
        self._quota.member_has(member.load)

    def _with_standby(self, task: Task, is_for_standby: bool = False) -> _Member | None:
        """A member with a standby task of before, by the load of its process and its own. For a new standby task the
        process must not have the task; as in Kafka 4.3.1, nobody is found when that of the first such member has it."""
        members = self._previous_standby.get(task)
        if not members:
            return None
        found = members[0]
        if is_for_standby and task in found.process.tasks:
            return None
        for member in members[1:]:
            is_suitable = not is_for_standby or task not in member.process.tasks
            if is_suitable and member.process.load < found.process.load and member.load < found.load:
                found = member
        return found

    def assign_standby(self) -> Steps[None]:
        """Assign the standby tasks, as many of each task as there are other processes."""
        stateful = [each for each, subtopology in self._subtopologies.items() if subtopology.is_stateful]
        by_rank: list[list[tuple[Task, int]]] = [[] for _ in self._ranks]
        for place, task in enumerate(reversed((yield from self._by_partition(stateful)))):
            if count := self._keep_standby(task):
                by_rank[self._ranks[task[0]]].append((task, count))
            if place % ITEMS_PER_STEP == 0:
                yield
        queue = self._queue()
        for left in reversed(by_rank):
            for place, (task, count) in enumerate(left):
                for _ in range(count):
                    if not self._to_least_loaded(queue, task):
                        break
                if place % ITEMS_PER_STEP == 0:
                    yield

    def _keep_standby(self, task: Task) -> int:
        """Give standby tasks to members that know the task. Returns how many are left to give."""
        for given in range(self._standby_count):
            member = self._previous_active.get(task)
            if member is None or task in member.process.tasks or member.load >= self._quota.per_member:
                member = self._with_standby(task, is_for_standby=True)
                if member is None or member.load >= self._quota.per_member:
                    return self._standby_count - given
            member.process.add(member, task, False)
            self._quota.member_has(member.load)
        return 0

    def _to_least_loaded(self, queue: _PriorityQueue, task: Task) -> bool:
        """Give a standby task to the least loaded process that does not have the task. Returns whether there is one."""
        passed: list[_Process] = []
        found = False
        while len(queue) and not found:
            process = queue.poll()
            assert isinstance(process, _Process)
            passed.append(process)
            found = task not in process.tasks
        if found:
            self._quota.member_has(passed[-1].add_to_least_loaded(task, False).load)
        for process in reversed(passed):
            queue.add(process)
        return found


def _tasks(partitions: Mapping[str, Iterable[int]]) -> Iterable[Task]:
    return ((subtopology_id, partition) for subtopology_id, each in partitions.items() for partition in sorted(each))


def _text_key(text: str) -> bytes:
    """Java compares texts by their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
