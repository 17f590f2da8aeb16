"""`python container/root.py DIRECTORY`: gathers the files of the container image from the machine that runs this.

They are the Python that runs this with its standard library, the shared libraries that it needs, the packages that the
broker needs, the broker, busybox, and what is in `hooks/`. With `--context` they are in a folder beside the last
stage of the Dockerfile: `docker build DIRECTORY` makes the image where no registry can be reached.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "pykafkad"

# What the broker and its control API import that Python does not have.
DISTRIBUTIONS = ("cramjam", "crc32c", "waitress")
PACKAGES = "opt/pykafkad"

# Parts of the standard library that a broker never imports, most of its size.
LEFT_OUT = (
    "__pycache__", "config-*", "curses", "dist-packages", "distutils", "ensurepip", "idlelib", "lib2to3", "libpython*",
    "pydoc_data", "site-packages", "sqlite3", "test", "tests", "tkinter", "turtle*", "turtledemo", "venv", "xmlrpc",
)  # fmt: skip
MODULES_LEFT_OUT = re.compile(
    r"_codecs_(cn|hk|jp|kr|tw|iso2022)|_ctypes_test|_curses|_dbm|_gdbm|_sqlite3|_test|_tkinter|_xxtest|nis|ossaudiodev|"
    r"readline|xxlimited"
)

WRITABLE = ("etc/confluent/docker", "etc/kafka/docker", "home/kafka", "tmp", "var/lib/kafka", "var/lib/zookeeper")
"""Where start scripts write, and the broker. The image runs as any user."""


def gather(directory: Path) -> None:
    """Fill the directory. Raises SystemExit with a sentence where something is missing."""
    if any(directory.iterdir()) if directory.exists() else False:
        raise SystemExit(f"{directory}: is not empty")
    busybox = shutil.which("busybox")
    if busybox is None:
        raise SystemExit("busybox is missing: apt-get install busybox-static (Debian, Ubuntu)")
    if "not a dynamic executable" not in _listing(Path(busybox)):
        raise SystemExit(f"{busybox}: must be linked statically: apt-get install busybox-static (Debian, Ubuntu)")
    shell = _copied(Path(busybox), directory, Path("/bin/busybox"))
    _python(directory)
    _packages(directory / PACKAGES)
    shutil.copytree(HERE / "hooks", directory, dirs_exist_ok=True)
    _applets(shell, directory)
    _accounts(directory)
    for path in WRITABLE:
        (directory / path).mkdir(parents=True, exist_ok=True)
        for each in (directory / path, *(directory / path).iterdir()):
            each.chmod(0o1777 if path == "tmp" else 0o777)
    _libraries(directory)


def _python(directory: Path) -> None:
    program = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    prefix = Path(sys.base_prefix)
    _copied(program, directory, prefix / "bin" / program.name)
    (directory / str(prefix)[1:] / "bin" / "python3").symlink_to(program.name)
    standard = Path(sysconfig.get_path("stdlib", vars={"base": str(prefix), "installed_base": str(prefix)}))
    target = directory / str(standard)[1:]
    # Debian has a few of them elsewhere, behind links.
    shutil.copytree(standard, target, ignore=shutil.ignore_patterns(*LEFT_OUT), ignore_dangling_symlinks=True)
    for module in (target / "lib-dynload").iterdir():
        if MODULES_LEFT_OUT.match(module.name):
            module.unlink()
    _compile(target, directory)


def _packages(target: Path) -> None:
    shutil.copytree(PACKAGE, target / "pykafkad", ignore=shutil.ignore_patterns("__pycache__"))
    for name in DISTRIBUTIONS:
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            raise SystemExit(f"the package {name} is missing: pip install '{HERE.parent}[control]'") from None
        for file in files:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                path = target / file
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), path)
    _compile(target, target.parents[1])


def _compile(folder: Path, directory: Path) -> None:
    """Byte code that is taken without a look at the source: a start compiles nothing, and reads less."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(folder, quiet=2, stripdir=str(directory), prependdir="/", invalidation_mode=mode)


def _applets(shell: Path, directory: Path) -> None:
    """Every program of busybox that is not there otherwise, and `bash`, by which start scripts are run."""
    names = subprocess.run([str(shell), "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        if name != "busybox" and not (directory / "usr/bin" / name).exists():
            (directory / "bin" / name).symlink_to("busybox")
    bash = directory / "bin" / "bash"
    bash.write_text(
        '#!/bin/sh\n# Scripts of tests name bash, and use nothing of it that this shell lacks.\nexec /bin/sh "$@"\n'
    )
    bash.chmod(0o755)


def _accounts(directory: Path) -> None:
    (directory / "etc" / "passwd").write_text(
        "root:x:0:0:root:/tmp:/bin/sh\nkafka:x:1000:1000:kafka:/home/kafka:/bin/sh\n"
    )
    (directory / "etc" / "group").write_text("root:x:0:\nkafka:x:1000:\n")


def _libraries(directory: Path) -> None:
    """The shared libraries of every program and module in the directory, and the loader, under their own paths."""
    found = set()
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF":
            listing = _listing(path)
            if "not found" in listing:
                raise SystemExit(f"{path}: needs a library that is not there:\n{listing}")
            found.update(re.findall(r"(?:=> )?(/\S+) \(0x", listing))
    for library in sorted(found):
        # A package may bring libraries of its own, which are there by now.
        if not (directory / library[1:]).exists() and not library.startswith(str(directory)):
            _copied(Path(library), directory, Path(library))


def _listing(path: Path) -> str:
    done = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def _copied(source: Path, directory: Path, target: Path) -> Path:
    path = directory / str(target)[1:]
    path.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(source, path))


def dockerfile() -> str:
    """The last stage of the Dockerfile, with the files beside it in `root`."""
    text = (HERE / "Dockerfile").read_text()
    return text[text.index("FROM scratch") :].replace("--from=build /image ", "root ")


def main() -> None:
    """With one argument gather the files there; with `--context` make a folder that is ready for `docker build`."""
    words = sys.argv[1:]
    if len(words) == 1 and not words[0].startswith("-"):
        gather(Path(words[0]))
    elif len(words) == 2 and words[0] == "--context":
        context = Path(words[1])
        gather(context / "root")
        (context / "Dockerfile").write_text(dockerfile())
    else:
        raise SystemExit("usage: python container/root.py DIRECTORY, or --context DIRECTORY")


if __name__ == "__main__":
    main()
