"""The files that `pykafkad serve` writes: their options are checked before anything starts."""

from __future__ import annotations

import os

from pykafkad.errors import ConfigError


def ready_file(path: str | None) -> str | None:
    """The absolute path of `--ready-file`. Raises `ConfigError` when its directory does not exist."""
    if not path:
        return None
    path = os.path.abspath(path)
    if not os.path.isdir(os.path.dirname(path)):
        raise ConfigError(f"--ready-file {path}: there is no directory {os.path.dirname(path)}")
    return path


def trace_file(path: str | None) -> str | None:
    """The absolute path of `--trace`. Raises `ConfigError` for a name that tells no format, or without a directory."""
    if path is None:
        return None
    from pykafkad.server import trace_formats

    path = os.path.abspath(path)
    try:
        trace_formats.check_path(path)
    except ValueError as error:
        raise ConfigError(f"--trace {error}") from None
    if not os.path.isdir(os.path.dirname(path)):
        raise ConfigError(f"--trace {path}: there is no directory {os.path.dirname(path)}")
    return path


def audit_file(path: str) -> str:
    """The absolute path of `--audit`; `-` stays. Raises `ConfigError` when its directory does not exist."""
    if path == "-":
        return path
    path = os.path.abspath(path)
    if not os.path.isdir(os.path.dirname(path)):
        raise ConfigError(f"--audit {path}: there is no directory {os.path.dirname(path)}")
    return path
