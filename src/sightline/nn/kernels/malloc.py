"""Freed memory stays with the process, so that a training step finds it again."""

from __future__ import annotations

import ctypes
import sys

# mallopt's parameters in glibc's malloc.h, and the largest values it takes
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_TRIM, LARGEST_MMAP = 2**31 - 1, 32 * 2**20


def keep_freed_memory() -> bool:
    """Keep glibc's allocator from handing freed blocks back; true where it is glibc.

    Every step of training frees and allocates the same hundreds of megabytes. Handed back and
    forth, each page of it is mapped and zeroed anew: about 30,000 page faults, 5 % of the step.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    # both: setting one stops glibc from adapting the other
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP) and mallopt(M_TRIM_THRESHOLD, LARGEST_TRIM))
