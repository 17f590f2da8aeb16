"""A container engine for testcontainers: the one that already runs, else our own while the tests run.

Our own engine keeps its images in the cache folder and listens on a socket there. It has no bridge and writes no packet
filter rules, so that it does not disturb other engines on the machine; its containers use the machine's own network.
Several test runs may share it: each holds a shared lock while it works, and the last one stops the engine by the
process id in the engine's own file.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import docker

from compat_tests.setup.cache import cache_directory, exclusively

# Many times longer than a start takes, because the machine may be busy.
START_SECONDS = 180.0
STOP_SECONDS = 20.0


class EngineUnavailable(Exception):
    """No container engine answers and none could be started; the message gives the reason."""


class CacheInUse(Exception):
    """Another run uses the engine in the cache."""


class ContainerEngine:
    """A running engine: `client` (docker's Python client) and `close()`; sets DOCKER_HOST for testcontainers.

    `is_ours` is false for an engine that already ran; its containers' ports must be bound.
    """

    def __init__(self) -> None:
        self.client = _answering(None)
        self._users = None
        # Ryuk, testcontainers' cleaner, needs an image of its own from a registry. We stop the containers that we
        # start.
        os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
        self.is_ours = self.client is None
        if self.is_ours:
            self._use_own_engine()

    def _use_own_engine(self) -> None:
        dockerd = shutil.which("dockerd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if dockerd is None or os.geteuid() != 0:
            raise EngineUnavailable(
                "no container engine answers, and dockerd is missing or cannot be started without root"
            )
        root = cache_directory() / "engine"
        root.mkdir(exist_ok=True)
        self._root = root
        address = f"unix://{root}/docker.sock"
        self._users = open(root / "users.lock", "w")  # noqa: SIM115 - held until close()
        with exclusively("engine"):
            fcntl.flock(self._users, fcntl.LOCK_SH)
            self.client = _answering(address) or self._start(dockerd, root, address)
        os.environ["DOCKER_HOST"] = address

    def _start(self, dockerd: str, root: Path, address: str) -> docker.DockerClient:
        command = [dockerd, "--host", address, "--data-root", f"{root}/data", "--exec-root", f"{root}/run"]
        command += ["--pidfile", f"{root}/docker.pid", "--bridge=none", "--iptables=false", "--ip6tables=false"]
        (root / "docker.pid").unlink(missing_ok=True)
        # The log is a file and not the terminal, because it is read only if the engine does not start.
        with open(root / "dockerd.log", "w") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, "PATH": _path_with_sbin()}
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            client = _answering(address)
            if client is not None:
                # Popen's destructor must not wait for the engine: another run may be the one that stops it.
                process.returncode = 0
                return client
            time.sleep(0.2)
        if process.poll() is None:
            process.terminate()
            process.wait(STOP_SECONDS)
        raise EngineUnavailable(f"dockerd did not start:\n{(root / 'dockerd.log').read_text()[-2000:]}")

    def close(self) -> None:
        """Release the engine; stop it if it is ours and no other run uses it."""
        self.client.close()
        if self._users is None:
            return
        with exclusively("engine"):
            fcntl.flock(self._users, fcntl.LOCK_UN)
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            finally:
                os.environ.pop("DOCKER_HOST", None)
            _end(self._root)
        self._users.close()


def end_own_engine() -> None:
    """Stop an engine in the cache that an interrupted run has left running. CacheInUse while another run uses it."""
    root = cache_directory() / "engine"
    if not root.is_dir():
        return
    with exclusively("engine"), open(root / "users.lock", "w") as users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CacheInUse(f"another run uses the container engine in {root}") from None
        if _answering(f"unix://{root}/docker.sock") is not None:
            _end(root)
        unmount_below(root)


def engine_answers() -> bool:
    """Whether an engine answers at the environment's address, so that none has to be installed or started."""
    client = _answering(None)
    if client is not None:
        client.close()
    return client is not None


def _answering(address: str | None) -> docker.DockerClient | None:
    """A client of the engine at `address` (None: the environment's address), or None if nothing answers."""
    try:
        client = docker.DockerClient(base_url=address, timeout=60) if address else docker.from_env(timeout=60)
        client.ping()
    except (docker.errors.DockerException, OSError):
        return None
    return client


def unmount_below(root: Path) -> None:
    """Unmount what an engine that has ended left mounted in its folder, such as a network namespace: as long as it is,
    the folder cannot be removed."""
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for point in sorted((each for each in mounted if each.startswith(f"{root}/")), reverse=True):
        subprocess.run(["umount", point], capture_output=True)


def _end(root: Path) -> None:
    """End the engine by its pid file, and unmount what it leaves."""
    pid_file = root / "docker.pid"
    try:
        pid = int(pid_file.read_text())
        os.kill(pid, signal.SIGTERM)
    except (OSError, ValueError):
        return
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline and pid_file.exists():
        time.sleep(0.1)
    unmount_below(root)


def _path_with_sbin() -> str:
    return os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
