"""What email services report of one message, in the words of each."""

import time
from collections.abc import Callable
from typing import Any

import orjson

from messaging.providers.anymail.services import ServiceName

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
            "created_at": iso(),
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
        "BouncedAt": iso(),
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
    return {"type": f"email.{names.get(word, word)}", "created_at": iso(), "data": data}


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


def iso() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
