"""UpdateFeatures in the controller: the checks of feature levels, and the records that change them (KIP-584,
KIP-778)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.effects import Append, Reply
from pykafkad.errors import KafkaError
from pykafkad.metadata import record_codec, voters
from pykafkad.metadata.configs import minimum_for_elr
from pykafkad.metadata.features import (
    CONTROLLERS_SINCE,
    ELIGIBLE_LEADER_REPLICAS,
    ELR_SINCE,
    KRAFT_VERSION,
    METADATA_VERSION,
    RECORD_CHANGES,
    SUPPORTED,
    supported,
)
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.events import UpdateFeatures
    from pykafkad.metadata.image import Image
    from pykafkad.metadata.voters import Voter

UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3

_PREFIX = "The update failed for all features since the following feature had an error: "


def update(image: Image, settings: Settings, node_id: int, event: UpdateFeatures) -> list[object]:
    """The effects of the event. When one feature cannot change, none does."""
    records: list[StoredRecord] = []
    try:
        for name, (level, upgrade_type) in event.updates.items():
            proposed = {each: asked for each, (asked, _) in event.updates.items()}
            unsupported = _unsupported(image, supported(settings), node_id, name, level, event.voters)
            _check(image, unsupported, name, level, upgrade_type, proposed)
            if name == KRAFT_VERSION and level > image.kraft_version and event.refusal is not None:
                raise KafkaError(errors.INVALID_UPDATE_VERSION, event.refusal)
            if name == KRAFT_VERSION:
                # The level itself is in control records. This record gives the request an offset to wait for.
                records.append(record_codec.record(messages.NoOpRecord()))
            else:
                records.append(record_codec.record(messages.FeatureLevelRecord(name=name, feature_level=level)))
    except KafkaError as error:
        text = _PREFIX + (error.text or errors.message(error.code))
        return [Reply(event.token, messages.UpdateFeaturesResponse(error_code=error.code, error_message=text))]
    effects: list[object] = []
    if not event.validate_only:
        if event.updates.get(ELIGIBLE_LEADER_REPLICAS, (0,))[0] > 0:
            records = [*minimum_for_elr(image, settings), *records]
        if event.updates.get(KRAFT_VERSION, (0,))[0] > image.kraft_version:
            effects.append(Append(record_codec.LOG, _quorum_with_voters(event)))
        if records:
            effects.append(Append(record_codec.LOG, records))
    return [*effects, Reply(event.token, _success(event))]


def _success(event: UpdateFeatures) -> messages.UpdateFeaturesResponse:
    """The response when all features have changed."""
    response = messages.UpdateFeaturesResponse
    # "NONE" is Kafka's error message for success.
    rows = [response.UpdatableFeatureResult(feature=name, error_message="NONE") for name in event.names]
    return response(error_message=None, results=rows)


def _quorum_with_voters(event: UpdateFeatures) -> list[StoredRecord]:
    """The control records of kraft.version 1, with which the voters are in the log (KIP-853)."""
    level = event.updates[KRAFT_VERSION][0]
    version = messages.KRaftVersionRecord(version=0, k_raft_version=level)
    return [record_codec.control_record(version), record_codec.control_record(voters.to_record(event.voters))]


def _unsupported(
    image: Image,
    ranges: dict[str, tuple[int, int]],
    node_id: int,
    name: str,
    level: int,
    voters: Iterable[Voter],
) -> str | None:
    """Which node does not support a level: this one, which supports `ranges`, a broker, or another controller."""
    nodes = [(f"Local controller {node_id}", ranges)]
    nodes += [(f"Broker {each.id}", each.features) for each in image.brokers.values()]
    knows_controllers = image.features.get(METADATA_VERSION, 0) >= CONTROLLERS_SINCE
    if knows_controllers:
        others = (each for each in image.controllers.values() if each.id != node_id)
        nodes += [(f"Controller {each.id}", each.features) for each in others]
    for node, features in nodes:
        low, high = features.get(name, (0, 0))
        if not low <= level <= high:
            return f"{node} " + (f"only supports versions {low}-{high}" if high else "does not support this feature.")
    for voter in voters if knows_controllers else ():
        if voter.id != node_id and voter.id not in image.controllers:
            return f"controller {voter.id} has not registered, and may not support this feature"
    return None


def _check(
    image: Image, unsupported: str | None, name: str, level: int, upgrade_type: int, proposed: dict[str, int]
) -> None:
    """Raises `KafkaError` when a feature cannot change to a level. `unsupported` says which node has it not, `proposed`
    are all new levels of the request."""
    current = image.features.get(name, 0)
    problem = None
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        problem = "The controller does not support the given upgrade type."
    elif level < 0:
        problem = "A feature version cannot be less than 0."
    elif unsupported is not None:
        problem = unsupported
    elif level < current and upgrade_type == UPGRADE:
        problem = (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    elif level > current and upgrade_type != UPGRADE:
        problem = "Can't downgrade to a newer version."
    elif name == KRAFT_VERSION and level < current:
        problem = "Can't downgrade the version of this feature."
    elif name not in SUPPORTED:
        problem = f"Feature {name} not found."
    elif name == METADATA_VERSION and any(level < each <= current for each in RECORD_CHANGES):
        why = "Refusing to perform the requested downgrade because it might delete metadata information."
        if upgrade_type == UNSAFE_DOWNGRADE:
            why = "Unsafe metadata downgrade is not supported in this version."
        raise KafkaError(
            errors.INVALID_UPDATE_VERSION, f"Unsupported metadata.version downgrade from {current} to {level}. {why}"
        )
    elif (
        name == ELIGIBLE_LEADER_REPLICAS
        and level > 0
        and proposed.get(METADATA_VERSION, image.features[METADATA_VERSION]) < ELR_SINCE
    ):
        problem = f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level {ELR_SINCE}"
    if problem is not None:
        raise KafkaError(errors.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}. {problem}")
