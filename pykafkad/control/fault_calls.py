"""Routes for what goes wrong on purpose."""

from __future__ import annotations

from typing import Any

from pykafkad.control import schemas, values
from pykafkad.control.api_errors import NOT_FOUND, TOO_MANY, ApiError
from pykafkad.control.route import Control, Route
from pykafkad.server.injected_fault import KINDS
from pykafkad.testing.faults import API_NAMES, ERROR_NAMES, Fault
from pykafkad.testing.options import unknown
from pykafkad.testing.waits import until

MOST_FAULTS = 1000
"""So many are kept, ended ones too; before there are more, those that have ended are forgotten."""

_PARAMETERS = {row.parameter for row in KINDS.values() if row.parameter}
_DEFAULTS = {"times": 1, "probability": 1.0, "seed": 0}
_IN_FAULT = {"number": schemas.integer(minimum=1)}


def _or_null(schema: schemas.Schema) -> schemas.Schema:
    return schemas.nullable({**schema, "default": None})


FAULT = schemas.record(
    {
        "number": schemas.integer("of the fault, for the other routes"),
        "text": schemas.text("what was set"),
        "count": schemas.integer("how many requests have met it"),
        "passed": schemas.integer("how many were for it and passed, for its probability"),
        "has_ended": schemas.boolean("whether no request will meet it any more"),
    }
)

NEW_FAULT = schemas.record(
    {
        "kind": schemas.text("; ".join(f"{row.name}: {row.text}" for row in KINDS.values()), enum=list(KINDS)),
        "apis": schemas.array(schemas.text(enum=list(API_NAMES)), "whose requests meet it", minItems=1, maxItems=200),
        "error": _or_null(schemas.text("for `answer`", enum=[*ERROR_NAMES, None])),
        "delay_ms": _or_null(schemas.number("for `delay` and `delay_answer`", minimum=0, maximum=3_600_000)),
        "at_byte": _or_null(schemas.integer("for `cut_answer`, the size field included", minimum=0)),
        "versions": _or_null(
            schemas.array(schemas.integer(minimum=0), "the first and the last", minItems=2, maxItems=2)
        ),
        "client_id": _or_null(schemas.text()),
        "topic": _or_null(schemas.text()),
        "partition": _or_null(schemas.integer(minimum=0)),
        "group": _or_null(schemas.text()),
        "transactional_id": _or_null(schemas.text()),
        "broker": _or_null(schemas.integer("the node id of the one of several brokers that it is met at", minimum=0)),
        "times": schemas.nullable(schemas.integer("how often; null: until it is released", default=1, minimum=1)),
        "probability": schemas.number("of each request that matches", default=1.0, exclusiveMinimum=0, maximum=1),
        "seed": schemas.integer("of what decides by the probability", default=0),
    }
)
_FILTERS = tuple(name for name in NEW_FAULT["properties"] if name not in {"kind", "apis", *_PARAMETERS})


def _shown(number: int, fault: Fault) -> dict[str, Any]:
    return {
        "number": number,
        "text": str(fault),
        "count": fault.count,
        "passed": fault.passed,
        "has_ended": fault.has_ended,
    }


def list_faults(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """All since the start or the last reset."""
    with control.lock:
        found = dict(control.number_faults())
    return {"faults": [_shown(number, fault) for number, fault in found.items()]}


def add_fault(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """One more."""
    kind, needed = given["kind"], KINDS[given["kind"]].parameter
    for name in sorted(_PARAMETERS):
        if (given[name] is None) == (name == needed):
            what = f"{kind} needs {name}" if name == needed else f"{kind} takes no {name}"
            raise ApiError(400, what, f"body.{name}", needed or "nothing")
    filters = {name: given[name] for name in _FILTERS if given[name] != _DEFAULTS.get(name)}
    if "versions" in filters:
        filters["versions"] = tuple(filters["versions"])
    operations = control.operations
    with control.lock:
        if len(operations.faults.every) >= MOST_FAULTS:
            operations.faults.forget_ended()
        if len(operations.faults.every) >= MOST_FAULTS:
            raise ApiError(TOO_MANY, f"there are {MOST_FAULTS} faults", "", "fewer: release some")
        parameter = None if needed is None else given[needed]
        # Before the new one, which then has the last number.
        control.number_faults()
        fault = operations.faults.set(kind, given["apis"], parameter, **filters)
        number = next(number for number, each in control.number_faults().items() if each is fault)
    return _shown(number, fault)


def _find(control: Control, given: dict[str, Any]) -> Fault:
    with control.lock:
        found = control.number_faults()
        if given["number"] not in found:
            what = unknown("fault", given["number"], map(str, found))
            raise ApiError(NOT_FOUND, what, "path number", ", ".join(map(str, list(found)[:100])) or "none")
        return found[given["number"]]


def look_at_fault(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """One of them."""
    return _shown(given["number"], _find(control, given))


def wait_for_fault(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """Until it has happened so often."""
    fault = _find(control, given)

    def look() -> int:
        # Counts can still be read when the broker has ended.
        if not control.operations.is_running:
            raise control.ended()
        return fault.count

    wanted = f"request number {given['count']} that met the fault ({fault})"
    with control.waiting():
        until(look, lambda seen: seen >= given["count"], wanted, given["timeout_seconds"], lambda seen: f"{seen} did")
    return _shown(given["number"], fault)


def release_fault(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """One of them."""
    fault = _find(control, given)
    fault.release()
    return _shown(given["number"], fault)


def release_faults(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """All of them."""
    control.operations.faults.release_all()
    return list_faults(control, {})


_LIST = schemas.record({"faults": schemas.array(FAULT)})

ROUTES = (
    Route("listFaults", "GET", "/faults", "all faults with how often each has happened", list_faults, _LIST),
    Route(
        "addFault",
        "POST",
        "/faults",
        "has something go wrong for requests from now on: an error, a delay, a loss, a close, wrong records",
        add_fault,
        FAULT,
        body=NEW_FAULT,
        status=201,
    ),
    Route("releaseFaults", "DELETE", "/faults", "ends all faults", release_faults, _LIST),
    Route(
        "getFault", "GET", "/faults/{number}", "one fault with how often it has happened", look_at_fault, FAULT,
        in_path=_IN_FAULT,
    ),
    Route(
        "waitForFault",
        "POST",
        "/faults/{number}/wait",
        "waits until a fault has happened so often in all",
        wait_for_fault,
        FAULT,
        in_path=_IN_FAULT,
        body=schemas.record({"count": schemas.integer(default=1, minimum=1), "timeout_seconds": values.TIMEOUT}),
    ),
    Route(
        "releaseFault", "DELETE", "/faults/{number}", "ends a fault", release_fault, FAULT, in_path=_IN_FAULT
    ),
)  # fmt: skip
