"""Which levels of features belong to a release."""

import pytest

from pykafkad.errors import ConfigError
from pykafkad.metadata import features, release_levels


def test_the_ladder_is_as_long_as_what_is_supported():
    lowest, highest = features.SUPPORTED[features.METADATA_VERSION]
    assert list(release_levels.NAMES)[: highest - lowest + 1] == list(range(lowest, highest + 1))
    assert (release_levels.NAMES[7], release_levels.NAMES[17], release_levels.NAMES[21]) == (
        "3.3-IV3",
        "3.7-IV2",
        "3.9-IV0",
    )
    assert release_levels.NAMES[features.LATEST_LEVEL] == "4.3-IV0"


def test_the_newest_release_has_what_a_new_cluster_has():
    found = release_levels.of_new_cluster({}, None, is_dynamic=True)
    assert found == {**features.BOOTSTRAP, features.KRAFT_VERSION: features.NEW_CLUSTER_KRAFT_VERSION}
    assert release_levels.of_new_cluster({}, None, is_dynamic=False)[features.KRAFT_VERSION] == 0


def test_every_level_that_is_supported_is_known():
    for name, (lowest, highest) in features.SUPPORTED.items():
        if name != features.METADATA_VERSION:
            assert [each.level for each in release_levels.LEVELS[name]] == list(range(lowest, highest + 1))


@pytest.mark.parametrize(
    ("text", "level"),
    [("3.3", 7), ("3.5", 11), ("3.5-IV0", 9), ("3.7", 19), ("3.9.1", 21), ("4.0", 25), ("4.3", 30), ("4.3-IV0", 30)],
)
def test_names_of_releases(text, level):
    assert release_levels.level_of_release(text) == level


@pytest.mark.parametrize("text", ["", "3", "4", "3.2", "4.4", "4.4-IV0", "9.9", "3.9-IV7", "x"])
def test_names_of_no_release(text):
    with pytest.raises(ConfigError, match=f"^Unknown metadata.version '{text}'. Supported .*: 3.3-IV3, .*, 4.3-IV0$"):
        release_levels.level_of_release(text)


def test_what_is_not_stable_is_known_where_it_is_asked_for():
    newest = max(release_levels.NAMES)
    assert release_levels.level_of_release("4.4-IV0", newest=newest) == newest > features.LATEST_LEVEL


@pytest.mark.parametrize(
    ("level", "expected"),
    [(7, {}), (21, {"kraft.version": 1}), (24, {"kraft.version": 1, "group.version": 1, "transaction.version": 2})],
)
def test_features_of_older_releases(level, expected):
    assert {name: each for name, each in release_levels.defaults(level).items() if each} == expected
