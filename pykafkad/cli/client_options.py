"""How each client names what it needs to encrypt and to log in."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.sasl.jaas import quoted
from pykafkad.sasl.offer import GSSAPI, LOGIN_MODULES

Access = namedtuple(
    "Access", ("ca_file", "user", "password", "mechanism", "token_url", "keytab"), defaults=(None, None)
)
Access.__doc__ = """What a broker asks of its clients: to trust the authority in `ca_file` (None: no TLS), and to log
in as `user` (None: nobody does) with a password by a mechanism; by OAUTHBEARER with the tokens that the user, a client
of an issuer, gets for the password at `token_url`; by GSSAPI as a principal of Kerberos without a password, whose key
is in a `keytab` (None: its ticket is in the usual cache)."""

KERBEROS_SERVICE = "kafka"
"""The first part of the broker's name in Kerberos, by far most often."""

Trust = namedtuple("Trust", ("ca_file",))
Trust.__doc__ = """The value of an option: an object of the client's language that trusts the authority in `ca_file`."""

Tokens = namedtuple("Tokens", ("url", "client", "secret"))
Tokens.__doc__ = """The value of an option: an object of the client's language that gets tokens at a `url` for a
`client` with a `secret`."""

NOBODY = Access(None, None, None, None)


JAVA_TOKENS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
JAVA_ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""The system property of Java's virtual machine with the addresses that its clients may ask for tokens."""


def protocol(access: Access) -> str:
    """The security protocol, as Kafka names it."""
    if access.user is None:
        return "PLAINTEXT" if access.ca_file is None else "SSL"
    return "SASL_PLAINTEXT" if access.ca_file is None else "SASL_SSL"


def _java(access: Access, prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {"security.protocol": protocol(access)}
    if access.ca_file is not None:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": access.ca_file}
    if access.mechanism == GSSAPI:
        where = "useTicketCache=true"
        if access.keytab is not None:
            where = f"useKeyTab=true storeKey=true keyTab={quoted(access.keytab)}"
        found |= {
            "sasl.mechanism": GSSAPI,
            "sasl.kerberos.service.name": KERBEROS_SERVICE,
            "sasl.jaas.config": f"{LOGIN_MODULES[GSSAPI]} required {where} principal={quoted(access.user)};",
        }
    elif access.user is not None:
        words = ("username", "password") if access.token_url is None else ("clientId", "clientSecret")
        login = f"{words[0]}={quoted(access.user)} {words[1]}={quoted(access.password)}"
        found |= {
            "sasl.mechanism": access.mechanism,
            "sasl.jaas.config": f"{LOGIN_MODULES[access.mechanism]} required {login};",
        }
    if access.token_url is not None:
        found |= {
            "sasl.login.callback.handler.class": JAVA_TOKENS,
            "sasl.oauthbearer.token.endpoint.url": access.token_url,
        }
    return {f"{prefix}{name}": value for name, value in found.items()}


def _spark(access: Access) -> dict[str, object]:
    return _java(access, "kafka.")


def _spring(access: Access) -> dict[str, object]:
    return _java(access, "spring.kafka.properties.")


def _librdkafka(access: Access) -> dict[str, object]:
    found: dict[str, object] = {"security.protocol": protocol(access)}
    if access.ca_file is not None:
        found["ssl.ca.location"] = access.ca_file
    if access.mechanism == GSSAPI:
        keytab = {} if access.keytab is None else {"sasl.kerberos.keytab": access.keytab}
        return found | {
            "sasl.mechanism": GSSAPI,
            "sasl.kerberos.service.name": KERBEROS_SERVICE,
            "sasl.kerberos.principal": access.user,
            **keytab,
        }
    if access.token_url is not None:
        return found | {
            "sasl.mechanism": access.mechanism,
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": access.user,
            "sasl.oauthbearer.client.secret": access.password,
            "sasl.oauthbearer.token.endpoint.url": access.token_url,
        }
    if access.user is not None:
        found |= {
            "sasl.mechanism": access.mechanism,
            "sasl.username": access.user,
            "sasl.password": access.password,
        }
    return found


def _python(access: Access) -> dict[str, object]:
    found: dict[str, object] = {"security_protocol": protocol(access)}
    if access.mechanism == GSSAPI:
        return found | {"sasl_mechanism": GSSAPI, "sasl_kerberos_service_name": KERBEROS_SERVICE}
    if access.token_url is not None:
        return found | {
            "sasl_mechanism": access.mechanism,
            "sasl_oauth_token_provider": Tokens(access.token_url, access.user, access.password),
        }
    if access.user is not None:
        found |= {
            "sasl_mechanism": access.mechanism,
            "sasl_plain_username": access.user,
            "sasl_plain_password": access.password,
        }
    return found


def _kafka_python(access: Access) -> dict[str, object]:
    return _python(access) | ({} if access.ca_file is None else {"ssl_cafile": access.ca_file})


def _aiokafka(access: Access) -> dict[str, object]:
    return _python(access) | ({} if access.ca_file is None else {"ssl_context": Trust(access.ca_file)})


def _kafkajs(access: Access) -> dict[str, object]:
    found: dict[str, object] = {}
    if access.ca_file is not None:
        found["ssl"] = Trust(access.ca_file)
    if access.token_url is not None:
        provider = Tokens(access.token_url, access.user, access.password)
        found["sasl"] = {"mechanism": access.mechanism.lower(), "oauthBearerProvider": provider}
    elif access.user is not None:
        found["sasl"] = {
            "mechanism": access.mechanism.lower(),
            "username": access.user,
            "password": access.password,
        }
    return found


_FAMILIES = {
    "confluent": _librdkafka,
    "librdkafka": _librdkafka,
    "java": _java,
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
    "spark": _spark,
    "kafkajs": _kafkajs,
    "spring": _spring,
}


def of(client: str, access: Access) -> dict[str, object]:
    """The options of a client; none where anybody may do everything in plain text. Raises ValueError for a client whose
    options are not known here."""
    if access == NOBODY:
        return {}
    family = _FAMILIES.get(client)
    if access.mechanism == GSSAPI and family is _kafkajs:
        raise ValueError(f"{client}: it has no login by {GSSAPI}")
    if family is None:
        raise ValueError(f"{client}: how it encrypts and logs in is not known here, only for {', '.join(_FAMILIES)}")
    return family(access)
