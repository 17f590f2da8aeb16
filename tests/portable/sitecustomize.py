"""Takes away what only Linux has, in every Python process that finds this folder on its path.

`PYTHONPATH=tests/portable python -m pytest tests --quick` runs the tests, and the brokers that they start, on the
stand-ins of `pykafkad/platform_calls.py`."""

import builtins
import os
import select

_TAKEN = (
    (select, ("epoll",)),
    (os, ("pipe2", "sendfile", "fdatasync", "posix_fallocate", "preadv", "pwritev", "memfd_create", "O_DIRECTORY")),
)

for _module, _names in _TAKEN:
    for _name in _names:
        if hasattr(_module, _name):
            delattr(_module, _name)
_import = builtins.__import__


def _import_all_but_fcntl(name, globals=None, *arguments, **named):
    if name == "fcntl" and (globals or {}).get("__name__", "").startswith("pykafkad."):
        raise ImportError("taken away")
    return _import(name, globals, *arguments, **named)


# The tools of the tests may lock files; the package may not.
builtins.__import__ = _import_all_but_fcntl
