"""The broker-logger resource (KIP-412): log levels that can be changed while the broker runs, until it stops.

There is one logger, `root`, because pykafkad's log lines are named by package and not by class. Kafka's six levels are
accepted and mapped to pykafkad's four. An unknown operation is UNKNOWN_SERVER_ERROR, as in Kafka.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.operations import node_id_in
from pykafkad.metadata.configs import APPEND, DELETE, OPERATION_NAMES, SET, SUBTRACT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context
    from pykafkad.handlers.controller_context import ControllerContext

ROOT = "root"

# pykafkad's level to Kafka's.
KAFKA_LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}

# Kafka's level to pykafkad's.
LEVELS = {"TRACE": "debug", "DEBUG": "debug", "INFO": "info", "WARN": "warning", "ERROR": "error", "FATAL": "error"}


def alter(
    ctx: Context | ControllerContext, name: str, operations: list[tuple[str, int, str | None]], validate_only: bool
) -> None:
    """Set levels of the loggers of broker `name`. Raises `KafkaError` and then changes nothing."""
    broker_id = node_id_in(name, "Node id")
    if broker_id != ctx.node_id:
        text = f"Unexpected node id. Expected {ctx.node_id}, but received {broker_id}"
        raise KafkaError(errors.INVALID_REQUEST, text)
    levels = [_level(ctx, logger, operation, level) for logger, operation, level in operations]
    if not validate_only:
        for level in levels:
            ctx.set_log_level(level)


def _level(ctx: Context | ControllerContext, logger: str, operation: int, level: str | None) -> str:
    """The pykafkad level that one operation sets. Raises `KafkaError`."""
    if operation in (APPEND, SUBTRACT):
        text = f"{OPERATION_NAMES[operation]} operation is not allowed for the BROKER_LOGGER resource"
        raise KafkaError(errors.INVALID_REQUEST, text)
    if operation not in (SET, DELETE):
        release = ctx.settings.release
        code = None if release is None else release.answers.get("IncrementalAlterConfigs.unknown_logger_operation")
        if code is not None:
            raise KafkaError(code, f"Unknown operation {operation} on the BROKER_LOGGER resource")
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
    if logger != ROOT:
        raise KafkaError(errors.INVALID_CONFIG, f"Logger {logger} does not exist!")
    if operation == DELETE:
        raise KafkaError(errors.INVALID_REQUEST, f"Removing the log level of the {ROOT} logger is not allowed")
    if level is None or level not in LEVELS:
        text = (
            f"Cannot set the log level of {logger} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}"
        )
        raise KafkaError(errors.INVALID_CONFIG, text)
    return LEVELS[level]
