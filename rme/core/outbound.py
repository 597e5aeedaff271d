"""Calls to other services: the transport of this deployment."""

from django.conf import settings

from rme.transport import Transport, thread_transport


def outbound_transport() -> Transport:
    """Return this thread's transport; it may call public hosts and `OUTBOUND_OPEN_HOSTS`."""
    return thread_transport(settings.OUTBOUND_OPEN_HOSTS)
