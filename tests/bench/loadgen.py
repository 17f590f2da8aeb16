"""Builds and runs `loadgen.c`, and turns its answer into the figures of one run."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import subprocess
from pathlib import Path

from compat_tests.setup.cache import cache_directory
from compat_tests.setup.system_packages import C_COMPILER, OPENSSL

from .histogram import percentile_ns
from .needs import require

SOURCE = Path(__file__).with_name("loadgen.c")


class LoadFailed(Exception):
    """The generator gave up, or answers carried errors."""


def build(*, tls=False):
    """The path of the compiled generator; compiles it when its source has changed."""
    return compiled(SOURCE, SOURCE.with_name("loadgen_tls.h"), options=("-DTLS",) if tls else ())


def compiled(source, *more_sources, options=()):
    """The path of the program of a source, and of what it includes, compiled with `options`; with any it uses
    OpenSSL."""
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in (source, *more_sources)))
    digest.update(repr(options).encode())
    program = cache_directory() / f"{source.stem}-{digest.hexdigest()[:16]}"
    if not program.exists():
        require(C_COMPILER)
        partial = program.with_suffix(f".{os.getpid()}")
        command = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", *options, "-o", partial, source]
        if options:
            require(OPENSSL)
            command += ["-lssl", "-lcrypto"]
        subprocess.run(command, check=True)
        partial.rename(program)
    return program


def write_templates(path, templates):
    """Writes `wire_bytes.Template`s in the generator's file format."""
    with open(path, "wb") as file:
        file.write(struct.pack("=I", len(templates)))
        for t in templates:
            file.write(struct.pack("=IIIIqI", len(t.request), t.error_at, t.least_size, t.value_at, t.value, t.broker))
            file.write(t.request)


def figures(raw):
    """The figures of one run from the generator's JSON: rates, latencies (us), CPU, as a dict."""
    seconds, answers = raw["seconds"], raw["answers"]
    megabytes = max(raw["sent_bytes"], raw["received_bytes"]) / 1e6
    cpu = raw["broker_cpu_seconds"]
    latency_us = {
        name: None if (ns := percentile_ns(raw["buckets"], fraction)) is None else ns / 1e3
        for name, fraction in (("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999))
    }
    return {
        "requests_per_s": answers / seconds,
        "mb_per_s": megabytes / seconds,
        **latency_us,
        "cpu_us_per_request": cpu * 1e6 / answers if answers else None,
        "cpu_ms_per_mb": cpu * 1e3 / megabytes if megabytes else None,
        "cpu_percent": 100 * cpu / seconds,
        "generator_cpu_percent": 100 * raw["generator_cpu_seconds"] / seconds,
    }


def _listed(numbers):
    """One number or several, as the generator takes them."""
    return ",".join(map(str, numbers)) if isinstance(numbers, (list, tuple)) else str(numbers)


def run(
    port, templates_path, *, connections, depth=1, seconds=3.0, warmup=0.0, rate=0.0, requests=0, pid=(), tls=False
):
    """Loads localhost:`port` and returns `figures`; raises LoadFailed when an answer was an error.

    `port` may be a list, the n-th of which gets the templates with `broker` n; the connections are dealt out to them.
    `pid`, or each of a list, is a broker's, whose processor time counts.
    `rate` (requests/s) paces the load; `requests` ends it after so many on each connection, whatever `seconds` says.
    `tls` says that the port speaks it.
    """
    limit = seconds if not requests else 3600.0
    arguments = {
        "port": _listed(port),
        "templates": templates_path,
        "connections": connections,
        "depth": depth,
        "seconds": limit,
        "warmup": warmup,
        "rate": rate,
        "requests": requests,
        "pid": _listed(pid),
    }
    command = [build(tls=tls), *(f"--{name}={value}" for name, value in arguments.items())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit + warmup + 60, check=False)
    if done.returncode:
        raise LoadFailed(done.stderr.strip() or f"the generator ended with {done.returncode}")
    raw = json.loads(done.stdout)
    if raw["errors"]:
        raise LoadFailed(
            f"{raw['errors']} of {raw['errors'] + raw['answers']} answers were errors; {raw['first_error']}"
        )
    return figures(raw)


@contextlib.contextmanager
def idle_connections(port, templates_path, connections):
    """Holds `connections` that were each answered once, for the length of the `with` block."""
    command = [build(), f"--port={port}", f"--templates={templates_path}", f"--connections={connections}", "--idle"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        if process.stdout.readline() != "ready\n":
            raise LoadFailed(process.stderr.read().strip())
        try:
            yield
        finally:
            process.stdin.close()
            process.wait(timeout=60)
