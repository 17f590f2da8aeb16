"""Settings that every broker under test gets, so that a difference in an answer is a difference in behaviour."""

from __future__ import annotations

# Kafka's own names. A setting that is not listed keeps Kafka's default.
SHARED_SETTINGS = {
    # A single broker cannot hold three copies of the internal topics.
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Tests wait for groups to form; three seconds for each group would be most of the run.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.streams.min.session.timeout.ms": "2000",
    "group.streams.min.heartbeat.interval.ms": "500",
    # A Kafka that was killed, or that left its controller, may register again only when its session is over. One that
    # stalls for so long loses its leaders.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    # Kafka removes empty groups and expired offsets every ten minutes, which could happen during any test.
    "offsets.retention.check.interval.ms": "86400000",
    # Tests observe retention, so it must happen within a test's time.
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
}

NODE_ID = 1


def kafka_properties(port: int, controller_port: int, log_directory: str, listen_host: str) -> dict[str, str]:
    """`server.properties` of a real Kafka that is its own controller, reached as `localhost:port`."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "listeners": f"PLAINTEXT://{listen_host}:{port},CONTROLLER://localhost:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://localhost:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"localhost:{controller_port}",
        "log.dirs": log_directory,
        **SHARED_SETTINGS,
    }


def as_properties(settings: dict[str, str], data_directory: str = "") -> str:
    """The text of a properties file; `{data}` in a value becomes the broker's own data directory."""
    return "".join(f"{name}={value}\n" for name, value in settings.items()).replace("{data}", data_directory)


LOGGING_PROPERTIES = """\
rootLogger.level = warn
rootLogger.appenderRef.c.ref = C
appender.c.type = Console
appender.c.name = C
appender.c.target = SYSTEM_ERR
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d %p %c{1} %m%n
logger.k.name = org.apache.kafka
logger.k.level = info
logger.s.name = kafka
logger.s.level = info
"""

# The same for a Kafka before 4.0.
OLDER_LOGGING_PROPERTIES = """\
log4j.rootLogger=WARN, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.target=System.err
log4j.appender.C.layout=org.apache.log4j.PatternLayout
log4j.appender.C.layout.ConversionPattern=%d %p %c{1} %m%n
log4j.logger.org.apache.kafka=INFO
log4j.logger.kafka=INFO
"""

# Only the C1 compiler and the serial collector: the shortest start and the least processor time in a run of minutes.
JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
