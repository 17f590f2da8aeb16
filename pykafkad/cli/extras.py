"""Packages that a broker does not need: who needs them, which extra brings them, and what is said where one is missing.

A tool for tests must not decide which client its users have, so `pip install pykafkad` brings what serving needs alone.
"""

from __future__ import annotations

import importlib

# Module to (project that has it, oldest version whose interface is used, extra of ours that brings it). The module is
# the one that is imported for use, so that one that is there and broken counts as missing.
PACKAGES = {
    "kafka": ("kafka-python", 3, "cli"),
    "rich.table": ("rich", 0, "cli"),
    "opentelemetry.proto.metrics.v1.metrics_pb2": ("opentelemetry-proto", 0, "telemetry"),
}


def missing(module: str) -> str | None:
    """What keeps `module` from being used and how to install it, as a sentence; None where nothing does."""
    project, oldest, extra = PACKAGES[module]
    remedy = f"pip install 'pykafkad[{extra}]'"
    try:
        version = getattr(importlib.import_module(module), "__version__", None)
    except (ImportError, TypeError) as error:
        # Generated code of protobuf raises TypeError beside a protobuf that is too new for it.
        if isinstance(error, ModuleNotFoundError):
            return f"the package {project} is not installed; {remedy}"
        return f"the package {project} cannot be imported ({error}); {remedy}"
    if oldest and version is not None and int(version.partition(".")[0]) < oldest:
        return f"{project} {version} is installed, and {oldest} or newer is needed; {remedy}"
    return None
