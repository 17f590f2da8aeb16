"""Downloads suites from their registries with the registries' own clients, pinned by checksum, into the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from compat_tests.setup import system_packages
from compat_tests.setup.cache import cache_directory, exclusively
from compat_tests.suites.suite import SuiteUnavailable

BUILD_SECONDS = 1800


def built(name: str, fetch: Callable[[Path], Path], build: Callable[[Path], None] | None = None) -> Path:
    """Source of the suite `name` (with its version) in the cache, downloaded and built on first use.

    `fetch` gets a scratch folder and returns the unpacked source inside it; `build` compiles in place.
    """
    directory = cache_directory() / "suites" / name
    marker = directory / ".built"
    with exclusively(f"suite-{name}"):
        if marker.exists():
            return directory
        shutil.rmtree(directory, ignore_errors=True)
        directory.parent.mkdir(exist_ok=True)
        print(f"set-up: downloading and building the suite {name}", flush=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            # The source moves to its final place before the build, because build systems remember paths.
            os.rename(fetch(Path(scratch)), directory)
        if build is not None:
            build(directory)
        marker.touch()
    return directory


def call(command: list[str], directory: Path, environment: dict[str, str] | None = None) -> str:
    """Run one command of a download or a build; returns its standard output.

    SuiteUnavailable with the end of the output if it fails.
    """
    for program in system_packages.SUITE_PROGRAMS:
        if program.name == command[0] and not system_packages.is_present(program):
            raise SuiteUnavailable(system_packages.how_to_get(program))
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
    )
    if done.returncode != 0:
        raise SuiteUnavailable(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def from_pypi(project: str, version: str, sha256: str) -> Callable[[Path], Path]:
    """The source distribution of a Python project."""

    def fetch(scratch: Path) -> Path:
        (scratch / "requirement.txt").write_text(f"{project}=={version} --hash=sha256:{sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        call([*command, "--require-hashes", "-r", "requirement.txt", "-d", "downloaded"], scratch)
        (archive,) = (scratch / "downloaded").iterdir()
        unpack(archive, scratch / "unpacked")
        (unpacked,) = (scratch / "unpacked").iterdir()
        return unpacked

    return fetch


def unpack(archive: Path, directory: Path) -> None:
    """Unpack the files and folders of a tar archive into the new folder `directory`.

    SuiteUnavailable if a member is anything else, such as a link or a device, or would be outside of `directory`.
    `TarFile.extractall` checks the same with `filter="data"`, but Python has that argument only since 3.11.4.
    """
    directory.mkdir(parents=True)
    with tarfile.open(archive) as opened:
        for member in opened:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts or not (member.isdir() or member.isreg()):
                raise SuiteUnavailable(f"{archive.name} holds {member.name!r}, which is not a file or folder inside it")
            target = directory / name
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            content = opened.extractfile(member)
            assert content is not None  # It is None only for what is neither a file nor a link.
            with content, open(target, "xb") as written:
                shutil.copyfileobj(content, written)
            if member.mode & 0o100:
                target.chmod(0o755)


def from_go_proxy(module: str, version: str, checksum: str) -> Callable[[Path], Path]:
    """The source of a Go module; `checksum` is its h1: sum, as in go.sum."""

    def fetch(scratch: Path) -> Path:
        call(["go", "mod", "init", "fetching"], scratch)
        found = json.loads(call(["go", "mod", "download", "-json", f"{module}@{version}"], scratch))
        if found["Sum"] != checksum:
            raise SuiteUnavailable(f"{module}@{version} has checksum {found['Sum']}, {checksum} was expected")
        copied = scratch / "copied"
        shutil.copytree(found["Dir"], copied)
        # The module cache is read-only, and so is a copy of it.
        for path in [copied, *copied.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        return copied

    return fetch


def from_crates_io(crate: str, version: str, sha256: str) -> Callable[[Path], Path]:
    """The source of a Rust crate."""

    def fetch(scratch: Path) -> Path:
        (scratch / "src").mkdir()
        (scratch / "src" / "lib.rs").touch()
        manifest = '[package]\nname = "fetching"\nversion = "0.0.0"\nedition = "2021"\n'
        manifest += f'[dependencies]\n{crate} = "={version}"\n'
        (scratch / "Cargo.toml").write_text(manifest)
        found = json.loads(call(["cargo", "metadata", "--format-version", "1"], scratch))
        (locked,) = [
            each for each in tomllib.loads((scratch / "Cargo.lock").read_text())["package"] if each["name"] == crate
        ]
        if locked["checksum"] != sha256:
            raise SuiteUnavailable(f"{crate} {version} has checksum {locked['checksum']}, {sha256} was expected")
        (package,) = [each for each in found["packages"] if each["name"] == crate]
        return Path(shutil.copytree(Path(package["manifest_path"]).parent, scratch / "copied"))

    return fetch
