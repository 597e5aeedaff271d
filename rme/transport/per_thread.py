"""The transport of each thread of a process."""

import ctypes
import os
import threading
import weakref
from collections.abc import Iterable

from rme.transport.addresses import AddressPolicy
from rme.transport.client import Transport

_local = threading.local()
_all: weakref.WeakSet[Transport] = weakref.WeakSet()
_of_parent: list[Transport] = []
"""Transports of the parent process. A child never frees them: libcurl would then end their
connections (by QUIT and TLS's close), which are still the parent's."""


def thread_transport(open_hosts: Iterable[str] = ()) -> Transport:
    """Return this thread's transport, built on first use; a forked process builds its own.

    `open_hosts` (see `AddressPolicy`) count when it is built.
    """
    transport: Transport | None = getattr(_local, "transport", None)
    if transport is None:
        transport = _local.transport = Transport(AddressPolicy(open_hosts))
        _all.add(transport)
    return transport


def _before_fork() -> None:
    _of_parent.extend(_all)  # of all threads: a child would free those of threads it does not have


def _in_parent() -> None:
    _of_parent.clear()


def _in_child() -> None:
    for transport in _of_parent:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(transport))  # not even when Python exits
    _of_parent.clear()
    _all.clear()
    _local.__dict__.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
