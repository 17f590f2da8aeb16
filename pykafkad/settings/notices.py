"""What people are told at start about settings that do not count: unknown ones, and those without effect here."""

from __future__ import annotations

from pykafkad.settings import authorizer_settings, per_listener
from pykafkad.settings.rows import BROKER, ROWS, TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.settings.rows import Row

# Plug-ins that refuse requests by a policy. Java classes cannot run here, so a warning says that nothing is refused.
_POLICIES = frozenset(("create.topic.policy.class.name", "alter.config.policy.class.name"))

RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

# How similar (0 to 1) an unknown name must be to a setting's name to be taken for a typing error.
_NEAR = 0.9

CLIENTS_NOTICE = (
    "client.quota.callback.class",
    "config.providers",
    "group.share.assignors",
    "group.share.persister.class.name",
    "log.local.retention.",
    "remote.log.storage.system.enable",
    "sasl.",
    "security.providers",
    "ssl.",
    "transaction.two.phase.commit.enable",
    "unstable.",
)
"""How the names of settings begin without which a client gets other answers, or another connection, than it would from
a Kafka with them."""

CLIENTS_DO_NOT_NOTICE = (
    "sasl.client.",
    "sasl.login.",
)
"""Of these, settings for the connections between nodes."""


def of(properties: Mapping[str, tuple[str, str]], release: str, rows: Mapping[str, Row]) -> tuple[list[str], list[str]]:
    """A sentence for each setting that somebody may miss, and the names of those without effect that nobody does: they
    tune threads, buffers and replication, or say what is the default. `rows` are the settings of the release."""
    sentences: list[str] = []
    without_effect = []
    for name, (text, origin) in properties.items():
        if name in ROWS[BROKER] and name not in rows:
            sentence: str | None = f"{name} is not a setting of Kafka {release} and is ignored"
        elif name in rows and name not in ROWS[BROKER]:
            sentence = None
        else:
            sentence = _sentence(name, text, properties)
        if sentence is None:
            without_effect.append(name)
        elif sentence:
            sentences.append(f"{origin}: {sentence}")
    return sentences, without_effect


def _sentence(name: str, text: str, properties: Mapping[str, tuple[str, str]]) -> str | None:
    """Empty for a setting that counts, None for one without an effect that anybody would miss."""
    row = ROWS[BROKER].get(name)
    if name in _POLICIES and text:
        return f"{name}={text} is a Java class, which cannot run here: it refuses nothing"
    if name == "replica.selector.class" and text.strip() not in ("", RACK_AWARE_SELECTOR):
        return f"{name}={text} is a Java class, which cannot run here: consumers fetch from leaders"
    if name in authorizer_settings.NAMES or name in authorizer_settings.AUDIT_NAMES:
        is_used = bool(properties.get("authorizer.class.name", ("", ""))[0].strip())
        return "" if is_used else f"{name} has no effect without authorizer.class.name"
    of_listener = per_listener.sentence(name)
    if of_listener is not None:
        return of_listener
    if row is None:
        return _unknown_name_sentence(name)
    if row.effect or row.name == "broker.id":
        return ""
    is_noticed = name.startswith(CLIENTS_NOTICE) and not name.startswith(CLIENTS_DO_NOT_NOTICE)
    if is_noticed and text.strip() != (row.default or ""):
        return f"{name} has no effect in this version of pykafkad"
    return None


def _unknown_name_sentence(name: str) -> str:
    """The sentence about a name that no broker setting has. It names the setting that was probably meant."""
    of_topics = ROWS[TOPIC].get(name)
    if of_topics is not None:
        inherited = f"; the broker's setting is {of_topics.broker_settings[0][0]}" if of_topics.broker_settings else ""
        return f"{name} is a setting of topics, not of brokers, and is ignored{inherited}"
    from difflib import get_close_matches

    near = get_close_matches(name, [row.name for row in ROWS[BROKER].values() if row.documented], 1, _NEAR)
    return f"{name} is not a setting of Kafka 4.3.1 and is ignored{f' (did you mean {near[0]}?)' if near else ''}"
