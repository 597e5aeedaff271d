"""What email services report: django-anymail's webhook views check and read it.

A view is made for the call, and of it only its checks and its reading are used. What services
report in words of their own (a machine that opened, a bounce of a dead address) is read beside it.
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
from typing import Any
from uuid import UUID

import orjson
import structlog
from anymail.exceptions import AnymailConfigurationError, AnymailError, AnymailWarning
from anymail.signals import AnymailTrackingEvent, EventType, RejectReason
from anymail.webhooks.base import AnymailBaseWebhookView
from django.core.handlers.wsgi import WSGIRequest
from django.utils.module_loading import import_string

from messaging.providers import callbacks
from messaging.providers.anymail.answers import clean
from messaging.providers.anymail.services import BASIC, NEVER, SERVICES, SVIX, Service, ServiceName
from rme.core import ids
from rme.core.automated_clients import is_machine
from rme.core.provider import CallbackRequest, DeliveryReceipt, UnknownCode, http

log = structlog.get_logger(__name__)

ATTEMPT = "rme_attempt"
"""The name under which our id of the attempt travels (`attempt` is one of SendGrid's own)."""
SIGNED_AGE = timedelta(hours=26)
"""A call that was signed longer ago is a replay; services call again for a day."""
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
"""By django-anymail's types: ours. None: no news. One that is missing is counted as unknown."""
DEAD = frozenset({RejectReason.INVALID, RejectReason.BOUNCED})
"""Why a service itself refused: the address is dead, as it knows from before."""

_ODD = (
    *(AnymailError, AnymailConfigurationError),
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
    *(AssertionError, OSError),
)
"""What django-anymail's views raise for what no service sends."""

# What they warn of at every start is settled here: no report is taken without a secret.
warnings.filterwarnings("ignore", category=AnymailWarning)


def authentic(name: ServiceName, secret: str, callback: CallbackRequest) -> bool:
    """Say whether a call is signed as its service signs, and not long ago."""
    check = SERVICES[name].check
    if check == NEVER or not secret or callback.method != "POST":
        return False
    if check == SVIX:
        return _is_signed_by_svix(secret, callback)
    try:
        _view(name, secret, callback.url).run_validators(_request(callback))
        signed_at = _signed_at(name, callback)
    except _ODD:
        return False
    return signed_at is None or callbacks.is_recent(signed_at, callback, SIGNED_AGE)


def read(
    name: ServiceName, secret: str, callback: CallbackRequest
) -> list[DeliveryReceipt | UnknownCode]:
    """Read what a call reports. Of an array each event stands for itself."""
    service = SERVICES[name]
    if service.check == NEVER:
        return []
    reports = []
    for event in _events(name, secret, callback):
        try:
            report = _report(name, service, event)
        except _ODD:
            log.warning("callback.odd", kind=f"anymail.{name}")
            continue
        if report and _is_news(event.timestamp, callback):
            reports.append(report)
    return reports


def fits(name: ServiceName, secret: str) -> bool:
    """Say whether a view can be made with a key, and a key of the public kind be read."""
    try:
        view = _view(name, secret, "")
        key = getattr(view, "webhook_key", None)
        if name == "postal" and isinstance(key, str):
            return base64.b64decode(key, validate=True)[:1] == b"\x30"  # a DER sequence
    except _ODD:
        return False
    return True


@lru_cache(maxsize=64)
def _class(view: str) -> type[AnymailBaseWebhookView]:
    found: type[AnymailBaseWebhookView] = import_string(f"anymail.webhooks.{view}")
    return found


def _view(name: ServiceName, secret: str, url: str) -> AnymailBaseWebhookView:
    service = SERVICES[name]
    given = {"webhook_secret" if service.check in (BASIC, SVIX) else service.check: secret}
    if name == "mandrill":
        given["webhook_url"] = url  # it signs the address that it was given
    return _class(service.view)(**given)


def _request(callback: CallbackRequest) -> WSGIRequest:
    """Give a call the form that Django's views read."""
    environ: dict[str, Any] = {
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


# --- what the checks leave open -------------------------------------------------------------------


def _signed_at(name: ServiceName, callback: CallbackRequest) -> datetime | None:
    """Give the time that is part of a signature; None for a service that signs none."""
    match name:
        case "sendgrid":
            text = callback.headers["x-twilio-email-event-webhook-timestamp"]
        case "mailgun":
            text = http.text_of(_at(orjson.loads(callback.body), "signature.timestamp"))
        case _:
            return None
    return datetime.fromtimestamp(float(text), UTC)


def svix_key(secret: str) -> bytes | None:
    """Read a key like `whsec_…`; None for what is none."""
    kind, _, text = secret.partition("_")
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if kind == "whsec" and len(key) >= 16 else None


def _is_signed_by_svix(secret: str, callback: CallbackRequest) -> bool:
    key = svix_key(secret)
    named = [callback.headers.get(f"svix-{name}", "") for name in ("id", "timestamp", "signature")]
    identifier, timestamp, signatures = named
    if key is None or not identifier or not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return False
    content = f"{identifier}.{timestamp}.".encode() + callback.body
    right = b"v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
    told = signatures[:2000].split(" ")
    if not any(hmac.compare_digest(each.encode(), right) for each in told):
        return False
    return callbacks.is_recent(datetime.fromtimestamp(int(timestamp), UTC), callback, SIGNED_AGE)


# --- reading --------------------------------------------------------------------------------------


def _events(
    name: ServiceName, secret: str, callback: CallbackRequest
) -> Iterable[AnymailTrackingEvent]:
    try:
        return _parsed(name, secret, callback)
    except _ODD:
        parts = _parts(callback.body)
    if len(parts) < 2:
        log.warning("callback.odd", kind=f"anymail.{name}")
        return []
    return [event for part in parts for event in _alone(name, secret, callback, part)]


def _parts(body: bytes) -> list[Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    return value if isinstance(value, list) else []


def _alone(
    name: ServiceName, secret: str, callback: CallbackRequest, part: Any
) -> list[AnymailTrackingEvent]:
    """Read one part of an array in which something is odd: that must not lose all else."""
    try:
        return _parsed(name, secret, replace(callback, body=orjson.dumps([part])))
    except _ODD:
        log.warning("callback.odd", kind=f"anymail.{name}")
        return []


def _parsed(
    name: ServiceName, secret: str, callback: CallbackRequest
) -> list[AnymailTrackingEvent]:
    view = _view(name, secret or "none", callback.url)
    found: list[AnymailTrackingEvent] = view.parse_events(_request(callback))
    return found


def _report(
    name: ServiceName, service: Service, event: AnymailTrackingEvent
) -> DeliveryReceipt | UnknownCode | None:
    attempt_id = _attempt(event)
    if attempt_id is None:
        return None
    if (kind := TYPES.get(event.event_type, "")) == "":
        return UnknownCode(f"{name}.{event.event_type}")
    if kind is None:
        return None
    soft = False
    if kind == "bounced":
        kind, soft = _bounce(service, event)
    elif kind == "failed" and event.reject_reason in DEAD:
        kind = "bounced"
    machine = kind in ("open", "click") and _by_machine(service, event)
    return DeliveryReceipt(
        attempt_id,
        kind,
        _reason(event) if kind in _TOLD else None,
        soft=soft,
        machine=machine,
    )


_TOLD = frozenset({"bounced", "failed", "deferred", "complained"})
"""Of what the service's words are kept."""


def _attempt(event: AnymailTrackingEvent) -> UUID | None:
    metadata = event.metadata if isinstance(event.metadata, dict) else {}
    texts = [metadata.get(ATTEMPT), *(event.tags if isinstance(event.tags, list) else ())]
    found = (ids.parse(text) for text in texts if isinstance(text, str))
    return next((each for each in found if each), None)


def _bounce(service: Service, event: AnymailTrackingEvent) -> tuple[str, bool]:
    """Say what a bounce is (`bounced` for a dead address), and whether it is soft."""
    words = [str(_at(event.esp_event, path) or "") for path in service.bounce]
    word = " ".join(filter(None, words)) if len(words) > 1 else "".join(words)
    if event.reject_reason == RejectReason.INVALID or _is(service.hard, word):
        return "bounced", False
    return "failed", _is(service.soft, word)


def _is(pattern: str, word: str) -> bool:
    return bool(pattern and re.fullmatch(pattern, word))


def _by_machine(service: Service, event: AnymailTrackingEvent) -> bool:
    path, pattern = service.machine
    if path and re.fullmatch(pattern, str(_at(event.esp_event, path) or "")):
        return True
    agent = event.user_agent
    return isinstance(agent, str) and bool(agent) and is_machine(agent)


def _reason(event: AnymailTrackingEvent) -> str | None:
    texts = (event.description, event.reject_reason, event.mta_response)
    return clean(" ".join(http.text_of(text, 300) for text in texts if text)) or None


def _at(value: Any, path: str) -> Any:
    """Give what stands at a path of names; None where nothing does."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _is_news(moment: object, callback: CallbackRequest) -> bool:
    """Say whether an event is of the last days, if the service tells its time: else a replay."""
    if not isinstance(moment, datetime):
        return True
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return callbacks.is_recent(aware, callback, callbacks.RECEIPT_AGE)
