"""Email services: settings of an account, what they answer, and what they report, signed as their
documentation says."""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import orjson
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from messaging.providers.anymail.services import SERVICES, ServiceName
from tests.fakes.providers import FORM, Call

SECRET = "a secret of more than thirty-two characters"
LOGIN = f"rme:{SECRET}"
SVIX = "whsec_" + base64.b64encode(SECRET.encode()).decode()
JSON = {"content-type": "application/json"}


@lru_cache(maxsize=1)
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@lru_cache(maxsize=1)
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def public(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    """Give a public key as services show it: DER in base64."""
    der = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(der).decode()


def settings(service: ServiceName, **given: str) -> dict[str, str]:
    """Give the settings of an account whose reports are taken."""
    own = {
        "mailjet": {"secret_key": "second"},
        "scaleway": {"project_id": "p-1"},
        "postal": {"base_url": "https://postal.example", "callback_secret": public(rsa_key())},
        "unisender_go": {"base_url": "https://go1.example/en/transactional/api/v1"},
        "resend": {"callback_secret": SVIX},
        "sendgrid": {"callback_secret": public(ec_key())},
        "mailersend": {"callback_secret": SECRET},
        "mailgun": {"callback_secret": SECRET},
        "mailtrap": {"callback_secret": SECRET},
        "mandrill": {"callback_secret": SECRET},
    }.get(service, {})
    if service in BASIC:
        own = {**own, "callback_secret": LOGIN}
    return {"service": service, "api_key": "key-of-the-account", **own, **given}


BASIC: tuple[ServiceName, ...] = ("brevo", "mailjet", "postmark", "sparkpost")
REPORTING: list[ServiceName] = [name for name, service in SERVICES.items() if service.check]

# What the services answer when they take a message, in their documentation.
TAKEN: dict[ServiceName, tuple[int, bytes, dict[str, str], str]] = {
    "brevo": (201, b'{"messageId": "<2026@smtp-relay>"}', {}, "<2026@smtp-relay>"),
    "mailersend": (202, b"", {"X-Message-Id": "5e42957d", "Content-Type": "text/html"}, "5e42957d"),
    "mailgun": (200, b'{"id": "<2026@mg>", "message": "Queued. Thank you."}', {}, "<2026@mg>"),
    "mailjet": (
        200,
        b'{"Messages": [{"Status": "success", "To": [{"Email": "to@x.test", "MessageUUID": "u",'
        b' "MessageID": 456}]}]}',
        {},
        "456",
    ),
    "mailtrap": (200, b'{"success": true, "message_ids": ["m-1"]}', {}, "m-1"),
    "mandrill": (
        200,
        b'[{"email": "to@x.test", "status": "queued", "_id": "abc"}]',
        {},
        "abc",
    ),
    "postal": (
        200,
        b'{"status": "success", "data": {"message_id": "x",'
        b' "messages": {"to@x.test": {"id": 7, "token": "t"}}}}',
        {},
        "7",
    ),
    "postmark": (
        200,
        b'{"To": "to@x.test", "MessageID": "b7bc2f4a", "ErrorCode": 0, "Message": "OK"}',
        {},
        "b7bc2f4a",
    ),
    "resend": (200, b'{"id": "49a3999c"}', {}, "49a3999c"),
    "scaleway": (
        200,
        b'{"emails": [{"id": "s-1", "mail_rcpt": "to@x.test", "status": "new"}]}',
        {},
        "s-1",
    ),
    "sendgrid": (202, b"", {"X-Message-Id": "sg"}, ""),  # the id is made before
    "sparkpost": (
        200,
        b'{"results": {"total_rejected_recipients": 0, "total_accepted_recipients": 1,'
        b' "id": "11668787484950529"}}',
        {},
        "11668787484950529",
    ),
    "unisender_go": (
        200,
        b'{"status": "success", "job_id": "1ZymBc", "emails": ["to@x.test"]}',
        {},
        "",
    ),
}


# --- reports ---------------------------------------------------------------------------

WORDS = ("delivered", "hard", "soft", "open", "click", "complained", "unsubscribed", "deferred")
Event = dict[str, Any]


def _brevo(attempt: str, word: str) -> Event:
    names = {"hard": "hard_bounce", "soft": "soft_bounce", "open": "unique_opened"}
    names |= {"complained": "spam", "unsubscribed": "unsubscribe"}
    return {
        "event": names.get(word, word),
        "email": "to@x.test",
        "message-id": "<2026@smtp-relay>",
        "ts_epoch": int(time.time() * 1000),
        "X-Mailin-custom": orjson.dumps({"rme_attempt": attempt}).decode(),
        "reason": "550 to@x.test unknown",
    }


def _mailersend(attempt: str, word: str) -> Event:
    names = {"hard": "hard_bounced", "soft": "soft_bounced", "open": "opened", "click": "clicked"}
    names |= {"complained": "spam_complaint", "deferred": "deferred"}
    kind = names.get(word, word)
    morph = {"object": "recipient_bounce", "reason": "550 to@x.test unknown"}
    return {
        "type": f"activity.{kind}",
        "data": {
            "type": kind,
            "created_at": _iso(),
            "email": {
                "message": {"id": "62fb66be"},
                "recipient": {"email": "to@x.test"},
                "tags": [attempt],
            },
            "morph": morph if word in ("hard", "soft") else None,
        },
    }


def _mailgun(attempt: str, word: str) -> Event:
    names = {"hard": "failed", "soft": "failed", "deferred": "failed", "open": "opened"}
    names |= {"click": "clicked"}
    data: Event = {
        "event": names.get(word, word),
        "timestamp": time.time(),
        "recipient": "to@x.test",
        "user-variables": {"rme_attempt": attempt},
        "client-info": {"user-agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0"},
        "message": {"headers": {"message-id": "2026@mg"}},
    }
    if names.get(word) == "failed":
        data["severity"] = "temporary" if word == "deferred" else "permanent"
        data["reason"] = {"hard": "bounce"}.get(word, "generic")
        data["delivery-status"] = {"message": "550 to@x.test unknown", "code": 550}
    return {"event-data": data}


def _mailjet(attempt: str, word: str) -> Event:
    names = {"delivered": "sent", "hard": "bounce", "soft": "bounce", "deferred": "bounce"}
    names |= {"complained": "spam", "unsubscribed": "unsub"}
    event: Event = {
        "event": names.get(word, word),
        "time": int(time.time()),
        "MessageID": 456,
        "email": "to@x.test",
        "Payload": orjson.dumps({"rme_attempt": attempt}).decode(),
    }
    if names.get(word) == "bounce":
        event["hard_bounce"] = word == "hard"
        event["error"] = "greylisted" if word == "deferred" else "user unknown"
    return event


def _mailtrap(attempt: str, word: str) -> Event:
    names = {"delivered": "delivery", "hard": "bounce", "deferred": "soft bounce"}
    names |= {"complained": "spam", "unsubscribed": "unsubscribe"}
    event = {
        "event": names.get(word, word),
        "message_id": "m-1",
        "email": "to@x.test",
        "timestamp": int(time.time()),
        "event_id": "e-1",
        "custom_variables": {"rme_attempt": attempt},
    }
    return {"events": [event]}


def _mandrill(attempt: str, word: str) -> Event:
    names = {"delivered": "send", "hard": "hard_bounce", "soft": "soft_bounce"}
    names |= {"complained": "spam", "unsubscribed": "unsub", "deferred": "deferral"}
    return {
        "event": names.get(word, word),
        "ts": int(time.time()),
        "_id": "abc",
        "msg": {"email": "to@x.test", "metadata": {"rme_attempt": attempt}, "diag": "550"},
    }


def _postal(attempt: str, word: str) -> Event:
    payload: Event = {"message": {"id": 7, "tag": attempt, "to": "to@x.test"}}
    statuses = {"delivered": "Sent", "deferred": "SoftFail", "failed": "HardFail"}
    if word in statuses:
        payload["status"] = statuses[word]
    elif word == "soft":
        payload = {"original_message": payload["message"], "bounce": {"id": 8}}
    elif word == "click":
        payload["url"] = "https://x.example"
    return {"event": "Message", "timestamp": time.time(), "payload": payload, "uuid": "u"}


def _postmark(attempt: str, word: str) -> Event:
    kinds = {"delivered": "Delivery", "open": "Open", "click": "Click"}
    types = {"hard": "HardBounce", "soft": "SoftBounce", "deferred": "Transient"}
    event: Event = {
        "RecordType": kinds.get(word, "Bounce"),
        "MessageID": "b7bc2f4a",
        "Email": "to@x.test",
        "Metadata": {"rme_attempt": attempt},
        "BouncedAt": _iso(),
    }
    if word in types:
        event |= {"Type": types[word], "Details": "550 to@x.test unknown"}
    if word == "complained":
        event |= {"RecordType": "SpamComplaint", "Type": "SpamComplaint"}
    if word == "unsubscribed":
        event |= {"RecordType": "SubscriptionChange", "SuppressSending": True}
        event |= {"SuppressionReason": "ManualSuppression"}
    return event


def _resend(attempt: str, word: str) -> Event:
    names = {"hard": "bounced", "soft": "bounced", "open": "opened", "click": "clicked"}
    names |= {"deferred": "delivery_delayed"}
    header = {"name": "X-Metadata", "value": orjson.dumps({"rme_attempt": attempt}).decode()}
    data: Event = {"email_id": "49a3999c", "to": ["to@x.test"], "headers": [header]}
    if word in ("hard", "soft"):
        kind = "Permanent" if word == "hard" else "Transient"
        data["bounce"] = {"message": "a bounce message to to@x.test", "type": kind}
    return {"type": f"email.{names.get(word, word)}", "created_at": _iso(), "data": data}


def _sendgrid(attempt: str, word: str) -> Event:
    names = {"hard": "bounce", "soft": "bounce", "complained": "spamreport"}
    names |= {"unsubscribed": "unsubscribe"}
    event: Event = {
        "event": names.get(word, word),
        "email": "to@x.test",
        "timestamp": int(time.time()),
        "sg_event_id": "e",
        "attempt": "5",  # SendGrid's own
        "rme_attempt": attempt,
    }
    if word in ("hard", "soft"):
        status, kind = ("5.1.1", "bounce") if word == "hard" else ("5.2.2", "bounce")
        event |= {"type": kind, "status": status, "reason": "550 to@x.test unknown"}
    return event


def _sparkpost(attempt: str, word: str) -> Event:
    names = {"delivered": "delivery", "hard": "bounce", "soft": "bounce", "deferred": "delay"}
    names |= {"complained": "spam_complaint", "unsubscribed": "list_unsubscribe"}
    group = {"open": "track_event", "click": "track_event", "unsubscribed": "unsubscribe_event"}
    event: Event = {
        "type": names.get(word, word),
        "timestamp": str(int(time.time())),
        "raw_rcpt_to": "to@x.test",
        "transmission_id": "t",
        "rcpt_meta": {"rme_attempt": attempt},
    }
    if word in ("hard", "soft"):
        event["bounce_class"] = "10" if word == "hard" else "22"
    return {"msys": {group.get(word, "message_event"): event}}


def _unisender_go(attempt: str, word: str) -> Event:
    names = {"hard": "hard_bounced", "deferred": "soft_bounced", "open": "opened"}
    names |= {"click": "clicked", "complained": "spam"}
    data = {
        "job_id": "1ZymBc",
        "email": "to@x.test",
        "status": names.get(word, word),
        "event_time": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
        "metadata": {"rme_attempt": attempt},
        "delivery_info": {"delivery_status": "err_user_unknown"} if word == "hard" else {},
    }
    event = {"event_name": "transactional_email_status", "event_data": data}
    return {"auth": "AUTH", "events_by_user": [{"user_id": 1, "events": [event]}]}


MAKERS: dict[ServiceName, Callable[[str, str], Event]] = {
    "brevo": _brevo,
    "mailersend": _mailersend,
    "mailgun": _mailgun,
    "mailjet": _mailjet,
    "mailtrap": _mailtrap,
    "mandrill": _mandrill,
    "postal": _postal,
    "postmark": _postmark,
    "resend": _resend,
    "sendgrid": _sendgrid,
    "sparkpost": _sparkpost,
    "unisender_go": _unisender_go,
}
ARRAYS: tuple[ServiceName, ...] = ("mailjet", "mandrill", "sendgrid", "sparkpost")
SAYS: dict[ServiceName, tuple[str, ...]] = {
    # what a service cannot report
    "postal": ("delivered", "soft", "click", "deferred"),
    "mandrill": tuple(word for word in WORDS if word != "delivered"),
    "mailersend": tuple(word for word in WORDS if word != "deferred"),
    "resend": tuple(word for word in WORDS if word != "unsubscribed"),
    "mailtrap": tuple(word for word in WORDS if word != "soft"),
    "unisender_go": tuple(word for word in WORDS if word != "soft"),
}


def report(service: ServiceName, url: str, attempt: object, word: str, **more: Any) -> Call:
    """Report one of WORDS on an attempt."""
    event = MAKERS[service](str(attempt), word)
    return signed(service, url, [event] if service in ARRAYS else {**event, **more})


def signed(service: ServiceName, url: str, said: Any, at: float | None = None) -> Call:
    """Sign a payload as a service does, at a time (s) if it signs one."""
    at = time.time() if at is None else at
    body = orjson.dumps(said)
    key = SECRET.encode()
    headers = {**JSON, "user-agent": "webhooks/1"}
    match service:
        case "mailersend":
            headers["signature"] = hmac.new(key, body, hashlib.sha256).hexdigest()
        case "mailtrap":
            headers["mailtrap-signature"] = hmac.new(key, body, hashlib.sha256).hexdigest()
        case "mailgun":
            stamp, token = str(int(at)), "t" * 50
            digest = hmac.new(key, f"{stamp}{token}".encode(), hashlib.sha256).hexdigest()
            mark = {"timestamp": stamp, "token": token, "signature": digest}
            body = orjson.dumps({**said, "signature": mark})
        case "mandrill":
            events = orjson.dumps(said).decode()
            content = f"{url}mandrill_events{events}".encode()
            digest = base64.b64encode(hmac.new(key, content, hashlib.sha1).digest()).decode()
            headers |= {"x-mandrill-signature": digest, "content-type": FORM}
            body = urlencode({"mandrill_events": events}).encode()
        case "postal":
            mark = rsa_key().sign(body, padding.PKCS1v15(), hashes.SHA1())
            headers["x-postal-signature"] = base64.b64encode(mark).decode()
        case "resend":
            stamp = str(int(at))
            content = f"msg_1.{stamp}.".encode() + body
            digest = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
            headers |= {"svix-id": "msg_1", "svix-timestamp": stamp}
            headers["svix-signature"] = f"v1,AAAA v1,{digest}"
        case "sendgrid":
            stamp = str(int(at))
            mark = ec_key().sign(stamp.encode() + body, ec.ECDSA(hashes.SHA256()))
            headers["x-twilio-email-event-webhook-signature"] = base64.b64encode(mark).decode()
            headers["x-twilio-email-event-webhook-timestamp"] = stamp
        case "unisender_go":
            auth = hashlib.md5(body.replace(b"AUTH", b"key-of-the-account")).hexdigest()
            body = body.replace(b"AUTH", auth.encode())
        case _:
            headers["authorization"] = f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
    return Call("POST", "", headers, body)


def _iso() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
