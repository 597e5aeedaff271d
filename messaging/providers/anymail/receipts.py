"""Receipts of email services: django-anymail's webhook views check and parse the callbacks.

A view is created for the call; only its validators and its parser are used. What django-anymail
does not normalize (an open by a machine, a bounce of a dead address) is read by our own table.
"""

import base64
import binascii
import hashlib
import hmac
import io
import re
import warnings
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from uuid import UUID

import orjson
import structlog
from anymail.exceptions import AnymailConfigurationError, AnymailError, AnymailWarning
from anymail.signals import AnymailTrackingEvent, EventType, RejectReason
from anymail.webhooks.base import AnymailBaseWebhookView
from django.core.handlers.wsgi import WSGIRequest
from django.utils.module_loading import import_string

from messaging.providers import callbacks
from messaging.providers.anymail.refusals import clean
from messaging.providers.anymail.services import BASIC, NEVER, SERVICES, SVIX, Service, ServiceName
from rme.core import exact_json, ids
from rme.core.outcomes import OptOut
from rme.core.provider import CallbackRequest, DeliveryReceipt, UnknownCode, bounces, http
from rme.core.provider.automated_clients import is_machine

log = structlog.get_logger(__name__)

ATTEMPT = "rme_attempt"
"""The metadata key of the attempt's id (`attempt` is one of SendGrid's own)."""
SIGNED_AGE = timedelta(hours=26)
"""A call that was signed longer ago is a replay; services retry for a day."""
TYPES: dict[str, str | None] = {
    EventType.QUEUED: "sent",
    EventType.SENT: "sent",
    EventType.DELIVERED: "delivered",
    EventType.DEFERRED: "deferred",
    EventType.OPENED: "open",
    EventType.CLICKED: "click",
    EventType.COMPLAINED: "complained",
    EventType.UNSUBSCRIBED: "unsubscribed",
    EventType.BOUNCED: "bounced",
    EventType.REJECTED: "failed",
    EventType.FAILED: "failed",
    EventType.AUTORESPONDED: None,
    EventType.SUBSCRIBED: None,
    EventType.INBOUND: None,
    EventType.INBOUND_FAILED: None,
}
"""Our event type by django-anymail's; None for no news. A missing one is counted as unknown."""
DEAD = frozenset({RejectReason.INVALID, RejectReason.BOUNCED})
"""Reasons of a service's own refusal that mean a dead address."""

_MALFORMED = (
    *(AnymailError, AnymailConfigurationError),
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
    *(AssertionError, OSError),
)
"""What django-anymail's views raise for calls that no service sends."""

# They warn about a missing secret; `is_authentic` accepts no call without one.
warnings.filterwarnings("ignore", category=AnymailWarning)


def is_authentic(name: ServiceName, secret: str, callback: CallbackRequest) -> bool:
    """Return whether a call has its service's signature, and is recent."""
    check = SERVICES[name].check
    if check == NEVER or not secret or callback.method != "POST":
        return False
    if check == SVIX:
        return _is_signed_by_svix(secret, callback)
    try:
        _view(name, secret, callback.url).run_validators(_request(callback))
        signed_at = _signed_at(name, callback)
    except _MALFORMED:
        return False
    return signed_at is None or callbacks.is_recent(signed_at, callback, SIGNED_AGE)


def read(
    name: ServiceName, secret: str, callback: CallbackRequest
) -> list[DeliveryReceipt | UnknownCode]:
    """Return the receipts of a call. In an array, each event is read by itself."""
    service = SERVICES[name]
    if service.check == NEVER:
        return []
    receipts = []
    for event in _events(name, secret, callback):
        try:
            receipt = _receipt(name, service, event)
        except _MALFORMED:
            log.warning("callback.odd", kind=f"anymail.{name}")
            continue
        if receipt and _is_recent_event(event.timestamp, callback):
            receipts.append(receipt)
    return receipts


def accepts_key(name: ServiceName, secret: str) -> bool:
    """Return whether a view accepts a key, and whether a public key can be parsed."""
    try:
        view = _view(name, secret, "")
        key = getattr(view, "webhook_key", None)
        if name == "postal" and isinstance(key, str):
            return base64.b64decode(key, validate=True)[:1] == b"\x30"  # a DER sequence
    except _MALFORMED:
        return False
    return True


@lru_cache(maxsize=64)
def _class(view: str) -> type[AnymailBaseWebhookView]:
    view_class: type[AnymailBaseWebhookView] = import_string(f"anymail.webhooks.{view}")
    return view_class


def _view(name: ServiceName, secret: str, url: str) -> AnymailBaseWebhookView:
    service = SERVICES[name]
    arguments = {"webhook_secret" if service.check in (BASIC, SVIX) else service.check: secret}
    if name == "mandrill":
        arguments["webhook_url"] = url  # it signs the address that it was given
    return _class(service.view)(**arguments)


def _request(callback: CallbackRequest) -> WSGIRequest:
    """Return a call as a Django request, for the view."""
    environ: dict[str, object] = {
        "REQUEST_METHOD": callback.method,
        "PATH_INFO": "/",
        "QUERY_STRING": callback.query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "443",
        "CONTENT_TYPE": callback.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(callback.body)),
        "wsgi.input": io.BytesIO(callback.body),
        "wsgi.url_scheme": "https",
    }
    for header, value in callback.headers.items():
        environ.setdefault(f"HTTP_{header.upper().replace('-', '_')}", value)
    return WSGIRequest(environ)


# --- checks that django-anymail lacks -------------------------------------------------------------


def _signed_at(name: ServiceName, callback: CallbackRequest) -> datetime | None:
    """Return the signed time; None for a service that signs none."""
    match name:
        case "sendgrid":
            text = callback.headers["x-twilio-email-event-webhook-timestamp"]
        case "mailgun":
            text = http.text_of(http.value_at(orjson.loads(callback.body), "signature.timestamp"))
        case _:
            return None
    return datetime.fromtimestamp(float(text), UTC)


def svix_key(secret: str) -> bytes | None:
    """Return the bytes of a key like `whsec_…`; None if it is not one."""
    kind, _, text = secret.partition("_")
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if kind == "whsec" and len(key) >= 16 else None


def _is_signed_by_svix(secret: str, callback: CallbackRequest) -> bool:
    key = svix_key(secret)
    header_values = [
        callback.headers.get(f"svix-{name}", "") for name in ("id", "timestamp", "signature")
    ]
    identifier, timestamp, signatures = header_values
    if key is None or not identifier or not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return False
    content = f"{identifier}.{timestamp}.".encode() + callback.body
    expected = b"v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
    signature_list = signatures[:2000].split(" ")
    if not any(hmac.compare_digest(each.encode(), expected) for each in signature_list):
        return False
    return callbacks.is_recent(datetime.fromtimestamp(int(timestamp), UTC), callback, SIGNED_AGE)


# --- reading --------------------------------------------------------------------------------------


def _events(
    name: ServiceName, secret: str, callback: CallbackRequest
) -> Iterable[AnymailTrackingEvent]:
    try:
        return _parsed(name, secret, callback)
    except _MALFORMED:
        parts = _elements(callback.body)
    if len(parts) < 2:
        log.warning("callback.odd", kind=f"anymail.{name}")
        return []
    return [event for part in parts for event in _element_events(name, secret, callback, part)]


def _elements(body: bytes) -> list[object]:
    try:
        value = exact_json.loads(body)
    except orjson.JSONDecodeError:
        return []
    return value if isinstance(value, list) else []


def _element_events(
    name: ServiceName, secret: str, callback: CallbackRequest, part: object
) -> list[AnymailTrackingEvent]:
    """Return the events of one element of an array with a malformed element."""
    try:
        return _parsed(name, secret, replace(callback, body=orjson.dumps([part])))
    except _MALFORMED:
        log.warning("callback.odd", kind=f"anymail.{name}")
        return []


def _parsed(
    name: ServiceName, secret: str, callback: CallbackRequest
) -> list[AnymailTrackingEvent]:
    view = _view(name, secret or "none", callback.url)
    events: list[AnymailTrackingEvent] = view.parse_events(_request(callback))
    return events


def _receipt(
    name: ServiceName, service: Service, event: AnymailTrackingEvent
) -> DeliveryReceipt | UnknownCode | None:
    attempt_id = _attempt(event)
    if attempt_id is None:
        return None
    kind = TYPES.get(event.event_type, "")
    if kind == "" and not _says(event, service.not_sent):
        return UnknownCode(f"{name}.{event.event_type}")
    if kind is None:
        return None
    if kind == "complained" and _says(event, service.no_complaint):
        return None
    kind = kind or "failed"
    soft, opt_out = False, None
    if kind in ("bounced", "failed"):
        opt_out = _opt_out(service, event)
        kind, soft = ("failed", False) if opt_out else _bounce(service, event, kind)
    machine = kind in ("open", "click") and _by_machine(service, event)
    return DeliveryReceipt(
        attempt_id,
        kind,
        _reason(event) if kind in _WITH_REASON else None,
        soft=soft,
        machine=machine,
        opt_out=opt_out,
    )


_WITH_REASON = frozenset({"bounced", "failed", "deferred", "complained"})
"""Types whose reason is stored."""


def _attempt(event: AnymailTrackingEvent) -> UUID | None:
    metadata = event.metadata if isinstance(event.metadata, dict) else {}
    texts = [metadata.get(ATTEMPT), *(event.tags if isinstance(event.tags, list) else ())]
    attempt_ids = (ids.parse_reported(text) for text in texts if isinstance(text, str))
    return next((each for each in attempt_ids if each), None)


def _bounce(service: Service, event: AnymailTrackingEvent, kind: str) -> tuple[str, bool]:
    """Return the type of a bounce (`bounced` for a dead address), and whether it is soft."""
    text = _said(service, event)
    if kind == "failed":  # the service's own refusal
        return bounces.of_bounce(text, hard=event.reject_reason in DEAD, soft=False)
    words = [str(http.value_at(event.esp_event, path) or "") for path in service.bounce]
    word = " ".join(filter(None, words)) if len(words) > 1 else "".join(words)
    if service.hard:
        is_hard = event.reject_reason == RejectReason.INVALID or _matches(service.hard, word)
    else:  # only the server's words are clear
        bounce_class = bounces.of_report(text)
        is_hard = bounce_class is not None and bounce_class.suppresses
    return bounces.of_bounce(text, hard=is_hard, soft=_matches(service.soft, word))


def _said(service: Service, event: AnymailTrackingEvent) -> str:
    """Return the codes and words of the recipient's server."""
    values = [http.value_at(event.esp_event, path) for path in service.said]
    return " ".join(
        filter(None, (http.text_of(each, 1000) for each in (*values, event.mta_response)))
    )


def _opt_out(service: Service, event: AnymailTrackingEvent) -> OptOut | None:
    """Return the earlier opt-out for which the service did not send, or None."""
    if event.reject_reason == RejectReason.UNSUBSCRIBED or _says(event, service.unsubscribed):
        return OptOut.UNSUBSCRIBED
    return OptOut.COMPLAINT if _says(event, service.complained) else None


def _says(event: AnymailTrackingEvent, rule: tuple[str, str]) -> bool:
    """Return whether an event's value at a rule's path matches its pattern."""
    path, pattern = rule
    word = str(http.value_at(event.esp_event, path) or "") if path else ""
    return bool(path) and _matches(pattern, word[:500])


def _matches(pattern: str, word: str) -> bool:
    return bool(pattern and re.fullmatch(pattern, word))


def _by_machine(service: Service, event: AnymailTrackingEvent) -> bool:
    if _says(event, service.machine):
        return True
    agent = event.user_agent
    return isinstance(agent, str) and bool(agent) and is_machine(agent)


def _reason(event: AnymailTrackingEvent) -> str | None:
    texts = (event.description, event.reject_reason, event.mta_response)
    return clean(" ".join(http.text_of(text, 300) for text in texts if text)) or None


def _is_recent_event(moment: object, callback: CallbackRequest) -> bool:
    """Return whether an event is recent, or without a time; otherwise it is a replay."""
    if not isinstance(moment, datetime):
        return True
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return callbacks.is_recent(aware, callback, callbacks.RECEIPT_AGE)
