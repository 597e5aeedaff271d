"""What errands of test_outgoing.py and test_render_limit.py do instead of rendering."""

import os
import signal
from pathlib import Path

from messaging.content import rendering


def hang(versions):
    sum(range(10**15))  # native code: it looks for no signal, and lets no other thread run


def die(versions):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(versions):
    os._exit(1)  # as when the code of another release can't be loaded


def leave_once(versions):
    mark = Path(os.environ["LEFT"])
    if not mark.exists():
        mark.touch()
        os._exit(0)
    return rendering.render_versions(versions)


def fill_memory(versions):
    return bytearray(2**40)
