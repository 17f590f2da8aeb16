"""Bugs to plant in the control API (`pykafkad/control`)."""

from __future__ import annotations

from tests.planted.plant import Plant

SERVER = ("tests/control/test_server.py",)
SERVE = ("tests/control/test_serve.py",)
TOPICS = ("tests/control/test_topics.py",)
WAITS = ("tests/control/test_waits.py",)
METRICS = ("tests/control/test_metrics.py",)

PLANTS = (
    Plant(
        "everybody controls the broker",
        "control/application.py",
        "if not (row.is_open or has_token):",
        "if False:",
        SERVER,
    ),
    Plant(
        "the start of a token is enough",
        "control/application.py",
        'hmac.compare_digest(given.strip().encode("latin-1"), self._token)',
        'self._token[:8] == given.strip().encode("latin-1")[:8]',
        SERVER,
    ),
    Plant(
        "a body of the control API has no limit",
        "control/application.py",
        "if length > MOST_BODY_BYTES:",
        "if False:",
        SERVER,
    ),
    Plant(
        "an unknown name in a query is overlooked",
        "control/application.py",
        "if name not in row.query:",
        "if False:",
        SERVER,
    ),
    Plant(
        "the control API may not do what ACLs deny",
        "control/served.py",
        "connection.session.identify(PRINCIPAL)",
        "pass",
        SERVE,
    ),
    Plant(
        "the token is in the ready file",
        "server/run.py",
        'kept = [each for each in told if not each.startswith("control.token=")]',
        "kept = told",
        SERVE,
    ),
    Plant(
        "partitions that others lead are counted as led here",
        "server/kafka_metrics.py",
        "lambda now: len(now.led),",
        "lambda now: 0,",
        METRICS,
    ),
    Plant(
        "any number of requests wait until no thread is left",
        "control/route.py",
        "if self.waits >= MOST_WAITS:",
        "if False:",
        WAITS,
    ),
    Plant(
        "bytes that are no text are lost on their way",
        "control/values.py",
        'return {name: text, f"{name}_base64": b64encode(value).decode()}',
        'return {name: text, f"{name}_base64": None if text is None else b64encode(value).decode()}',
        TOPICS,
    ),
    Plant(
        "numbers of a request have no range",
        "control/schemas.py",
        "_check_number(schema, value, where)",
        "pass",
        TOPICS,
    ),
)
