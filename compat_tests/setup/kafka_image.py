"""A container image with Apache Kafka: the public one if it can be pulled, else one built from the JDK and the jars.

Both have `java` on the PATH, `sh`, and Kafka's jars in `/opt/kafka/libs`, so one command starts either.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import docker

from compat_tests.setup.cache import exclusively
from compat_tests.setup.kafka_jars import KAFKA_VERSION, fetch_jars

PUBLIC_IMAGE = f"apache/kafka:{KAFKA_VERSION}"
# The number grows with every change to the image's build, so that an older cached image is not used.
BUILT_IMAGE = f"pykafkad-compat/kafka:{KAFKA_VERSION}-2"
REGISTRY_SECONDS = 10
LIBRARIES_OF = ("bin/java", "lib/server/libjvm.so", "lib/libjava.so", "lib/libnet.so", "lib/libnio.so", "lib/libjli.so")
# The codecs' native libraries inside the jars need these parts of the C library.
C_LIBRARY_PARTS = ("libpthread.so.0", "libdl.so.2", "libm.so.6", "librt.so.1")
SHELL_APPLETS = ("sh", "cat", "ls", "rm", "mkdir", "sleep", "kill", "tail")


class ImageUnavailable(Exception):
    """The image can neither be pulled nor built here; the message gives the reason."""


def kafka_image(client: docker.DockerClient) -> tuple[str, str]:
    """`(image name, its source)`; pulls or builds the image if the engine does not have it yet."""
    with exclusively("kafka-image"):
        if _holds(client, PUBLIC_IMAGE):
            return PUBLIC_IMAGE, "the public image"
        if _holds(client, BUILT_IMAGE):
            return BUILT_IMAGE, "an image built here"
        if _can_pull() and _pulled(client):
            return PUBLIC_IMAGE, "the public image"
        print(
            "set-up: no registry offers the public image of Kafka; building one from the JDK and Kafka's jars",
            flush=True,
        )
        build_image(client)
        return BUILT_IMAGE, "an image built here"


def _holds(client: docker.DockerClient, image: str) -> bool:
    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        return False
    return True


def _can_pull() -> bool:
    """Ask the registry only for the image's description: it answers or fails within seconds."""
    asking = docker.APIClient(base_url=os.environ.get("DOCKER_HOST"), timeout=REGISTRY_SECONDS)
    try:
        asking.inspect_distribution(PUBLIC_IMAGE)
    except (docker.errors.DockerException, OSError):
        return False
    finally:
        asking.close()
    return True


def _pulled(client: docker.DockerClient) -> bool:
    """Pull the public image. A registry may answer first, and then refuse the pull or break off."""
    try:
        client.images.pull(PUBLIC_IMAGE)
    except (docker.errors.DockerException, OSError) as error:
        print(f"set-up: the public image of Kafka could not be pulled: {error}", flush=True)
        return False
    return True


def build_image(client: docker.DockerClient) -> None:
    """Build `BUILT_IMAGE` from scratch: a jlinked runtime, the libraries it loads, a busybox shell, Kafka's jars."""
    for program in ("jlink", "ldd", "busybox"):
        if shutil.which(program) is None:
            raise ImageUnavailable(f"{program} is missing, needed to build the image")
    jars = fetch_jars()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        runtime = root / "opt" / "jre"
        runtime.parent.mkdir(parents=True)
        link = ["jlink", "--add-modules", "ALL-MODULE-PATH", "--strip-debug", "--no-header-files", "--no-man-pages"]
        subprocess.run([*link, "--compress=2", "--output", str(runtime)], check=True, capture_output=True)
        shutil.copytree(jars, root / "opt" / "kafka" / "libs")
        for library in _shared_libraries(runtime / part for part in LIBRARIES_OF):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
        _copy_shell(root)
        (Path(scratch) / "Dockerfile").write_text("FROM scratch\nCOPY root /\nENV PATH=/opt/jre/bin:/bin\n")
        try:
            client.images.build(path=scratch, tag=BUILT_IMAGE, rm=True)
        except docker.errors.DockerException as error:
            raise ImageUnavailable(f"the engine could not build the image: {error}") from error


def _shared_libraries(binaries: Iterable[Path]) -> set[str]:
    """Absolute paths that `ldd` lists for `binaries`, with the dynamic loader, without our own runtime."""
    found = set()
    for binary in binaries:
        listing = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=True).stdout
        found.update(re.findall(r"(/[^\s]+)\s+\(0x", listing))
    c_library = next(Path(path) for path in found if "/libc.so" in path)
    found.update(str(c_library.with_name(part)) for part in C_LIBRARY_PARTS if c_library.with_name(part).exists())
    return {path for path in found if "/opt/jre/" not in path}


def _copy_shell(root: Path) -> None:
    (root / "bin").mkdir(exist_ok=True)
    shutil.copy(shutil.which("busybox") or "", root / "bin" / "busybox")
    for applet in SHELL_APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/tmp:/bin/sh\n")
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    (root / "tmp").mkdir(mode=0o1777)
