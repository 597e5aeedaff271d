"""Memory of processes that live long: Python's cycle collector, and what the system gets back."""

import ctypes
import gc

_THRESHOLDS = (100_000, 20, 50)
_MEGABYTE = 1 << 20
# glibc's names (malloc.h). Setting them ends its own adjusting of both thresholds.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


def spare() -> None:
    """Leave what stands after the start out of all later collections, and collect less often.

    The modules and classes of the whole service are 300,000 objects that never become garbage; to
    walk them again and again costs a worker a tenth of its time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)


def keep_memory() -> bool:
    """Let glibc keep some megabytes that are free; say whether there is one.

    By itself it gives back what a claim has taken, and asks for it again for the next. Each page is
    a fault then, which is dear in a virtual machine.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    mallopt(_MMAP_THRESHOLD, 4 * _MEGABYTE)
    mallopt(_TRIM_THRESHOLD, 32 * _MEGABYTE)
    mallopt(_TOP_PAD, _MEGABYTE)
    return True
