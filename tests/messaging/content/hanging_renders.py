"""What errands of test_outgoing.py and test_render_limit.py do instead of rendering."""

import os
import signal


def hang(versions):
    sum(range(10**15))  # native code: it looks for no signal, and lets no other thread run


def die(versions):
    os.kill(os.getpid(), signal.SIGKILL)
