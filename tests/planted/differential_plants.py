"""Bugs to plant where two brokers are compared."""

from __future__ import annotations

from tests.planted.plant import Plant

COMPARE = ("tests/differential/test_compare.py",)
REPLAY = ("tests/differential/test_replay.py",)
RECORD = ("tests/differential/test_record.py",)

PLANTS = (
    Plant(
        "recordings hold the passwords of logins",
        "differential/tee.py",
        "and key in trace_secrets.KEYS:",
        "and False:",
        RECORD,
    ),
    Plant(
        "batches keep the first broker's producer id",
        "differential/values.py",
        'twin("producer_id", header.producer_id)',
        "header.producer_id",
        COMPARE,
    ),
    Plant(
        "producers under another name are not translated",
        "differential/values.py",
        "if name.endswith(suffix):",
        "if name == suffix:",
        COMPARE,
    ),
    Plant(
        "rows that only the second broker has are not told",
        "differential/comparison.py",
        "return found, lonely + [(self._row_name(key), False) for key in others if key not in ones]",
        "return found, lonely",
        COMPARE,
    ),
    Plant(
        "records are not compared",
        "differential/comparison.py",
        "if left[offset] != right[offset]:",
        "if False:",
        COMPARE,
    ),
    Plant(
        "clients leave the tee by the addresses of brokers",
        "differential/tee.py",
        "value.host, value.port = self.host, self.port",
        "pass",
        COMPARE,
    ),
    Plant(
        "a recording of any format is read",
        "differential/recording.py",
        "if found != FORMAT:",
        "if False:",
        REPLAY,
    ),
    Plant(
        "a replay goes on with a connection that was closed",
        "differential/replay.py",
        "self._links.pop(event.connection).close()",
        "pass",
        REPLAY,
    ),
)
