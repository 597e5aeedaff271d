"""Listeners: one thread in each worker process keeps the sessions on which providers report.

Every few seconds it reads which accounts exist, and has their providers keep a session; paused
accounts too, since receipts come later. The account of an organization that is elsewhere has no
session here. What arrives is stored before it is answered, and applied like the callbacks that come
over HTTP.
"""

import threading
from collections.abc import Callable, Collection, Sequence
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
from rme.core.errors import Misdirected, Unavailable
from rme.core.provider import CallbackRequest
from rme.tenants import organizations
from rme.transport import smpp
from rme.transport.addresses import AddressPolicy

log = structlog.get_logger(__name__)

EVERY_SECONDS = 5.0
CLOSE_SECONDS = 3.0
METHOD = "LINK"
"""The stored method of what came over a session; over HTTP only GET and POST are accepted."""
RequestCallbacks = Callable[[], None]
"""Requests a worker that applies stored callbacks."""

_stopped = threading.Event()
_opening = threading.Lock()
"""Held while a session is opened, and while all are closed: none may open after that."""
_listening: dict[str, CallbackAccount] = {}
"""The accounts that this process listens for, by their public id."""


def start(request_callbacks: RequestCallbacks) -> None:
    """Start the thread."""
    _stopped.clear()
    threading.Thread(target=_run, args=(request_callbacks,), name="listeners", daemon=True).start()


def stop() -> None:
    """Stop the thread, and close the sessions."""
    with _opening:
        _stopped.set()
        _listening.clear()
    smpp.close_all(CLOSE_SECONDS)


def _run(request_callbacks: RequestCallbacks) -> None:
    while not _stopped.is_set():
        try:
            open_sessions(request_callbacks, _stopped.is_set)
        except (DatabaseError, InterfaceError) as error:
            log.warning("listeners.database_unavailable", error=type(error).__name__)
        finally:
            connections.close_all()
        _stopped.wait(EVERY_SECONDS)


def open_sessions(
    request_callbacks: RequestCallbacks, is_stopped: Callable[[], bool] = lambda: False
) -> None:
    """Have the provider of every listening account keep a session, unless stopped.

    The sessions of accounts that are gone, or elsewhere, are closed.
    """
    kinds = [kind for kind, provider in providers.REGISTRY.items() if provider.listens]
    policy = AddressPolicy(settings.OUTBOUND_OPEN_HOSTS)
    rows = ProviderAccount.objects.filter(organizations.served(leaving=True), kind__in=kinds)
    live = rows.exclude(state=ProviderAccount.State.DRAFT).order_by("id")
    public_ids = [str(each) for each in live.values_list("public_id", flat=True)]
    _close_others(public_ids)
    for public_id in public_ids:
        account = callbacks.find_account(public_id)
        if account is None:  # its settings are invalid, which is logged
            continue
        with _opening:
            if is_stopped():
                return
            _listening[public_id] = account
            store = partial(store_received, account, request_callbacks)
            account.provider.listen(store, policy)


def _close_others(public_ids: Collection[str]) -> None:
    """Close the sessions of all accounts but these. Two accounts may share one: it opens again."""
    with _opening:
        for public_id in _listening.keys() - set(public_ids):
            _listening.pop(public_id).provider.stop_listening()


def store_received(
    account: CallbackAccount, request_callbacks: RequestCallbacks, bodies: Sequence[bytes]
) -> bool:
    """Store what came over an account's session; return whether it is stored.

    It is not while the organization is elsewhere, or moves: the SMSC delivers again
    what is not confirmed. Equal bodies are stored each: two persons' STOP may be equal byte for
    byte, and a receipt changes nothing the second time.
    """
    try:
        now = clock.now()
        calls = [
            CallbackRequest(account.url, METHOD, ids.new_text_id(), {}, body, now)
            for body in bodies
        ]
        callbacks.store(account, *calls)
    except (DatabaseError, InterfaceError, Misdirected, Unavailable) as error:
        name = type(error).__name__
        log.warning("listeners.not_stored", account_id=account.account_id, error=name)
        return False
    finally:
        close_old_connections()
    request_callbacks()
    return True
