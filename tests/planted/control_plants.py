"""Bugs to plant in the control API (`pykafkad/control`)."""

from __future__ import annotations

from tests.planted.plant import Plant

SERVER = ("tests/control/test_server.py",)
SERVE = ("tests/control/test_serve.py",)
TOPICS = ("tests/control/test_topics.py",)
WAITS = ("tests/control/test_waits.py",)
FAULTS = ("tests/control/test_faults.py",)
STATES = ("tests/control/test_states.py",)
BROKER = ("tests/testing/test_broker.py",)
LOOP = ("tests/testing/test_broker_loop.py",)
GARBAGE = ("tests/control/test_garbage.py",)
METRICS = ("tests/control/test_metrics.py",)
EVENTS = ("tests/control/test_events.py",)

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
        "testing/served_broker.py",
        "connection.session.identify(PRINCIPAL)",
        "pass",
        SERVE,
    ),
    Plant(
        "the registry of a served broker may not do what ACLs deny",
        "cli/serve_beside.py",
        "served_broker.allow(properties, REGISTRY)",
        "pass",
        ("tests/registry/test_serve.py",),
    ),
    Plant(
        "the token is in the ready file",
        "server/run.py",
        'if not each.startswith(("control.token=", "control.page="))',
        "",
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
        "ids of schemas are known for ever",
        "control/by_schema.py",
        "now >= self._until",
        "False",
        ("tests/control/test_by_schema.py",),
    ),
    Plant(
        "long values by schema are shown in whole",
        "control/by_schema.py",
        "len(text) > most_characters",
        "False",
        ("tests/control/test_by_schema.py",),
    ),
    Plant(
        "bytes that are no text are lost on their way",
        "control/values.py",
        'return {name: text, f"{name}_base64": to_base64(value)}',
        'return {name: text, f"{name}_base64": None if text is None else to_base64(value)}',
        TOPICS,
    ),
    Plant(
        "numbers of a request have no range",
        "control/schemas.py",
        "_check_number(schema, value, where)",
        "pass",
        TOPICS,
    ),
    Plant(
        "a fault of Python's has another number each time",
        "control/route.py",
        "self.faults = {number: fault for number, fault in self.faults.items() if id(fault) in there}",
        "self.faults = {}",
        FAULTS,
    ),
    Plant(
        "a wait for a fault goes on after the broker's end",
        "control/fault_calls.py",
        "if not control.operations.is_running:",
        "if False:",
        FAULTS,
    ),
    Plant(
        "calls go on while everything goes back to a saved state",
        "testing/operations.py",
        "with self._asked.put_off():",
        "if True:",
        BROKER,
    ),
    Plant(
        "two ways back are gone at a time",
        "control/topic_calls.py",
        "with control.going_back:",
        "if True:",
        STATES,
    ),
    Plant(
        "idle strangers keep everybody out of the control API",
        "http_server.py",
        "channel_timeout=IDLE_SECONDS,",
        "",
        SERVER,
    ),
    Plant(
        "names in a free mapping are not looked at",
        "control/schemas.py",
        "_check_text(_FREE_NAME, name, where)",
        "pass",
        TOPICS,
    ),
    Plant(
        "a saved state's name with a colon means a topic",
        "testing/operations.py",
        'if ":" in name:',
        "if False:",
        STATES,
    ),
    Plant(
        "a reset of a served broker forgets what it was told to create",
        "control/served.py",
        "Operations(broker, {name: Topic(partitions) for name, partitions in topics})",
        "Operations(broker, {})",
        SERVE,
    ),
    Plant(
        "the oldest requests of a trace are answered",
        "server/trace.py",
        "islice(self._ring, older, None)",
        "islice(self._ring, 0, limit)",
        STATES,
    ),
    Plant(
        "what is asked of a loop that ends is forgotten",
        "testing/broker_loop.py",
        "for each in list(self._waiting):\n    process.runtime.offload.post(each.run)",
        "",
        LOOP,
    ),
    Plant(
        "the loops of two brokers do the same job",
        "testing/broker_loop.py",
        "if self.done.is_set():\n    return",
        "",
        LOOP,
    ),
    Plant(
        "who asks a loop that has ended waits for a minute",
        "testing/embedded.py",
        "self.abandon()",
        "pass",
        LOOP,
    ),
    Plant(
        "a forked child holds the port of the control API",
        "http_server.py",
        "for each in list(_LIVE):\n    each.close_copies()",
        "",
        SERVER,
    ),
    Plant(
        "a text that can't be written is a bug",
        "control/schemas.py",
        "value.encode()",
        "pass",
        GARBAGE,
    ),
    Plant(
        "an answer that is under way is lost at the end",
        "http_server.py",
        "_wait_until(server, lambda: not server.active_channels)",
        "",
        SERVER,
    ),
    Plant(
        "the body of a stranger is kept",
        "http_door.py",
        'and not door.has_key(self.headers.get("AUTHORIZATION", ""))',
        "and False",
        SERVER,
    ),
    Plant(
        "a client that does not read delays the end",
        "http_server.py",
        "server.trigger.pull_trigger(partial(_drop_connections, server, is_unread))",
        "pass",
        SERVER,
    ),
    Plant(
        "the last records are the first",
        "testing/records.py",
        "position = max(position, end - limit)",
        "pass",
        TOPICS,
    ),
    Plant(
        "a wait for records reads them again and again",
        "testing/records.py",
        "if there != last[0] and sum(end - begin for begin, end in there.values()) >= count:",
        "if there != last[0]:",
        WAITS,
    ),
    Plant(
        "numbers of faults are given again",
        "testing/broker_loop.py",
        "self._next_fault += 1",
        "self._next_fault = len(self._known_faults)",
        ("tests/testing/test_faults.py",),
    ),
    Plant(
        "messages that came in are those that are there",
        "server/kafka_metrics.py",
        "found[log.topic] += log.messages_in",
        "found[log.topic] += log.end_offset",
        METRICS,
    ),
    Plant(
        "a stream tells all rows again",
        "control/events.py",
        "changed = [row for key, row in rows.items() if before.get(key) != row]",
        "changed = list(rows.values())",
        EVENTS,
    ),
    Plant(
        "a tail skips no records",
        "control/events.py",
        "first = max(begin, end - MOST_RECORDS)",
        "first = begin",
        EVENTS,
    ),
    Plant(
        "the page may load from anywhere",
        "control/page_calls.py",
        "\"default-src 'none'; script-src 'self';",
        "\"default-src *; script-src 'self';",
        EVENTS,
    ),
)
