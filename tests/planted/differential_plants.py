"""Bugs to plant where two brokers are compared."""

from __future__ import annotations

from tests.planted.plant import Plant

COMPARE = ("tests/differential/test_compare.py",)
GROUPS = ("tests/differential/test_groups.py",)
SECURED = ("tests/differential/test_secured.py",)
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
        "value.host, value.port = here",
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
    Plant(
        "members keep the first broker's epochs",
        "differential/group_members.py",
        "setattr(row, field, member.epochs[1])",
        "setattr(row, field, member.epochs[0])",
        GROUPS,
    ),
    Plant(
        "an assignment that comes later is a difference",
        "differential/group_members.py",
        "member.beats_apart > PATIENT_BEATS and",
        "member.beats_apart or",
        GROUPS,
    ),
    Plant(
        "brokers are not asked for a login",
        "cli/secured.py",
        "login.try_login(made, address, login_at(host))",
        "pass",
        SECURED,
    ),
)
