"""How the nodes of one command reach each other where clients have to show who they are: by TLS on both sides.

Brokers get one more listener, on a free port of 127.0.0.1, and the controllers' listeners encrypt as well. Whoever
connects to one of them must show a certificate of an authority that was made for this start, whose key is gone by then;
only nodes of this command have one. Its principal has a name that nobody can guess, and is among `super.users`. The
settings carry the key as text: it is in no file and no command line, and `DescribeConfigs` does not show it."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.config import LISTENER_PREFIX
from pykafkad.server import quorum_settings
from pykafkad.settings.authorizer_settings import SUPER_USERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.config import Settings
    from pykafkad.server.listeners import Listener

LISTENER = "PYKAFKAD_NODES"
"""The brokers' listener for each other."""

HOST = "127.0.0.1"

_STORES = ("ssl.keystore.", "ssl.truststore.", "ssl.key.password")


NodeIdentity = namedtuple("NodeIdentity", ("key", "certificate", "trusted", "principal"))
NodeIdentity.__doc__ = """What a node shows to others, as PEM, and whom it trusts; `principal` is who has it."""


def secured(
    controllers: Sequence[Settings], brokers: Sequence[Settings], identity: NodeIdentity
) -> tuple[list[Settings], list[Settings]]:
    """The same nodes, which reach each other by this identity alone."""
    return [_controller(each, identity) for each in controllers], [_broker(each, identity) for each in brokers]


def _controller(settings: Settings, identity: NodeIdentity) -> Settings:
    name = quorum_settings.listener_of(settings)
    texts = {key: text for key, text in settings.static.items() if not key.startswith(_STORES)}
    return type(settings)({**texts, **_shared(settings, name, identity), **_shown_at(name, identity)})


def _broker(settings: Settings, identity: NodeIdentity) -> Settings:
    name = quorum_settings.listener_of(settings)
    left_out = ("security.inter.broker.protocol", "inter.broker.listener.name")
    texts = {key: text for key, text in settings.static.items() if key not in left_out}
    # What all listeners share would count for those of the nodes, too.
    for key in [each for each in texts if each.startswith(_STORES)]:
        text = texts.pop(key)
        for entry in settings.listeners:
            texts.setdefault(f"{LISTENER_PREFIX}{entry.partition('://')[0].strip().lower()}.{key}", text)
    return type(settings)(
        {
            **texts,
            **_shared(settings, name, identity),
            **_shown_at(name, identity),
            **_shown_at(LISTENER, identity),
            "listeners": ",".join([*settings.listeners, f"{LISTENER}://{HOST}:0"]),
            "inter.broker.listener.name": LISTENER,
        }
    )


def _shared(settings: Settings, controllers: str, identity: NodeIdentity) -> dict[str, str]:
    """The protocols, and who may do everything."""
    entries = [
        entry
        for entry in settings.listener_security_protocol_map.split(",")
        if entry.partition(":")[0].strip().upper() != controllers.upper()
    ]
    return {
        "listener.security.protocol.map": ",".join([*entries, f"{controllers}:SSL", f"{LISTENER}:SSL"]),
        SUPER_USERS: ";".join(filter(None, (settings.static.get(SUPER_USERS, ""), identity.principal))),
    }


def _shown_at(listener: str, identity: NodeIdentity) -> dict[str, str]:
    own = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": identity.key,
        "ssl.keystore.certificate.chain": identity.certificate,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": identity.trusted,
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "DEFAULT",
        "ssl.endpoint.identification.algorithm": "https",
    }
    return {f"{LISTENER_PREFIX}{listener.lower()}.{key}": text for key, text in own.items()}


def is_for_nodes(listener: Listener) -> bool:
    """Whether no client reaches this one."""
    return listener.name == LISTENER
