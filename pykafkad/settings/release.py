"""Another release of Kafka than 4.3.1, to act as (`--act-as 4.0`): what it offers and what its settings are.

The facts stand in `releases/<name>.txt`, one line for each difference from 4.3.1, as that release's own broker shows
them (ApiVersions, DescribeConfigs):

    api      NAME  LOW-HIGH             the versions that it answers; LOW/FIRST-HIGH if those below FIRST are only
                                        advertised
    feature  NAME  LOW-HIGH@LEVEL       the levels that it supports, and that of a new cluster; `!` behind NAME: it is
                                        ours alone, and clients are not told of it
    answer   API.FIELD  NUMBER          what it answers in a field in which 4.3.1 answers nothing, or a switch
    SCOPE    NAME  DEFAULT;TYPE;APPLIES a setting; an empty part is as in 4.3.1, `none` is no default; a setting of
                                        topics or groups that 4.3.1 lacks has the broker's setting in place of APPLIES;
                                        behind one more `;` what it allows, as in broker.txt

`-` in the last column: the release has no such API, feature or setting; `!`: it has the setting, and does not show it.
A feature is listed whether it differs or not.

A setting that 4.3.1 does not have is shown and has no effect. What a release has and 4.3.1 has not is offered only when
that release is acted as: the versions of APIs that Kafka 4.0 removed, and the APIs and versions of a later release.
"""

from __future__ import annotations

from copy import copy

from pykafkad.settings.rows import BROKER, ROWS, SCOPES, InvalidValue, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ABSENT = "-"
_HIDDEN = "!"
_NONE = "none"
_LEVEL_OF_4_3 = 30
_HELP = "A setting of another release of Kafka; it has no effect."


class Release:
    """What one release offers.

    `apis` maps the name of an API that differs to its (lowest advertised, lowest answered, highest) version, or to None
    if the release has no such API. `features` maps each feature to its (lowest, highest) level,
    `new_cluster` to the level in a new cluster (without those that are at 0). `hidden` are those that
    clients are not told of. `answers` maps `API.field` to its number.
    `rows` has its settings: by scope, name to row.
    """

    __slots__ = ("answers", "apis", "features", "hidden", "new_cluster", "rows")

    def __init__(self, lines: Iterable[str]) -> None:
        self.apis: dict[str, tuple[int, int, int] | None] = {}
        self.answers: dict[str, int] = {}
        self.hidden: set[str] = set()
        self.features: dict[str, tuple[int, int]] = {}
        self.new_cluster: dict[str, int] = {}
        self.rows: dict[str, dict[str, Row]] = {scope: dict(ROWS[scope]) for scope in SCOPES}
        for line in lines:
            if line[0] in "#\n":
                continue
            kind, subject, fact = line.split()
            if kind == "api":
                self.apis[subject] = None if fact == _ABSENT else _versions(fact)
            elif kind == "answer":
                self.answers[subject] = int(fact)
            elif kind == "feature":
                self._add_feature(subject, fact)
            else:
                self._change_setting(kind, subject, fact)

    @property
    def is_older(self) -> bool:
        """Whether the release is older than 4.3, which brought level 30 of metadata.version."""
        return self.features["metadata.version"][1] < _LEVEL_OF_4_3

    @property
    def has_old_coordinator(self) -> bool:
        """Whether groups are those of the coordinator that Kafka 4.0 removed."""
        return "groups.of_old_coordinator" in self.answers

    @property
    def has_zookeeper(self) -> bool:
        """Whether its brokers are coordinated by ZooKeeper, where clients from before Kafka 0.9 keep their offsets."""
        return "metadata.version" in self.hidden

    @property
    def has_old_formats(self) -> bool:
        """Whether Fetch has the versions for messages of magic 0 and 1, which Kafka 4.0 removed."""
        found = self.apis.get("Fetch")
        return found is not None and found[1] == 0

    def _add_feature(self, name: str, fact: str) -> None:
        if name[-1] == "!":
            name = name[:-1]
            self.hidden.add(name)
        if fact != _ABSENT:
            levels, _, level = fact.partition("@")
            self.features[name] = _range(levels)
            if int(level):
                self.new_cluster[name] = int(level)

    def _change_setting(self, scope: str, name: str, fact: str) -> None:
        rows = self.rows[scope]
        if fact == _ABSENT:
            del rows[name]
            return
        if fact == _HIDDEN:
            rows[name] = copy(rows[name])
            rows[name].internal = True
            return
        default, kind, applies, allowed = [*fact.split(";"), "", "", ""][:4]
        if name in rows:
            row = rows[name] = copy(rows[name])
            row.shown_type = kind or row.type
            row.internal = False
            row.allowed = allowed or row.allowed
        else:
            row = rows[name] = Row(scope, " ".join((name, kind, _ABSENT, allowed or "any", applies, "no", _HELP)))
        if applies and scope == BROKER:
            row.applies = applies
        if default:
            row.change_default(None if default == _NONE else "" if default == '""' else default)
            try:
                row.typed_default()
            except InvalidValue:
                # The release allows other values too.
                row.allowed = "any"


def of(name: str) -> Release:
    """The release of that name, which is one of the values of `pykafkad.act.as` but the served release."""
    if name not in _read:
        with open(f"{__file__.rpartition('/')[0]}/releases/{name}.txt", encoding="utf-8") as lines:
            _read[name] = Release(lines)
    return _read[name]


_read: dict[str, Release] = {}


def _versions(text: str) -> tuple[int, int, int]:
    advertised, _, answered = text.rpartition("/")
    low, high = _range(answered)
    return int(advertised or low), low, high


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high)
