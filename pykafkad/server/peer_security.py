"""How this node is known, and knows the others, on the connections that begin here: what Kafka's settings say of the
listeners that it reaches.

Controllers are reached by the first of `controller.listener.names` and `sasl.mechanism.controller.protocol`, other
brokers by `inter.broker.listener.name`, or the protocol of `security.inter.broker.protocol`, and
`sasl.mechanism.inter.broker.protocol`. TLS and login modules are those of the listener. Gap: nodes log in by PLAIN and
SCRAM, not by OAUTHBEARER and GSSAPI."""

from __future__ import annotations

from os import urandom

from pykafkad.server import listeners, quorum_settings
from pykafkad.server.peer_types import PLAIN_TEXT, Security

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.config import Settings
    from pykafkad.metadata.brokers import Broker as Registration, Endpoint
    from pykafkad.server.broker import Broker


def of_controllers(settings: Settings) -> Security:
    """Connections to controllers. Raises ConfigError."""
    name = quorum_settings.listener_of(settings)
    mechanism = settings.sasl_mechanism_controller_protocol
    protocol = listeners.protocol_of(settings, name)
    return _security(settings, name, protocol, mechanism, "sasl.mechanism.controller.protocol")


def of_brokers(settings: Settings) -> Security:
    """Connections to other brokers. Raises ConfigError."""
    name = settings.inter_broker_listener_name
    if name is None:
        name = protocol = settings.security_inter_broker_protocol
    else:
        protocol = listeners.protocol_of(settings, name)
    mechanism = settings.sasl_mechanism_inter_broker_protocol
    return _security(settings, name, protocol, mechanism, "sasl.mechanism.inter.broker.protocol")


def endpoint_of(broker: Broker, other: Registration) -> Endpoint | None:
    """The endpoint of another broker at which this one reaches it: that of the listener that the settings name, else
    the first of the protocol that they name. None if there is none."""
    if broker.local_links is not None:
        from pykafkad.server.local_links import endpoint

        return endpoint(other.id)
    settings, endpoints = broker.settings, other.endpoints
    name = settings.inter_broker_listener_name
    if name is not None:
        return endpoints.get(name.upper())
    number = listeners.PROTOCOLS.index(settings.security_inter_broker_protocol)
    return next((each for each in endpoints.values() if each.security_protocol == number), None)


def _security(settings: Settings, name: str, protocol: str, mechanism: str, setting: str) -> Security:
    """That of a listener, where a login has the `mechanism` of `setting`. Who reaches others in plain text loads
    neither TLS nor logins."""
    if protocol == "PLAINTEXT":
        return PLAIN_TEXT
    tls = credentials = None
    if protocol in listeners.ENCRYPTED:
        from pykafkad.server import tls_client

        tls = tls_client.of_settings(settings, name)
    if protocol.startswith("SASL_"):
        from pykafkad.sasl import client

        credentials = client.of_settings(settings, name, mechanism, setting, urandom)
    return Security(tls, credentials)
