"""Listeners: one thread in each worker process keeps the connections on which providers report.

Every few seconds it reads which accounts exist, and has their providers keep a connection; paused
accounts too, since receipts come later. What arrives is stored before it is answered, and applied
like the callbacks that come over HTTP.
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
CLOSE_SECONDS = 3.0
METHOD = "LINK"
"""The method of what came over a connection; over HTTP only GET and POST are accepted."""
RequestCallbacks = Callable[[], None]
"""Requests a worker that applies stored callbacks."""

_stopped = threading.Event()
_opening = threading.Lock()
"""Held while a connection is opened, and while all are closed: none may open after that."""


def start(request_callbacks: RequestCallbacks) -> None:
    """Start the thread."""
    _stopped.clear()
    threading.Thread(target=_run, args=(request_callbacks,), name="listeners", daemon=True).start()


def stop() -> None:
    """Stop the thread, and close the connections."""
    with _opening:
        _stopped.set()
    smpp.close_all(CLOSE_SECONDS)


def _run(request_callbacks: RequestCallbacks) -> None:
    while not _stopped.is_set():
        try:
            open_links(request_callbacks, _stopped.is_set)
        except (DatabaseError, InterfaceError) as error:
            log.warning("listeners.database_unavailable", error=type(error).__name__)
        finally:
            connections.close_all()
        _stopped.wait(EVERY_SECONDS)


def open_links(
    request_callbacks: RequestCallbacks, is_stopped: Callable[[], bool] = lambda: False
) -> None:
    """Have the provider of every listening account keep a connection, unless stopped."""
    kinds = [kind for kind, provider in providers.REGISTRY.items() if provider.listens]
    policy = AddressPolicy(settings.OUTBOUND_OPEN_HOSTS)
    rows = ProviderAccount.objects.filter(kind__in=kinds)
    live = rows.exclude(state=ProviderAccount.State.DRAFT)
    for public_id in live.order_by("id").values_list("public_id", flat=True):
        account = callbacks.find_account(str(public_id))
        if account is None:  # its settings are invalid, which is logged
            continue
        with _opening:
            if is_stopped():
                return
            store = partial(store_received, account, request_callbacks)
            account.provider.listen(store, policy)


def store_received(
    account: CallbackAccount, request_callbacks: RequestCallbacks, bodies: Sequence[bytes]
) -> bool:
    """Store what came over an account's connection; return whether it is stored.

    Equal bodies are stored each: two persons' STOP may be equal byte for byte, and a receipt
    changes nothing the second time.
    """
    try:
        now = clock.now()
        calls = [
            CallbackRequest(account.url, METHOD, ids.new_text_id(), {}, body, now)
            for body in bodies
        ]
        callbacks.store(account, *calls)
    except (DatabaseError, InterfaceError) as error:
        name = type(error).__name__
        log.warning("listeners.not_stored", account_id=account.account_id, error=name)
        return False
    finally:
        close_old_connections()
    request_callbacks()
    return True
