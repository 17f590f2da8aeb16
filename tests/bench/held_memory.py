"""Memory that stays with the machine while something is measured on a virtual machine.

Some hosts take free pages back and give them again when they are touched. A page then costs far more than the copy of
what is written to it (4.5 ms for each MB were seen, beside 0.25 ms for the write of 1 MB to a file), and which broker
meets such pages is chance. Hosts take whole blocks of pages back (`page_reporting` of Linux: 2 MB). So `hold` touches
the memory and gives back every other piece of half a megabyte: what the brokers write then goes to pages that the host
has given already, and that it does not take."""

import mmap
import os
from contextlib import contextmanager

from . import needs

PIECE_BYTES = 512 * 1024
PAGE_BYTES = mmap.PAGESIZE


@contextmanager
def hold(size_gb):
    """Hold half of `size_gb` gigabytes meanwhile, and leave the other half free between the pieces."""
    size_bytes = int(size_gb * 1024**3) // (2 * PIECE_BYTES) * 2 * PIECE_BYTES
    if not size_bytes:
        yield
        return
    free_bytes = os.sysconf("SC_AVPHYS_PAGES") * PAGE_BYTES
    if size_bytes > free_bytes:
        raise needs.Missing(f"--hold-memory {size_gb}: {free_bytes / 1024**3:.1f} GB are free")
    with mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        # Pages of 2 MB could not be given back in part.
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        # A process that the bench starts does not copy the tables of so many pages.
        memory.madvise(mmap.MADV_DONTFORK)
        content = b"\1" * PIECE_BYTES
        for position in range(0, size_bytes, PIECE_BYTES):
            memory[position : position + PIECE_BYTES] = content
        for position in range(0, size_bytes, 2 * PIECE_BYTES):
            memory.madvise(mmap.MADV_DONTNEED, position, PIECE_BYTES)
        yield
