"""What each client has to be told to reach a broker: one row per client."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cli.client_options import Access

Naming = namedtuple("Naming", ("bootstrap", "group", "start", "earliest"))
Naming.__doc__ = """How a client names its settings: those of the addresses, the group and where a new group starts, and
the value of the last that stands for the first record. None: the client has no such setting."""

_PROPERTIES = Naming("bootstrap.servers", "group.id", "auto.offset.reset", "earliest")

CLIENTS: dict[str, Naming] = {
    "confluent": _PROPERTIES,
    "librdkafka": _PROPERTIES,
    "java": _PROPERTIES,
    "kafka-python": Naming("bootstrap_servers", "group_id", "auto_offset_reset", "earliest"),
    "aiokafka": Naming("bootstrap_servers", "group_id", "auto_offset_reset", "earliest"),
    "faststream": Naming("bootstrap_servers", "group_id", "auto_offset_reset", "earliest"),
    "spark": Naming("kafka.bootstrap.servers", "kafka.group.id", "startingOffsets", "earliest"),
    "kafkajs": Naming("brokers", "groupId", "fromBeginning", True),
    "spring": Naming(
        "spring.kafka.bootstrap-servers",
        "spring.kafka.consumer.group-id",
        "spring.kafka.consumer.auto-offset-reset",
        "earliest",
    ),
}
"""By the names that `Broker.client_config` takes."""

_LISTS = frozenset(("kafkajs",))


def client_config(
    client: str, bootstrap: str, group: str | None = None, access: Access | None = None
) -> dict[str, object]:
    """The settings of `client` that lead to the broker, with the `access` that it asks for; with a `group` also those
    of a consumer in it that starts at the first record. Raises ValueError for a client that is not in `CLIENTS`."""
    naming = CLIENTS.get(client)
    if naming is None:
        raise ValueError(f"client_config: {client!r} is none of {', '.join(CLIENTS)}")
    found: dict[str, object] = {naming.bootstrap: bootstrap.split(",") if client in _LISTS else bootstrap}
    if group is not None:
        found[naming.group] = group
        found[naming.start] = naming.earliest
    if access is not None:
        from pykafkad.cli import client_options

        for name, value in client_options.of(client, access).items():
            found[name] = _trusting(client, value.ca_file) if isinstance(value, client_options.Trust) else value
    return found


def _trusting(client: str, ca_file: str) -> object:
    """What a client takes that trusts this authority: an object of Python, or fields of JavaScript's."""
    if client in _LISTS:
        with open(ca_file, encoding="ascii") as file:
            return {"ca": [file.read()]}
    import ssl

    return ssl.create_default_context(cafile=ca_file)
