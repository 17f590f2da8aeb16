"""`pykafkad serve --container`: what the container images of Kafka take from their environment, and what they say.

Programs that start Kafka in a container, such as the Testcontainers modules, set variables like KAFKA_LISTENERS, and
wait for a line in its log. Names are read as by `kafka.docker.KafkaDockerWrapper` of Kafka 4.3.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from pykafkad.config import Settings

OPTION = "--container"
PREFIX = "KAFKA_"

# Variables with the prefix that are about the JVM and its log.
NO_SETTINGS = frozenset((
    "KAFKA_VERSION", "KAFKA_HEAP_OPTS", "KAFKA_LOG4J_OPTS", "KAFKA_OPTS", "KAFKA_JMX_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_GC_LOG_OPTS", "KAFKA_LOG4J_ROOT_LOGLEVEL", "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_JMX_HOSTNAME",
))  # fmt: skip

DATA_DIRECTORY = "/var/lib/kafka/data"

# The host reaches the port that is published. Containers of the same network reach the other one, by the name that
# they know: nothing is advertised there, so that they are answered with the address by which they came.
LISTENERS = {
    "listeners": "PLAINTEXT://0.0.0.0:9092,INTERNAL://0.0.0.0:19092",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
}


def setting_name(variable: str) -> str:
    """The setting that a variable means: `_` is a dot, `__` an underscore, `___` a hyphen."""
    return variable.removeprefix(PREFIX).lower().replace("_", ".").replace("...", "-").replace("..", "_")


def read(environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The settings of the variables, with their origins."""
    found = {
        setting_name(variable): (environment[variable], f"environment {variable}")
        for variable in sorted(environment)
        if variable.startswith(PREFIX) and variable not in NO_SETTINGS
    }
    if environment.get("CLUSTER_ID"):
        found["pykafkad.cluster.id"] = (environment["CLUSTER_ID"], "environment CLUSTER_ID")
    return found


def defaults(given: Container[str]) -> dict[str, tuple[str, str]]:
    """What an image has where nobody says something else; `given` are the settings that somebody has set."""
    found = {}
    if not any(name in given for name in LISTENERS):
        found = {name: (text, OPTION) for name, text in LISTENERS.items()}
    if "log.dir" not in given and "log.dirs" not in given:
        found["log.dirs"] = (DATA_DIRECTORY, OPTION)
    return found


def ready_lines(settings: Settings) -> list[str]:
    """What Kafka logs at the end of its start, for those who wait for one of these lines."""
    node_id = settings.node_id
    return [
        f"[BrokerLifecycleManager id={node_id}] The broker has been unfenced. Transitioning from RECOVERY to RUNNING.",
        f"[KafkaServer id={node_id}] started",
        "Kafka Server started",
    ]
