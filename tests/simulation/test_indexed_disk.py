"""The disk of large clusters has the same names as that of all other simulations, whatever is done to both."""

import random

import pytest

from pykafkad.errors import StorageFailure
from tests.simulation.disk import MemoryDisk
from tests.simulation.indexed_disk import IndexedDisk

FOLDERS = ["/d", "/d/a", "/d/b", "/d/a/x"]


def step(chance):
    """Something that a broker does with names, as (method, arguments)."""
    folder, name = chance.choice(FOLDERS), f"f{chance.randrange(4)}"
    path = f"{folder}/{name}"
    return chance.choice(
        [
            ("write", path, b"data"),
            ("replace", path, b"data"),
            ("open", path),
            ("unlink", path),
            ("make_directories", folder),
            ("rename", path, f"{chance.choice(FOLDERS)}/f{chance.randrange(4)}"),
            ("rename", folder, f"/d/moved{chance.randrange(3)}"),
            ("remove_directory", "/d/moved0"),
        ]
    )


def do(disk, method, *arguments):
    """The failure, if it fails."""
    try:
        disk.open(*arguments, create=True) if method == "open" else getattr(disk, method)(*arguments)
    except StorageFailure as failure:
        return str(failure)
    return None


def fits(disk, method, *arguments):
    """Whether the operating system would let it happen."""
    if method == "rename":
        source, target = arguments
        is_there = source in disk.files or source in disk.directories
        return is_there and source not in target and target not in disk.directories and is_in_folder(disk, target)
    if method == "unlink":
        return arguments[0] in disk.files
    if method == "remove_directory":
        # As a partition's, which has no folders in it.
        (path,) = arguments
        return path in disk.directories and not any(each.startswith(path + "/") for each in disk.directories)
    return method == "make_directories" or is_in_folder(disk, arguments[0])


def is_in_folder(disk, path):
    return path.rpartition("/")[0] in disk.directories


@pytest.mark.parametrize("seed", range(20))
def test_names_are_those_of_a_disk_in_memory(seed):
    chance = random.Random(seed)
    usual, indexed = MemoryDisk(), IndexedDisk()
    done = 0
    for _ in range(300):
        method, *arguments = step(chance)
        if not fits(usual, method, *arguments):
            continue
        done += 1
        if chance.random() < 0.05:
            usual.fail("write")
            indexed.fail("write")
        assert do(usual, method, *arguments) == do(indexed, method, *arguments)
        assert indexed.directories == usual.directories and indexed.files.keys() == usual.files.keys()
        for folder in ["/none", *usual.directories - {"/"}]:
            assert indexed.listdir(folder) == usual.listdir(folder), (method, arguments, folder)
    assert done > 50
