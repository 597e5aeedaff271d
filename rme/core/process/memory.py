"""Memory of long-running processes: Python's cycle collector, and glibc's thresholds."""

import atexit
import ctypes
import gc
import mmap

_THRESHOLDS = (100_000, 20, 50)
_MEGABYTE = 1 << 20
_STACK = 8 * _MEGABYTE
# glibc's names (malloc.h). Once set, glibc does not adjust the thresholds any more.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


def require_room() -> None:
    """Raise MemoryError if this process has no room for another thread.

    The pool of connections opens them in threads of its own. For want of memory these fail, and
    its callers only learn that no connection came in time.
    """
    try:
        mmap.mmap(-1, _STACK).close()
    except OSError as error:
        raise MemoryError(f"no room for a thread ({error})") from error


def collect_less_often() -> None:
    """Collect less often than Python by default, and not at the end of the process.

    A start makes 300,000 objects that stay, and each collection traverses those made before: that
    is half of the time of a command that only starts and ends.
    """
    gc.set_threshold(*_THRESHOLDS)
    atexit.register(gc.freeze)


def freeze_startup_objects() -> None:
    """Exclude all objects of the start from later collections.

    The modules and classes of the service are 300,000 objects that never become garbage; to
    traverse them again and again costs a worker a tenth of its time.
    """
    gc.collect()
    gc.freeze()


def keep_memory() -> bool:
    """Let glibc keep some megabytes of free memory; return whether there is a glibc.

    By default it returns the memory of each batch to the system and requests it again for the next.
    Each page is a page fault then, which is slow in a virtual machine.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    mallopt(_MMAP_THRESHOLD, 4 * _MEGABYTE)
    mallopt(_TRIM_THRESHOLD, 32 * _MEGABYTE)
    mallopt(_TOP_PAD, _MEGABYTE)
    return True
