"""The levels of metadata.version by their names, and the levels of other features that belong to each (KIP-778,
KIP-1022).

A release is named as Kafka's tools name it: `3.9`, `3.9.1` or `3.9-IV0`. A feature has, in a new cluster, the newest
level whose metadata.version is not above that of the cluster."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.errors import ConfigError
from pykafkad.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS,
    ELR_SINCE,
    GROUP_VERSION,
    KRAFT_VERSION,
    LATEST_LEVEL,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    SUPPORTED,
    TRANSACTION_VERSION,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The first level that 4.3.1 knows, and the number of levels that each release has added, in order.
_LADDER = ("3.3", 3, 1), ("3.4", 0, 1), ("3.5", 0, 3), ("3.6", 0, 3), ("3.7", 0, 5), ("3.8", 0, 1), ("3.9", 0, 1), \
    ("4.0", 0, 4), ("4.1", 0, 2), ("4.2", 0, 2), ("4.3", 0, 1), ("4.4", 0, 1)  # fmt: skip

NAMES = dict(
    enumerate(
        (f"{release}-IV{number}" for release, first, count in _LADDER for number in range(first, first + count)),
        SUPPORTED[METADATA_VERSION][0],
    )
)
"""Level of metadata.version to its name. Those above `LATEST_LEVEL` are known and not stable."""

FeatureLevel = namedtuple("FeatureLevel", ("level", "since", "needs"), defaults=({},))
FeatureLevel.__doc__ = """A level of a feature: from which metadata.version on a new cluster has it, and which levels of
other features it depends on."""

LEVELS: dict[str, tuple[FeatureLevel, ...]] = {
    KRAFT_VERSION: (FeatureLevel(0, 7), FeatureLevel(1, 21)),
    TRANSACTION_VERSION: (FeatureLevel(0, 7), FeatureLevel(1, 24), FeatureLevel(2, 24)),
    GROUP_VERSION: (FeatureLevel(0, 7), FeatureLevel(1, 22)),
    ELIGIBLE_LEADER_REPLICAS: (FeatureLevel(0, 7), FeatureLevel(1, 26, {METADATA_VERSION: ELR_SINCE})),
    SHARE_VERSION: (FeatureLevel(0, 7), FeatureLevel(1, 28)),
    STREAMS_VERSION: (FeatureLevel(0, 7), FeatureLevel(1, 29)),
}
"""The features besides metadata.version, in the order in which Kafka's tools name them."""


def level_of_release(text: str, *, newest: int = LATEST_LEVEL) -> int:
    """The level of metadata.version that a release is named for. Raises ConfigError."""
    parts = text.split(".")
    name = text if len(parts) <= 2 else ".".join(parts[:2])
    for level, each in reversed(NAMES.items()):
        stable = level <= LATEST_LEVEL and each.partition("-")[0] == name
        if level <= newest and (each == name or stable):
            return level
    known = ", ".join(each for level, each in NAMES.items() if level <= newest)
    raise ConfigError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {known}")


def defaults(level: int) -> dict[str, int]:
    """The levels of the other features in a new cluster with that metadata.version."""
    return {
        name: max(each.level for each in levels if each.since <= max(level, levels[0].since))
        for name, levels in LEVELS.items()
    }


def find(name: str, level: int) -> FeatureLevel | None:
    """What is known of a level of a feature."""
    return next((each for each in LEVELS.get(name, ()) if each.level == level), None)


def of_new_cluster(asked: Mapping[str, int], release: int | None, *, is_dynamic: bool) -> dict[str, int]:
    """The levels of all features of a cluster that is formatted: those that are `asked` for, and those that belong to
    the metadata.version of a `release`, the newest where nobody asks for one. `is_dynamic` says that the voters are to
    be in the log. The checks and their words are those of Kafka's formatter. Raises ConfigError."""
    if METADATA_VERSION in asked:
        if release is not None:
            raise ConfigError(f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity.")
        release = _checked(asked[METADATA_VERSION])
    level = LATEST_LEVEL if release is None else release
    for name in asked:
        if name not in LEVELS and name != METADATA_VERSION:
            raise ConfigError(f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(LEVELS))}")
    found = {**defaults(level), **asked, METADATA_VERSION: level}
    found[KRAFT_VERSION] = _kraft_version(asked.get(KRAFT_VERSION), is_dynamic=is_dynamic)
    for name, value in sorted(found.items()):
        if name != METADATA_VERSION:
            _check_needs(name, value, found)
    return found


def _checked(level: int) -> int:
    if level not in NAMES:
        raise ConfigError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from {min(NAMES)} to "
            f"{max(NAMES)}."
        )
    if level > LATEST_LEVEL:
        raise ConfigError(f"{METADATA_VERSION} {NAMES[level]} is not yet stable.")
    return level


def _kraft_version(asked: int | None, *, is_dynamic: bool) -> int:
    if asked is None:
        return int(is_dynamic)
    if not asked and is_dynamic:
        raise ConfigError(
            f"Cannot set {KRAFT_VERSION} to 0 if controller.quorum.voters is empty and one of the flags --standalone, "
            "--initial-controllers, or --no-initial-controllers is used. For dynamic controllers support, try removing "
            f"the --feature flag for {KRAFT_VERSION}."
        )
    if asked and not is_dynamic:
        raise ConfigError(
            f"Cannot set {KRAFT_VERSION} to {asked} unless controller.quorum.voters is empty and one of the flags "
            "--standalone, --initial-controllers, or --no-initial-controllers is used. For dynamic controllers "
            "support, try using one of --standalone, --initial-controllers, or --no-initial-controllers and removing "
            "controller.quorum.voters."
        )
    return asked


def _check_needs(name: str, level: int, levels: Mapping[str, int]) -> None:
    known = find(name, level)
    if known is None:
        raise ConfigError(f"No feature:{name} with feature level {level}")
    for needed, least in known.needs.items():
        if levels.get(needed, -1) < least:
            raise ConfigError(f"{name} could not be set to {level} because it depends on {needed} level {least}")
