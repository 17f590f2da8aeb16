"""How each client names what it needs to encrypt and to log in."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.sasl.jaas import quoted
from pykafkad.sasl.offer import LOGIN_MODULES

Access = namedtuple("Access", ("ca_file", "user", "password", "mechanism"))
Access.__doc__ = """What a broker asks of its clients: to trust the authority in `ca_file` (None: no TLS), and to log
in as `user` (None: nobody does) with a password by a mechanism."""

Trust = namedtuple("Trust", ("ca_file",))
Trust.__doc__ = """The value of an option: an object of the client's language that trusts the authority in `ca_file`."""

NOBODY = Access(None, None, None, None)


def protocol(access: Access) -> str:
    """The security protocol, as Kafka names it."""
    if access.user is None:
        return "PLAINTEXT" if access.ca_file is None else "SSL"
    return "SASL_PLAINTEXT" if access.ca_file is None else "SASL_SSL"


def _java(access: Access, prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {"security.protocol": protocol(access)}
    if access.ca_file is not None:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": access.ca_file}
    if access.user is not None:
        login = f"username={quoted(access.user)} password={quoted(access.password)}"
        found |= {
            "sasl.mechanism": access.mechanism,
            "sasl.jaas.config": f"{LOGIN_MODULES[access.mechanism]} required {login};",
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
    if access.user is not None:
        found |= {
            "sasl.mechanism": access.mechanism,
            "sasl.username": access.user,
            "sasl.password": access.password,
        }
    return found


def _python(access: Access) -> dict[str, object]:
    found: dict[str, object] = {"security_protocol": protocol(access)}
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
    if access.user is not None:
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
    if family is None:
        raise ValueError(f"{client}: how it encrypts and logs in is not known here, only for {', '.join(_FAMILIES)}")
    return family(access)
