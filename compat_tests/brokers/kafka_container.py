"""A real Kafka in a container, through testcontainers."""

from __future__ import annotations

from datetime import timedelta

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from compat_tests.brokers.broker import READY_SECONDS, STOP_SECONDS, Broker, free_port, wait_until_ready
from compat_tests.brokers.kafka_process import CLUSTER_ID
from compat_tests.brokers.settings import JAVA_OPTIONS, LOGGING_PROPERTIES, as_properties, kafka_properties
from compat_tests.setup.kafka_jars import KAFKA_VERSION

# `exec` lets the container's SIGTERM reach Kafka. A restart runs it all again: a formatted directory is left as it is.
START_SCRIPT = """
cat > /tmp/server.properties <<'END'
{properties}END
cat > /tmp/log4j2.properties <<'END'
{logging}END
set -e
[ -e /tmp/kafka-data/meta.properties ] || java {options} -cp '/opt/kafka/libs/*' kafka.tools.StorageTool format \
  --standalone --ignore-formatted -t {cluster_id} -c /tmp/server.properties
exec java {options} -Dlog4j2.configurationFile=/tmp/log4j2.properties -cp '/opt/kafka/libs/*' kafka.Kafka \
  /tmp/server.properties
"""


class KafkaContainer(Broker):
    """Kafka from `image` in its own container, reached on the same port inside and outside.

    With `host_network` it shares this machine's network; otherwise its port is bound to one of this machine.
    """

    name = "kafka"

    def __init__(
        self,
        image: str,
        image_from: str,
        host_network: bool,
        overrides: dict[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        self.how = f"Kafka {KAFKA_VERSION} in a container, from {image_from}"
        port = port or free_port()
        self.bootstrap = f"localhost:{port}"
        # The same port inside and outside, because the broker also reaches itself by its advertised address.
        settings = kafka_properties(port, free_port(), "/tmp/kafka-data", "localhost" if host_network else "0.0.0.0")
        script = START_SCRIPT.format(
            properties=as_properties({**settings, **(overrides or {})}, "/tmp/kafka-data"),
            logging=LOGGING_PROPERTIES,
            cluster_id=CLUSTER_ID,
            options=" ".join(JAVA_OPTIONS),
        )
        started = LogMessageWaitStrategy("Kafka Server started").with_startup_timeout(timedelta(seconds=READY_SECONDS))
        self._description = DockerContainer(image).with_command([script]).waiting_for(started)
        if host_network:
            self._description.with_kwargs(entrypoint=["/bin/sh", "-c"], network_mode="host")
        else:
            self._description.with_kwargs(entrypoint=["/bin/sh", "-c"]).with_bind_ports(port, port)
        self._created = False

    def start(self) -> None:
        if self._created:
            self._container().start()
        else:
            self._created = True
            self._description.start()
        wait_until_ready(self)

    def stop(self) -> None:
        if self._created:
            self._container().stop(timeout=int(STOP_SECONDS))

    def kill(self) -> None:
        self._container().kill()
        self._container().wait()

    def close(self) -> None:
        if self._created:
            self._created = False
            self._description.stop(force=True, delete_volume=True)

    def log_text(self) -> str:
        if not self._created:
            return ""
        return self._container().logs().decode(errors="replace")

    def _container(self):
        return self._description.get_wrapped_container()
