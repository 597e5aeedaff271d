"""Hearing what comes over the links that providers keep: in each worker process, one thread.

It looks every few seconds which accounts there are, paused ones too, as reports come later, and has
their providers keep a link. What comes is in the database before it is answered, and applied like
what comes by HTTP.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from messaging import providers
from messaging.feedback import callbacks
from messaging.feedback.callbacks import CallbackAccount
from messaging.models import ProviderAccount
from rme.core import ids
from rme.core.db import clock
from rme.core.provider import CallbackRequest
from rme.transport import AddressPolicy, smpp

log = structlog.get_logger(__name__)

EVERY_SECONDS = 5.0
GOODBYE_SECONDS = 3.0
METHOD = "LINK"
"""Of a call that came over a link: nobody can make one over HTTP, which knows but GET and POST."""
Ring = Callable[[], None]

_stopped = threading.Event()
_turn = threading.Lock()
"""Of who opens links and who closes all: none may be opened behind that one's back."""


def start(ring: Ring) -> None:
    """Listen from now on, in a thread; `ring` calls whoever applies what was heard."""
    _stopped.clear()
    threading.Thread(target=_keep, args=(ring,), name="listening", daemon=True).start()


def stop() -> None:
    """Listen no more, and unbind."""
    with _turn:
        _stopped.set()
    smpp.close_all(GOODBYE_SECONDS)


def _keep(ring: Ring) -> None:
    while not _stopped.is_set():
        try:
            open_links(ring, _stopped.is_set)
        except (DatabaseError, InterfaceError) as error:
            log.warning("listening.database_away", error=type(error).__name__)
        finally:
            connections.close_all()
        _stopped.wait(EVERY_SECONDS)


def open_links(ring: Ring, is_over: Callable[[], bool] = lambda: False) -> None:
    """Have every account that listens keep its link, until it is over."""
    kinds = [kind for kind, provider in providers.REGISTRY.items() if provider.listens]
    policy = AddressPolicy(settings.OUTBOUND_OPEN_HOSTS)
    named = ProviderAccount.objects.filter(kind__in=kinds).values_list("public_id", flat=True)
    for public_id in named.order_by("id"):
        whose = callbacks.find_account(str(public_id))
        if whose is None:  # its settings are broken, which the log says
            continue
        with _turn:
            if is_over():
                return
            whose.provider.listen(partial(store_received, whose, ring), policy)


def store_received(whose: CallbackAccount, ring: Ring, heard: Sequence[bytes]) -> bool:
    """Keep what came over an account's link; say whether it is safe.

    What comes twice is kept twice: two people's STOP may be the same to the byte, and a report
    changes nothing the second time.
    """
    try:
        now = clock.now()
        calls = [
            CallbackRequest(whose.url, METHOD, ids.new_text_id(), {}, body, now) for body in heard
        ]
        callbacks.store(whose, *calls)
    except (DatabaseError, InterfaceError) as error:
        log.warning("listening.not_kept", account_id=whose.account_id, error=type(error).__name__)
        return False
    finally:
        close_old_connections()
    ring()
    return True
