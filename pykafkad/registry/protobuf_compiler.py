"""Protobuf's own compiler, protoc of the package grpcio-tools: what it makes of a .proto file, or why it is none.

It runs as a process with a time limit: a schema is a stranger's text, and its errors are written to standard error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from functools import lru_cache

from google.protobuf import descriptor_pb2, message

LIMIT_SECONDS = 20
KEPT = 128
"""So many results are remembered: one registration asks for the same schemas several times."""

MOST_ERRORS_CHARACTERS = 2000

_PROGRAM = """import sys
sys.path.append(sys.argv.pop(1))
from grpc_tools import protoc
sys.exit(protoc.main(sys.argv))"""
"""It looks at no other packages, which takes a third of the time."""

_LOG = re.compile(r"WARNING: All log messages|[IWEF]\d{4} \d")
"""How lines begin that protoc tells its developers."""

_NOT = frozenset("\\\"'")


@lru_cache(maxsize=KEPT)
def compiled(text: str, references: tuple[tuple[str, str], ...]) -> bytes:
    """The FileDescriptorSet of a file with everything that it imports, the file itself last. `references` are the
    names and texts of what it may import besides Google's files. Raises ValueError."""
    names = [name for name, _ in references]
    main = next(name for number in range(len(names) + 1) if (name := f"schema{number or ''}.proto") not in names)
    with tempfile.TemporaryDirectory(prefix="pykafkad-proto-") as folder:
        for name, content in [*references, (main, text)]:
            _write(folder, name, content)
        result = os.path.join(folder, "result")
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, *_place(), f"-I{folder}", "--include_imports"]
        try:
            done = subprocess.run(
                [*command, f"--descriptor_set_out={result}", main],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LIMIT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise ValueError(f"it takes protoc more than {LIMIT_SECONDS} s") from None
        if done.returncode:
            lines = done.stderr.decode(errors="replace").replace(f"{folder}/", "").splitlines()
            told = "\n".join(line for line in lines if not _LOG.match(line))
            raise ValueError(f"it is no Protobuf schema: {told[:MOST_ERRORS_CHARACTERS] or 'protoc does not take it'}")
        with open(result, "rb") as file:
            return file.read()


def _place() -> tuple[str, str]:
    """Where the package is, and the option that names Google's files."""
    import grpc_tools

    package = os.path.dirname(os.path.abspath(grpc_tools.__file__))
    return os.path.dirname(package), f"-I{os.path.join(package, '_proto')}"


def check_name(name: str) -> None:
    """Raises ValueError for what no import can name, or what leads elsewhere."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or len(name) > 200 or not name.isprintable() or set(name) & _NOT:
        raise ValueError(f"the reference {name[:50]!r} is no name that an import can have, such as dir/file.proto")


def _write(folder: str, name: str, content: str) -> None:
    """A file in the folder, and nowhere else. Raises ValueError."""
    check_name(name)
    path = os.path.join(folder, *name.split("/"))
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    except (OSError, UnicodeEncodeError) as error:
        raise ValueError(f"the file {name!r} cannot be given to protoc: {error}") from None


def files(content: bytes) -> list[descriptor_pb2.FileDescriptorProto]:
    """Those of a FileDescriptorSet. Raises ValueError."""
    try:
        return list(descriptor_pb2.FileDescriptorSet.FromString(content).file)
    except message.DecodeError as error:
        raise ValueError(f"it is no Protobuf schema: {error}") from None
