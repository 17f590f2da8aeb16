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
    """The effects of the event. When one feature cannot change, none does; before Kafka 4.0 the others did."""
    records: list[StoredRecord] = []
    is_each_alone = settings.release is not None and "UpdateFeatures.each_alone" in settings.release.answers
    refused: dict[str, KafkaError] = {}
    for name in event.updates:
        try:
            if not (is_each_alone and _is_as_it_is(image, name, *event.updates[name])):
                records.append(_change(image, settings, node_id, event, name))
        except KafkaError as error:
            if not is_each_alone:
                text = _PREFIX + _words(error)
                return [Reply(event.token, messages.UpdateFeaturesResponse(error_code=error.code, error_message=text))]
            refused[name] = error
    effects: list[object] = []
    if not event.validate_only:
        if ELIGIBLE_LEADER_REPLICAS not in refused and event.updates.get(ELIGIBLE_LEADER_REPLICAS, (0,))[0] > 0:
            records = [*minimum_for_elr(image, settings), *records]
        if KRAFT_VERSION not in refused and event.updates.get(KRAFT_VERSION, (0,))[0] > image.kraft_version:
            effects.append(Append(record_codec.LOG, _quorum_with_voters(event)))
        if records:
            effects.append(Append(record_codec.LOG, records))
    return [*effects, Reply(event.token, _each(event, refused) if is_each_alone else _success(event))]


def _change(image: Image, settings: Settings, node_id: int, event: UpdateFeatures, name: str) -> StoredRecord:
    """The record by which a feature changes. Raises `KafkaError`."""
    level, upgrade_type = event.updates[name]
    proposed = {each: asked for each, (asked, _) in event.updates.items()}
    unsupported = _unsupported(image, supported(settings), node_id, name, level, event.voters)
    _check(image, unsupported, name, level, upgrade_type, proposed)
    if name == KRAFT_VERSION and level > image.kraft_version and event.refusal is not None:
        raise KafkaError(errors.INVALID_UPDATE_VERSION, event.refusal)
    if name == KRAFT_VERSION:
        # The level itself is in control records. This record gives the request an offset to wait for.
        return record_codec.record(messages.NoOpRecord())
    return record_codec.record(messages.FeatureLevelRecord(name=name, feature_level=level))


def _is_as_it_is(image: Image, name: str, level: int, upgrade_type: int) -> bool:
    """Whether a feature has that level, which was no change before Kafka 4.0; none has 0. Raises `KafkaError`."""
    # Those releases did not look at the level of kraft.version, which is not in records of this kind.
    found = 0 if name == KRAFT_VERSION else image.features.get(name, 0)
    if level > found and upgrade_type in (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise KafkaError(errors.INVALID_UPDATE_VERSION, f"A downgrade to the higher level {level} is impossible.")
    return level == found and upgrade_type in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)


def _words(error: KafkaError) -> str:
    return error.text or errors.message(error.code)


def _each(event: UpdateFeatures, refused: dict[str, KafkaError]) -> messages.UpdateFeaturesResponse:
    """The response that tells of each feature by itself."""
    response = messages.UpdateFeaturesResponse
    rows = []
    for name in dict.fromkeys(event.names):
        row = response.UpdatableFeatureResult(feature=name, error_message=None)
        if name in refused:
            row.error_code, row.error_message = refused[name].code, _words(refused[name])
        rows.append(row)
    return response(error_message="", results=rows)


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
