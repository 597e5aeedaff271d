"""The transport of this thread of this process."""

import ctypes
import os
import threading
import weakref
from collections.abc import Iterable

from rme.transport.addresses import AddressPolicy
from rme.transport.client import Transport

_local = threading.local()
_all: weakref.WeakSet[Transport] = weakref.WeakSet()
_held: list[Transport] = []
"""What must outlive a fork. In the child it is never freed, for libcurl would then say goodbye
(QUIT, TLS's close) on connections that are the parent's, and end them for it."""


def thread_transport(open_hosts: Iterable[str] = ()) -> Transport:
    """Return this thread's transport, made on first use; a forked process makes its own.

    `open_hosts` (see `AddressPolicy`) count when it is made.
    """
    transport: Transport | None = getattr(_local, "transport", None)
    if transport is None:
        transport = _local.transport = Transport(AddressPolicy(open_hosts))
        _all.add(transport)
    return transport


def _before_fork() -> None:
    _held.extend(_all)  # of all threads: a child frees those of threads that it does not have


def _in_parent() -> None:
    _held.clear()


def _in_child() -> None:
    for transport in _held:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(transport))  # beyond the interpreter's own end
    _held.clear()
    _all.clear()
    _local.__dict__.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
