"""What a heartbeat of a streams group's member changes (KIP-1071): the member, the topology, the group's epoch, the
target assignment, and what the member has. The checks are in Kafka's order.

A group that is new lasts only as long as the heartbeat: the topology as it stands against the topics, the request to
shut down and the epoch of the endpoints begin anew with the second one, as in Kafka.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import (
    group_settings,
    metadata_hash,
    streams_assignment,
    streams_endpoints,
    streams_records,
    streams_topics,
    streams_topology,
    target_computation,
)
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.in_steps import at_once
from pykafkad.coordinator.reconciled_group import REVOCATION, SESSION
from pykafkad.coordinator.streams_events import StreamsGroupHeartbeat
from pykafkad.coordinator.streams_group import StreamsGroup
from pykafkad.coordinator.streams_member import UNREVOKED_TASKS, StreamsMember, Target
from pykafkad.coordinator.streams_reconciliation import Reconciliation
from pykafkad.coordinator.streams_request import JOIN_EPOCH, LEAVE_EPOCH, NO_TIMEOUT
from pykafkad.effects import CreateInternalTopics
from pykafkad.errors import KafkaError
from pykafkad.wire import messages

NO_TOPOLOGY_EPOCH = -1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafkad.coordinator.group_types import ClusterView
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step
    from pykafkad.coordinator.streams_topics import ConfiguredTopology
    from pykafkad.coordinator.streams_topology import Topology
    from pykafkad.effects import StoredRecord

    Request = messages.StreamsGroupHeartbeatRequest
    Response = messages.StreamsGroupHeartbeatResponse


def heartbeat(shard: GroupShard, step: Step, event: StreamsGroupHeartbeat) -> None:
    """Serve a heartbeat."""
    request = event.request
    try:
        if request.member_epoch <= LEAVE_EPOCH:
            response = _leave(shard, step, request)
        else:
            response = _Heartbeat(shard, step, event).run()
    except KafkaError as error:
        step.computation = None
        response = messages.StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.text)
    target_computation.reply(shard, step, event, response)


def answer_again(shard: GroupShard, step: Step, event: StreamsGroupHeartbeat, response: Response) -> Response:
    """The answer to a heartbeat that has waited for a new target: its member goes one step further.

    Raises `KafkaError` if the heartbeat is refused now."""
    first = event.request
    request = messages.StreamsGroupHeartbeatRequest(
        group_id=first.group_id,
        member_id=response.member_id,
        member_epoch=response.member_epoch,
        endpoint_information_epoch=first.endpoint_information_epoch,
        active_tasks=first.active_tasks,
        standby_tasks=first.standby_tasks,
        warmup_tasks=first.warmup_tasks,
    )
    again = StreamsGroupHeartbeat(event.token, request, event.client_id, event.client_host)
    better = _Heartbeat(shard, step, again).run()
    if better.active_tasks is None:
        better.active_tasks = response.active_tasks
        better.standby_tasks, better.warmup_tasks = response.standby_tasks, response.warmup_tasks
    return better


def _known_member(group: StreamsGroup, member_id: str) -> StreamsMember:
    member = group.members.get(member_id)
    if member is None:
        text = f"Member {member_id} is not a member of group {group.group_id}."
        raise KafkaError(errors.UNKNOWN_MEMBER_ID, text)
    return member


# Members that leave.


def _leave(shard: GroupShard, step: Step, request: Request) -> Response:
    group = shard.groups.get(request.group_id)
    if not isinstance(group, StreamsGroup):
        why = "not found." if group is None else "is not a streams group."
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {why}")
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = request.member_id
    fence(step, group, _known_member(group, request.member_id))
    return messages.StreamsGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch, status=[]
    )


def fence(step: Step, group: StreamsGroup, member: StreamsMember) -> None:
    """Remove a member. Its tasks are assigned anew with the next heartbeat of another."""
    for kind in (SESSION, REVOCATION):
        group.cancel(kind, member.member_id)
    step.append(
        [
            *streams_records.member_tombstones(group.group_id, member.member_id),
            streams_records.group_epoch(
                group.group_id, group.epoch + 1, group.metadata_hash, group.validated_epoch, group.assignment_configs
            ),
        ]
    )


# Members that join or stay.


class _Heartbeat:
    """One heartbeat under way. `_group` is the group as it is, or a new one."""

    __slots__ = ("_event", "_group", "_has_classic", "_is_new", "_metadata", "_records", "_shard", "_statuses", "_step")

    def __init__(self, shard: GroupShard, step: Step, event: StreamsGroupHeartbeat) -> None:
        self._shard = shard
        self._step = step
        self._event = event
        assert shard.metadata is not None
        self._metadata: ClusterView = shard.metadata
        self._records: list[StoredRecord] = []
        self._statuses: list[streams_topics.Status] = []
        known = shard.groups.get(event.request.group_id)
        self._has_classic = isinstance(known, ClassicGroup)
        self._is_new = not isinstance(known, StreamsGroup)
        self._group = self._found()

    def _found(self) -> StreamsGroup:
        """The group, or a new one for a member that joins. An empty classic group gives way."""
        request = self._event.request
        group = self._shard.groups.get(request.group_id)
        joins = request.member_epoch == JOIN_EPOCH
        if isinstance(group, StreamsGroup):
            limit = self._shard.settings.group_streams_max_size
            if joins and len(group.members) >= limit:
                text = f"The streams group has reached its maximum capacity of {limit} members."
                raise KafkaError(errors.GROUP_MAX_SIZE_REACHED, text)
            return group
        if group is None and not joins:
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Streams group {request.group_id} not found.")
        if group is not None:
            if not joins or not isinstance(group, ClassicGroup) or not group.is_empty:
                text = f"Group {request.group_id} is not a streams group."
                raise KafkaError(errors.GROUP_ID_NOT_FOUND, text)
            self._records += group.tombstones()
        return StreamsGroup(request.group_id)

    def run(self) -> Response:
        """Change the group, and answer."""
        group, step, request = self._group, self._step, self._event.request
        member = self._member()
        updated = self._described(member)
        has_changed = updated is not member
        if has_changed:
            self._records.append(streams_records.member(group.group_id, updated))
        topology = self._topology()
        if group.topology is not None and updated.topology_epoch < group.topology.epoch:
            text = (
                f"The member's topology epoch {updated.topology_epoch} is behind the group's topology epoch "
                f"{group.topology.epoch}."
            )
            self._statuses.append((streams_topics.STALE_TOPOLOGY, text))
        configured, found_hash = self._configured(topology)
        configs = streams_assignment.configs(self._shard, group.group_id)
        epoch = self._epoch(has_changed, configured, found_hash, configs)
        if group.is_empty:
            delay_ms = group_settings.number(self._shard, group.group_id, "streams_initial_rebalance_delay_ms")
            group.delay(step, delay_ms)
        target_epoch, target = self._target(epoch, updated, configured, configs)
        following = self._reconciled(updated, target_epoch, target)
        session_ms = group_settings.number(self._shard, group.group_id, "streams_session_timeout_ms")
        group.expect(step, SESSION, following.member_id, session_ms)
        if request.shutdown_application and group.shutdown_member_id is None:
            group.shutdown_member_id = following.member_id
        response = self._response(member, following, configured)
        self._write()
        if configured.missing:
            topics = [each.creatable() for each in configured.missing]
            step.effects.append(CreateInternalTopics(self._event.token, group.group_id, topics, response))
        return response

    def _write(self) -> None:
        group, step = self._group, self._step
        group.topics_changed = False
        if self._is_new:
            known = self._shard.groups.get(group.group_id)
            if known is not None:
                known.cancel_timers(step)
            group.forget_topics()
            group.endpoint_epoch = 0
            group.shutdown_member_id = None
            self._shard.groups[group.group_id] = group
        if self._records:
            step.append(self._records)

    # The member.

    def _member(self) -> StreamsMember:
        """The member that sends the heartbeat, made if it joins."""
        request = self._event.request
        epoch = request.member_epoch
        if epoch == JOIN_EPOCH:
            return self._group.members.get(request.member_id) or StreamsMember(request.member_id)
        member = _known_member(self._group, request.member_id)
        if epoch > member.epoch or (epoch < member.epoch and not self._has_missed_answer(member)):
            how = "greater" if epoch > member.epoch else "smaller"
            text = (
                f"The streams group member has a {how} member epoch ({epoch}) than the one known by the group "
                f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
            )
            raise KafkaError(errors.FENCED_MEMBER_EPOCH, text)
        return member

    def _has_missed_answer(self, member: StreamsMember) -> bool:
        """Whether the answer with the new epoch may have been lost: the member names its epoch of before, and has no
        task that it should not have."""
        request, assigned = self._event.request, member.assigned
        return request.member_epoch == member.previous_epoch and all(
            owned is not None
            and all(
                row.subtopology_id in present
                and all(partition in present[row.subtopology_id] for partition in row.partitions)
                for row in owned
            )
            for owned, present in (
                (request.active_tasks, assigned.active),
                (request.standby_tasks, assigned.standby),
                (request.warmup_tasks, assigned.warmup),
            )
        )

    def _described(self, member: StreamsMember) -> StreamsMember:
        """The member with what the heartbeat says of it; the same object when that is nothing new."""
        request = self._event.request
        changes: dict[str, object] = {"client_id": self._event.client_id, "client_host": self._event.client_host}
        if request.rack_id is not None:
            changes["rack_id"] = request.rack_id
        if request.rebalance_timeout_ms != NO_TIMEOUT:
            changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        if request.topology is not None:
            changes["topology_epoch"] = request.topology.epoch
        if request.process_id is not None:
            changes["process_id"] = request.process_id
        if request.client_tags is not None:
            tags = {each.key: each.value for each in request.client_tags}
            if len(tags) < len(request.client_tags):
                raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
            changes["client_tags"] = tags
        if request.user_endpoint is not None:
            changes["endpoint"] = (request.user_endpoint.host, request.user_endpoint.port)
        is_known = all(getattr(member, name) == value for name, value in changes.items())
        return member if is_known else member.copy(**changes)

    # The topology.

    def _topology(self) -> Topology:
        """The group's topology, which is the first one that a member brought."""
        group, brought = self._group, self._event.request.topology
        if brought is None:
            if group.topology is None:
                raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
            return group.topology
        topology = streams_topology.of_request(brought)
        if group.topology is None:
            self._records.append(streams_records.topology_record(group.group_id, topology))
            return topology
        if group.topology.epoch <= topology.epoch and group.topology != topology:
            raise KafkaError(errors.INVALID_REQUEST, "Topology updates are not supported yet.")
        return group.topology

    def _configured(self, topology: Topology) -> tuple[ConfiguredTopology, int]:
        """The topology held against the topics, and the hash of the topics."""
        group = self._group
        if group.topology is not None and group.configured is not None and not group.topics_changed:
            return group.configured, group.metadata_hash
        found = metadata_hash.of_topics(self._metadata, topology.required_topics, self._shard.topic_hashes)
        if group.topology is None or found != group.metadata_hash or group.configured is None:
            group.configured = streams_topics.configure(topology, self._metadata)
        return group.configured, found

    def _epoch(
        self,
        has_changed: bool,
        configured: ConfiguredTopology,
        found_hash: int,
        configs: Mapping[str, str],
    ) -> int:
        """The group's epoch, which a change of the member, of the topics or of the settings moves on."""
        group = self._group
        validated = NO_TOPOLOGY_EPOCH
        if configured.is_ready:
            validated = configured.epoch
            request = self._event.request
            for rows in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
                _check_tasks(configured, rows or [])
        if (
            not has_changed
            and found_hash == group.metadata_hash
            and validated == group.validated_epoch
            and configs == group.assignment_configs
        ):
            return group.epoch
        epoch = group.epoch + 1
        self._records.append(streams_records.group_epoch(group.group_id, epoch, found_hash, validated, configs))
        return epoch

    # The target, and the way to it.

    def _target(
        self, epoch: int, updated: StreamsMember, configured: ConfiguredTopology, configs: Mapping[str, str]
    ) -> tuple[int, Target]:
        """The epoch of the target assignment and the member's target, computed anew if the group's epoch has none, it
        does not wait for its first members, and the last target is old enough. That of a large group is computed
        later, in steps."""
        group, step = self._group, self._step
        if group.is_delayed:
            text = "Assignment delayed due to the configured initial rebalance delay."
            self._statuses.append((streams_topics.ASSIGNMENT_DELAYED, text))
            return group.target_epoch, Target()
        if group.target_epoch >= epoch:
            return group.target_epoch, group.targets.get(updated.member_id, Target())
        if not streams_assignment.may_assign(self._shard, step, group):
            text = "Assignment delayed due to the configured assignment interval."
            self._statuses.append((streams_topics.ASSIGNMENT_DELAYED, text))
            return group.target_epoch, group.targets.get(updated.member_id, Target())
        if not target_computation.is_under_way(self._shard, group):
            work = streams_assignment.TargetWork(group, configured, configs, updated)
            if work.size <= target_computation.LARGE_WORK:
                targets, records = at_once(work.steps())
                self._records += records.values()
                self._records.append(streams_records.target_epoch(group.group_id, epoch, step.now_ms))
                return epoch, targets[updated.member_id]
            streams_assignment.request(step, group, epoch, work)
        text = "Assignment delayed because it is being computed."
        self._statuses.append((streams_topics.ASSIGNMENT_DELAYED, text))
        return group.target_epoch, group.targets.get(updated.member_id, Target())

    def _reconciled(self, updated: StreamsMember, target_epoch: int, target: Target) -> StreamsMember:
        """The member one step nearer to its target."""
        if updated.is_reconciled_to(target_epoch):
            return updated
        group, request, process_id = self._group, self._event.request, updated.process_id
        following = Reconciliation(
            updated,
            target_epoch,
            target,
            lambda subtopology_id, wanted: group.free_active(process_id, subtopology_id, wanted),
            lambda subtopology_id, wanted: group.free_copies(process_id, subtopology_id, wanted),
            _owned(request),
        ).next()
        if following != updated:
            self._records.append(streams_records.current(group.group_id, following))
            if following.state == UNREVOKED_TASKS:
                group.expect(self._step, REVOCATION, following.member_id, following.rebalance_timeout_ms)
            else:
                group.cancel(REVOCATION, following.member_id)
        return following

    # The answer.

    def _response(self, member: StreamsMember, following: StreamsMember, configured: ConfiguredTopology) -> Response:
        group, request = self._group, self._event.request
        response = messages.StreamsGroupHeartbeatResponse(
            member_id=following.member_id,
            member_epoch=following.epoch,
            heartbeat_interval_ms=group_settings.number(self._shard, group.group_id, "streams_heartbeat_interval_ms"),
        )
        release = self._shard.settings.release
        if release is not None:
            for name in ("task_offset_interval_ms", "acceptable_recovery_lag_offsets"):
                setattr(response, name, release.answers.get(f"StreamsGroupHeartbeat.{name}", getattr(response, name)))
        if request.member_epoch == JOIN_EPOCH or following.assigned != member.assigned:
            response.active_tasks = _rows(following.assigned.active)
            response.standby_tasks = _rows(following.assigned.standby)
            response.warmup_tasks = _rows(following.assigned.warmup)
            if following.endpoint is not None:
                group.endpoint_epoch += 1
        if group.endpoint_epoch != request.endpoint_information_epoch:
            response.partitions_by_user_endpoint = streams_endpoints.partitions(
                group, following, configured, self._metadata
            )
        if not self._is_new or self._has_classic:
            response.endpoint_information_epoch = group.endpoint_epoch
        if configured.status is not None:
            self._statuses.append(configured.status)
        if group.shutdown_member_id is not None:
            text = (
                f"Streams group member {group.shutdown_member_id} encountered a fatal error and requested a shutdown "
                "for the entire application."
            )
            self._statuses.append((streams_topics.SHUTDOWN_APPLICATION, text))
        response.status = [
            messages.StreamsGroupHeartbeatResponse.Status(status_code=code, status_detail=text)
            for code, text in self._statuses
        ]
        return response


def _check_tasks(configured: ConfiguredTopology, rows: list[messages.StreamsGroupHeartbeatRequest.TaskIds]) -> None:
    """Raises `KafkaError` (INVALID_REQUEST) for a task that the topology does not have."""
    for row in rows:
        subtopology = configured.subtopologies.get(row.subtopology_id)
        if subtopology is None:
            text = f"Subtopology {row.subtopology_id} does not exist in the topology."
            raise KafkaError(errors.INVALID_REQUEST, text)
        for partition in row.partitions:
            if not 0 <= partition < subtopology.task_count:
                text = (
                    f"Task {partition} for subtopology {row.subtopology_id} is invalid. "
                    f"Number of tasks for this subtopology: {subtopology.task_count}"
                )
                raise KafkaError(errors.INVALID_REQUEST, text)


def _owned(request: Request) -> Target | None:
    """The tasks that the member says it has, None when it does not say. Raises `KafkaError` (UNKNOWN_SERVER_ERROR, as
    Kafka answers) for a subtopology that stands twice."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    found = [streams_records.partitions(rows) for rows in (active, standby, warmup)]
    if any(len(each) < len(rows) for each, rows in zip(found, (active, standby, warmup), strict=True)):
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
    return Target(*found)


def _rows(tasks: Mapping[str, Iterable[int]]) -> list[messages.StreamsGroupHeartbeatResponse.TaskIds]:
    row = messages.StreamsGroupHeartbeatResponse.TaskIds
    return [row(subtopology_id=each, partitions=sorted(partitions)) for each, partitions in sorted(tasks.items())]
