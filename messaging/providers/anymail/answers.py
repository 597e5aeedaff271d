"""What email services refuse, and what that means.

The first row of REFUSALS that fits `service status body` counts. Where none fits, the status does:

| status | outcome |
|---|---|
| 2xx | what django-anymail reads in it: Accepted with the service's id, Rejected, else Unknown |
| 401, 402, 403, 404 | Misconfigured |
| 420, 429, 503 | Retryable: not taken |
| 400, 406, 413, 415, 422, 451 | Rejected, the content's fault |
| anything else | Unknown |
"""

from typing import Any

from messaging.providers.smtp import Verdict, in_order
from rme.core import addresses
from rme.core.outcomes import Fault, Misconfigured, Outcome, Rejected, Retryable, Unknown
from rme.core.provider import http
from rme.transport import Reply

REFUSALS: tuple[tuple[str, Verdict], ...] = (
    # https://developers.brevo.com/reference/sendtransacemail
    (r"brevo 400 .*not valid in to\b.*", Verdict.DEAD),
    (r"brevo 400 .*\bsender\b.*", Verdict.SET_UP),  # not valid, inactive, missing
    (r"brevo 400 .*not_enough_credits.*", Verdict.SET_UP),
    # https://developers.mailersend.com/api/v1/email.html
    (r'mailersend 422 .*"to\.\d+\.email".*', Verdict.DEAD),
    (r'mailersend 422 .*("from(\.email)?"|#MS42207|#MS42225).*', Verdict.SET_UP),  # domain, trial
    # https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/messages
    (r"mailgun 400 .*'?to'? parameter is not a valid address.*", Verdict.DEAD),
    (r"mailgun 400 .*('?from'? parameter is not|not allowed to send|sandbox).*", Verdict.SET_UP),
    # https://dev.mailjet.com/email/guides/send-api-v31/#possible-errors
    (r'mailjet 4\d\d .*"To(\[\d+\])?\.Email".*', Verdict.DEAD),
    (r'mailjet 4\d\d .*("From(\.Email)?"|send-0008|send-0010|mj-0002).*', Verdict.SET_UP),
    # https://help.mailtrap.io/article/117-api-errors
    (r"mailtrap 400 .*'to'.*(invalid|not valid).*", Verdict.DEAD),
    (r"mailtrap 4\d\d .*('from'|domain|not allowed|permission).*", Verdict.SET_UP),
    # https://mailchimp.com/developer/transactional/docs/errors/: errors have status 500
    (
        r'mandrill \d+ .*"name": ?"(Invalid_Key|PaymentRequired|Unknown_Subaccount).*',
        Verdict.SET_UP,
    ),
    (r'mandrill \d+ .*"name": ?"(ValidationError|Invalid_\w+).*', Verdict.CONTENT),
    (r'mandrill \d+ .*"name": ?"ServiceUnavailable.*', Verdict.LATER),
    # https://github.com/postalserver/postal/blob/main/app/controllers/legacy_api: status 200
    (r'postal 200 .*"code": ?"(Unauthenticated\w*|FromAddressMissing).*', Verdict.SET_UP),
    (
        r'postal 200 .*"code": ?"(InvalidServerAPIKey|AccessDenied|ServerSuspended).*',
        Verdict.SET_UP,
    ),
    (r'postal 200 .*"status": ?"(parameter-)?error".*', Verdict.CONTENT),
    # https://postmarkapp.com/developer/api/overview#error-codes
    (r'postmark 422 .*"ErrorCode": ?406\b.*', Verdict.RECIPIENT),  # bounced or complained before
    (r"postmark 422 .*\"ErrorCode\": ?300\b.*'To'.*", Verdict.DEAD),
    (r"postmark 422 .*\"ErrorCode\": ?300\b.*'From'.*", Verdict.SET_UP),
    (r'postmark 422 .*"ErrorCode": ?(10|400|401|405|412|413|1235)\b.*', Verdict.SET_UP),
    (r'postmark \d+ .*"ErrorCode": ?(100|429)\b.*', Verdict.LATER),
    # https://resend.com/docs/api-reference/errors
    (r"resend 422 .*invalid `to` field.*", Verdict.DEAD),
    (
        r'resend 4\d\d .*"name": ?"(invalid_from_address|\w+_api_key|invalid_access).*',
        Verdict.SET_UP,
    ),
    # https://www.twilio.com/docs/sendgrid/api-reference/mail-send/errors
    (r'sendgrid 400 .*"field": ?"personalizations\.\d+\.to.*', Verdict.DEAD),
    (r'sendgrid 400 .*"field": ?"from.*', Verdict.SET_UP),
    # https://developers.sparkpost.com/api/transmissions/, extended error codes
    (r'sparkpost 4\d\d .*"code": ?"5002".*', Verdict.DEAD),  # no valid recipient
    (r'sparkpost 4\d\d .*"code": ?"7001".*', Verdict.SET_UP),  # the sending domain
    # https://godocs.unisender.ru/web-api-ref#api-errors
    (r'unisender_go 400 .*"code": ?(102|103|114|204|205)\b.*', Verdict.SET_UP),  # key, domain
)
_ROWS = [(in_order(row), verdict) for row, verdict in REFUSALS]
_LOOK = 4000
"""Characters of an answer that are read."""


def refusal(service: str, reply: Reply) -> Outcome | None:
    """Say what an answer means that is no acceptance; None for one that may be."""
    body = reply.body[:_LOOK].decode("utf-8", "replace")
    reason = _reason(reply)
    key = f"{service} {reply.status} {body}"
    match next((verdict for row, verdict in _ROWS if row.fullmatch(key)), None):
        case Verdict.LATER:
            return Retryable(reason, http.retry_after(reply))
        case Verdict.SET_UP:
            return Misconfigured(reason)
        case Verdict.DEAD:
            return Rejected(reason, hard=True)
        case Verdict.RECIPIENT:
            return Rejected(reason)
        case Verdict.CONTENT:
            return Rejected(reason, Fault.CONTENT)
    return None if 200 <= reply.status < 300 else _by_status(reply, reason)


def _by_status(reply: Reply, reason: str) -> Outcome:
    match reply.status:
        case 401 | 402 | 403 | 404:
            return Misconfigured(reason)
        case 420 | 429 | 503:
            return Retryable(reason, http.retry_after(reply))
        case 400 | 406 | 413 | 415 | 422 | 451:
            return Rejected(reason, Fault.CONTENT)
    return Unknown(f"unexpected answer: {reply.status}")


def _reason(reply: Reply) -> str:
    """Name the status and the service's own code or words, without addresses of people."""
    said = _first(http.read_object(reply.body), depth=4)
    return clean(f"refused: {reply.status} {said}".rstrip())


_NAMES = ("code", "ErrorCode", "name", "type", "message", "Message", "ErrorMessage", "description")


def _first(value: Any, depth: int) -> str:
    """Find the first words that say why, in whatever shape a service has its errors."""
    if depth == 0:
        return ""
    if isinstance(value, list):
        return next((text for each in value[:3] if (text := _first(each, depth - 1))), "")
    if isinstance(value, dict):
        named = [text for name in _NAMES if (text := http.text_of(value.get(name), 80))]
        if named:
            return " ".join(named[:2])
        return next((text for each in value.values() if (text := _first(each, depth - 1))), "")
    return http.text_of(value, 80)


def clean(text: str) -> str:
    """Make a text fit to be a reason: one line, no address of a person."""
    return addresses.redacted(http.text_of(text, 400))[:200]
