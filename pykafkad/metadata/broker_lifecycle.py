"""What the controller decides about brokers that reach it by requests: their registration, their heartbeats, the end of
their sessions. What a broker in the controller's own process needs is in `registrations.py` alone.

A registration is refused where Kafka's controller refuses it, and a `Tell` names what stands in the way, as the answer
has only a code."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.effects import Append, Reply, SetTimer, Tell
from pykafkad.errors import KafkaError
from pykafkad.metadata import features, record_codec, registrations
from pykafkad.metadata.brokers import FENCED, IN_CONTROLLED_SHUTDOWN, UNFENCED
from pykafkad.metadata.heartbeats import CONTROLLED_SHUTDOWN, SHUTDOWN_NOW, UNFENCED as UNFENCED_STATE, Heartbeats
from pykafkad.metadata.partition_changes import broker_changes, broker_changes_in_steps
from pykafkad.metadata.placement import names_directory
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.brokers import Broker
    from pykafkad.metadata.controller import Controller
    from pykafkad.metadata.events import (
        BrokerGone,
        BrokerHeartbeat,
        BrokerRegistration,
        CheckSessions,
        RegisterController,
    )
    from pykafkad.metadata.image import Image

    Effects = list[object]
    Steps = Generator[None, None, Effects]

CHECK_SESSIONS = "check-sessions"
"""The key of the timer after which the controller wants `events.CheckSessions`."""

_DIRECTORIES_SINCE = 17
_CLEAN_SHUTDOWN_SINCE = 3  # The version of BrokerRegistration with the previous broker epoch (KIP-966).


def heartbeats(controller: Controller, now: float) -> Heartbeats:
    """The controller's sessions; the brokers that are registered at the first use get fresh ones."""
    if controller.heartbeats is None:
        controller.heartbeats = Heartbeats(controller.settings.broker_session_timeout_ms / 1000)
        brokers = controller.image.brokers.values()
        controller.heartbeats.begin((each for each in brokers if each.id not in controller.local_brokers), now)
    return controller.heartbeats


def begin_sessions(controller: Controller, now: float) -> Effects:
    """This controller has become active: every registered broker has a fresh session."""
    controller.heartbeats = None
    return _check_again(heartbeats(controller, now))


def check_epoch(image: Image, broker_id: int, broker_epoch: int) -> Broker:
    """The registered broker. Raises `KafkaError` unless this is its present life."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(errors.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if broker.epoch != broker_epoch:
        text = f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        raise KafkaError(errors.STALE_BROKER_EPOCH, text)
    return broker


# ---- registration


def register(controller: Controller, event: BrokerRegistration) -> Effects:
    """A broker asks for its registration. The same incarnation keeps its epoch and its state."""
    request = event.request
    sessions = heartbeats(controller, event.now)
    try:
        _check_registration(controller, event, sessions)
    except KafkaError as error:
        refused: dict[str, object] = {
            "broker": request.broker_id,
            "address": event.address,
            "error": errors.name(error.code),
            "reason": error.text,
        }
        response = messages.BrokerRegistrationResponse(error_code=error.code)
        return [Tell("broker-registration-refused", refused), Reply(event.token, response)]
    image = controller.image
    existing = image.brokers.get(request.broker_id)
    records: list[StoredRecord] = []
    is_new = existing is None or existing.incarnation_id != request.incarnation_id
    if existing is not None and is_new:
        is_clean = event.version >= _CLEAN_SHUTDOWN_SINCE and request.previous_broker_epoch == existing.epoch
        side = {"removed" if is_clean else "lost": request.broker_id}
        records = broker_changes(image, controller.settings, **side)
    offset = image.offset + 1 + len(records)
    record = _registration_record(request, offset if is_new or existing is None else existing.epoch)
    if existing is not None and not is_new:
        record.fenced, record.in_controlled_shutdown = existing.fenced, existing.in_controlled_shutdown
    elif existing is not None:
        sessions.end_session(existing.id, existing.epoch)
    sessions.register(request.broker_id, offset, is_new=is_new)
    response = messages.BrokerRegistrationResponse(broker_epoch=record.broker_epoch)
    told: dict[str, object] = {"broker": request.broker_id, "epoch": record.broker_epoch, "new": is_new}
    appends = registrations.in_batches([*records, record_codec.record(record)])
    return [*appends, Tell("broker-registered", told), Reply(event.token, response)]


def _check_registration(controller: Controller, event: BrokerRegistration, sessions: Heartbeats) -> None:
    """Raises `KafkaError` with what stands in the way, in Kafka's order."""
    image, request = controller.image, event.request
    if request.cluster_id != controller.cluster_id:
        text = f"Expected cluster ID {controller.cluster_id}, but got cluster ID {request.cluster_id}"
        raise KafkaError(errors.INCONSISTENT_CLUSTER_ID, text)
    existing = image.brokers.get(request.broker_id)
    if existing is not None and existing.incarnation_id != request.incarnation_id and not event.is_own:
        if existing.id in controller.local_brokers or sessions.is_alive(existing.id, existing.epoch, event.now):
            raise KafkaError(
                errors.DUPLICATE_BROKER_REGISTRATION,
                "Another broker is registered with that broker id. If the broker was recently restarted this ends with "
                "its old session",
            )
    if request.is_migrating_zk_broker:
        raise KafkaError(errors.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers.")
    if image.features.get(features.METADATA_VERSION, 0) >= _DIRECTORIES_SINCE:
        _check_directories(image, request)
    _check_features(image, request)


def _check_directories(image: Image, request: messages.BrokerRegistrationRequest) -> None:
    if not request.log_dirs:
        raise KafkaError(errors.INVALID_REGISTRATION, "No directories specified in request")
    if not all(map(names_directory, request.log_dirs)):
        raise KafkaError(errors.INVALID_REGISTRATION, "Reserved directory ID in request")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise KafkaError(errors.INVALID_REGISTRATION, "Duplicate directory ID in request")
    for other in image.brokers.values():
        if other.id != request.broker_id and not set(other.log_dirs).isdisjoint(request.log_dirs):
            text = f"Broker {other.id} is already registered with a directory of this broker"
            raise KafkaError(errors.INVALID_REGISTRATION, text)


def _check_features(image: Image, request: messages.BrokerRegistrationRequest) -> None:
    """Every feature of the cluster is one of the broker's, at a level that the broker supports."""
    finalized = {**image.features, features.KRAFT_VERSION: image.kraft_version}
    ranges = {row.name: (row.min_supported_version, row.max_supported_version) for row in request.features}
    if features.METADATA_VERSION not in ranges:
        text = f"Request features do not contain '{features.METADATA_VERSION}'"
        raise KafkaError(errors.INVALID_REGISTRATION, text)
    for name, (low, high) in {**dict.fromkeys(finalized, (0, 0)), **ranges}.items():
        level = finalized.get(name, 0)
        if not low <= level <= high:
            raise KafkaError(
                errors.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} of {name}. The "
                f"broker wants a version between {low} and {high}, inclusive.",
            )


def _registration_record(request: messages.BrokerRegistrationRequest, epoch: int) -> messages.RegisterBrokerRecord:
    record = messages.RegisterBrokerRecord
    return record(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            record.BrokerEndpoint(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in request.listeners
        ],
        features=[
            record.BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
        rack=request.rack,
        fenced=True,
        log_dirs=request.log_dirs,
    )


def register_controller(controller: Controller, event: RegisterController) -> Effects:
    """A controller of the quorum tells its listeners and features."""
    response = messages.ControllerRegistrationResponse
    if controller.image.features.get(features.METADATA_VERSION, 0) < features.CONTROLLERS_SINCE:
        text = "The current MetadataVersion is too old to support controller registrations."
        return [Reply(event.token, response(error_code=errors.UNSUPPORTED_VERSION, error_message=text))]
    request, record = event.request, messages.RegisterControllerRecord
    registration = record(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            record.ControllerEndpoint(
                name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in request.listeners
        ],
        features=[
            record.ControllerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
    )
    return [Append(record_codec.LOG, [record_codec.record(registration)]), Reply(event.token, response())]


# ---- heartbeats


def heartbeat(controller: Controller, event: BrokerHeartbeat) -> Effects | Steps:
    """A broker says that it lives, how far it has read, and what it wants."""
    image, request = controller.image, event.request
    sessions = heartbeats(controller, event.now)
    response = messages.BrokerHeartbeatResponse
    try:
        broker = check_epoch(image, request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return [Reply(event.token, response(error_code=error.code))]
    # The contact counts from the turn in which the request came, however long the events before it took.
    sessions.contact(broker.id, broker.epoch, event.now)

    def has_leaderships() -> bool:
        return any(state.leader == broker.id for topic in image.topics.values() for state in topic.partitions)

    was_shutting_down = sessions.is_shutting_down(broker)
    state = sessions.next_state(broker, request, has_leaderships, image.brokers)
    begins_shutdown = state == CONTROLLED_SHUTDOWN and not was_shutting_down
    if begins_shutdown or (state != CONTROLLED_SHUTDOWN and (state == UNFENCED_STATE) == broker.fenced):
        return _change_state(controller, event, broker, state)
    return _answer_heartbeat(controller, event, broker, state, [], [])


def _change_state(controller: Controller, event: BrokerHeartbeat, broker: Broker, state: str) -> Steps:
    """The broker begins its shutdown, or is fenced or unfenced."""
    image, settings = controller.image, controller.settings
    change = messages.BrokerRegistrationChangeRecord
    records: list[StoredRecord] = []
    told: list[object] = []
    if state == CONTROLLED_SHUTDOWN:
        if not broker.in_controlled_shutdown:
            begun = change(broker_id=broker.id, broker_epoch=broker.epoch)
            begun.in_controlled_shutdown = IN_CONTROLLED_SHUTDOWN
            records.append(record_codec.record(begun))
        records += yield from broker_changes_in_steps(image, settings, removed=broker.id)
        told.append(Tell("broker-shuts-down", {"broker": broker.id}))
    elif state == UNFENCED_STATE:
        unfenced = change(broker_id=broker.id, broker_epoch=broker.epoch, fenced=UNFENCED)
        changes = yield from broker_changes_in_steps(image, settings, added=broker.id)
        records = [record_codec.record(unfenced), *changes]
        told.append(Tell("broker-unfenced", {"broker": broker.id}))
    else:
        records = yield from _fence(controller, broker)
        told.append(Tell("broker-fenced", {"broker": broker.id, "reason": "its own wish"}))
    return _answer_heartbeat(controller, event, broker, state, records, told)


def _answer_heartbeat(
    controller: Controller,
    event: BrokerHeartbeat,
    broker: Broker,
    state: str,
    records: list[StoredRecord],
    told: list[object],
) -> Effects:
    request, sessions = event.request, heartbeats(controller, event.now)
    records += _directory_records(controller, broker, request)
    sessions.take(broker, request, state, controller.image.offset + len(records))
    answer = messages.BrokerHeartbeatResponse(
        is_caught_up=sessions.is_caught_up(broker, request),
        is_fenced=state not in (CONTROLLED_SHUTDOWN, UNFENCED_STATE),
        should_shut_down=state == SHUTDOWN_NOW,
    )
    return [*registrations.in_batches(records), *told, *_check_again(sessions), Reply(event.token, answer)]


def _fence(controller: Controller, broker: Broker) -> Generator[None, None, list[StoredRecord]]:
    fenced = messages.BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=FENCED)
    changes = yield from broker_changes_in_steps(controller.image, controller.settings, removed=broker.id)
    return [*changes, record_codec.record(fenced)]


def _directory_records(
    controller: Controller, broker: Broker, request: messages.BrokerHeartbeatRequest
) -> list[StoredRecord]:
    """The records for directories that have failed or were cordoned since the last heartbeat."""
    level = controller.image.features.get(features.METADATA_VERSION, 0)
    online = cordoned = None
    if level >= _DIRECTORIES_SINCE and not set(request.offline_log_dirs).isdisjoint(broker.log_dirs):
        online = [each for each in broker.log_dirs if each not in request.offline_log_dirs]
    if level >= features.CORDONED_SINCE and request.cordoned_log_dirs is not None:
        cordoned = list(request.cordoned_log_dirs)
    if online is None and (cordoned is None or cordoned == broker.cordoned_log_dirs):
        return []
    from pykafkad.metadata import directories

    return directories.of_heartbeat(controller.image, controller.settings, broker, online, cordoned)


def check_sessions(controller: Controller, event: CheckSessions) -> Effects | Steps:
    """Fence the broker that has been silent for longest, if for too long. The next is looked at after that, so that
    each change of leaders sees the one before."""
    sessions = heartbeats(controller, event.now)
    overdue = sessions.take_overdue(event.now)
    while overdue is not None:
        broker = controller.image.brokers.get(overdue[0])
        if broker is None:
            sessions.forget(overdue[0])
        elif broker.epoch == overdue[1] and not broker.fenced:
            return _fence_and_tell(controller, broker, "its session ended", then=(SetTimer(CHECK_SESSIONS, event.now),))
        overdue = sessions.take_overdue(event.now)
    return _check_again(sessions)


def broker_gone(controller: Controller, event: BrokerGone) -> Effects | Steps:
    """A broker's process has ended: others lead, and its next life need not wait for the end of a session."""
    broker = controller.image.brokers.get(event.broker_id)
    if broker is None or broker.epoch != event.broker_epoch or broker.id in controller.local_brokers:
        return []
    if controller.heartbeats is not None:
        controller.heartbeats.end_session(broker.id, broker.epoch)
    return [] if broker.fenced else _fence_and_tell(controller, broker, "its process has ended")


def _fence_and_tell(controller: Controller, broker: Broker, reason: str, then: tuple[object, ...] = ()) -> Steps:
    told = Tell("broker-fenced", {"broker": broker.id, "epoch": broker.epoch, "reason": reason})
    records = yield from _fence(controller, broker)
    return [*registrations.in_batches(records), told, *then]


def _check_again(sessions: Heartbeats) -> Effects:
    deadline = sessions.next_deadline()
    return [] if deadline == float("inf") else [SetTimer(CHECK_SESSIONS, deadline)]
