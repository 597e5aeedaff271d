"""Email services: settings of an account, their responses, and their callbacks, signed as they are
documented."""

import base64
import hashlib
import hmac
import time
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import orjson
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from messaging.providers.anymail.services import SERVICES, ServiceName
from tests.fakes.mail_events import ARRAYS, MAKERS
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
    """Return a public key as services show it: DER in base64."""
    der = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(der).decode()


def settings(service: ServiceName, **given: str) -> dict[str, str]:
    """Return the settings of an account whose callbacks are accepted."""
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


def report(service: ServiceName, url: str, attempt: object, word: str, **more: Any) -> Call:
    """Report one of WORDS on an attempt."""
    event = MAKERS[service](str(attempt), word)
    return signed(service, url, [event] if service in ARRAYS else {**event, **more})


def signed(service: ServiceName, url: str, event: Any, at: float | None = None) -> Call:
    """Sign a payload as a service does, at a time (s) if it signs one."""
    at = time.time() if at is None else at
    body = orjson.dumps(event)
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
            body = orjson.dumps({**event, "signature": mark})
        case "mandrill":
            events = orjson.dumps(event).decode()
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
