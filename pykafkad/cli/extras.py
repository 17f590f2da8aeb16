"""Packages that a broker does not need, the extra that installs each, and the error when one is missing.

A test tool must not decide which client library its users have, so `pip install pykafkad` only installs what serving
needs.
"""

from __future__ import annotations

import importlib

# Module to (project that has it, oldest version whose interface is used, extra that installs it). It is the module that
# is imported for use, so that a package that is present but broken counts as missing.
PACKAGES = {
    "kafka": ("kafka-python", 3, "cli"),
    "rich.table": ("rich", 0, "cli"),
    "cryptography.x509": ("cryptography", 0, "tls"),
    "jwt": ("pyjwt", 0, "oauth"),
    "gssapi": ("gssapi", 0, "gssapi"),
    "avro.schema": ("avro", 0, "registry"),
    "jsonschema.validators": ("jsonschema", 0, "registry"),
    "grpc_tools.protoc": ("grpcio-tools", 0, "registry"),
    "google.protobuf.descriptor_pb2": ("protobuf", 0, "registry"),
    "waitress": ("waitress", 0, "control"),
    "pyarrow": ("pyarrow", 17, "table"),
    "opentelemetry.proto.metrics.v1.metrics_pb2": ("opentelemetry-proto", 0, "telemetry"),
}


def missing(module: str) -> str | None:
    """The reason why `module` cannot be used, and how to install it, as a sentence; None when it can be used."""
    project, oldest, extra = PACKAGES[module]
    remedy = f"pip install 'pykafkad[{extra}]'"
    try:
        version = getattr(importlib.import_module(module), "__version__", None)
    except (ImportError, OSError, TypeError) as error:
        # protobuf's generated code raises TypeError when the installed protobuf is too new for it, and gssapi OSError
        # without the system's library.
        if isinstance(error, ModuleNotFoundError):
            return f"the package {project} is not installed; {remedy}"
        return f"the package {project} cannot be imported ({error}); {remedy}"
    if oldest and version is not None and int(version.partition(".")[0]) < oldest:
        return f"{project} {version} is installed, and {oldest} or newer is needed; {remedy}"
    return None
