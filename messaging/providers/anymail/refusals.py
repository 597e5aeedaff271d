"""What the refusals of email services mean.

The first row of REFUSALS that matches `service status body` decides; if none does, the status:

| status | outcome |
|---|---|
| 2xx | as django-anymail reads it: Accepted with the service's id, Rejected, else Unknown |
| 401, 402, 403, 404 | Misconfigured |
| 420, 429, 503 | Retryable: not taken |
| 400, 406, 413, 415, 422, 451 | Rejected, the content's fault |
| anything else | Unknown |
"""

from rme.core import addresses
from rme.core.outcomes import Outcome
from rme.core.provider import http
from rme.core.provider.refusals import (
    BY_STATUS,
    CONTENT,
    DEAD,
    LATER,
    MISCONFIGURED,
    RECIPIENT,
    RefusalTable,
    Rows,
    by_status,
)
from rme.transport import Reply

REFUSALS: Rows = (
    # https://developers.brevo.com/reference/sendtransacemail
    (r"brevo 400 .*not valid in to\b.*", DEAD),
    (r"brevo 400 .*\bsender\b.*", MISCONFIGURED),  # not valid, inactive, missing
    (r"brevo 400 .*not_enough_credits.*", MISCONFIGURED),
    # https://developers.mailersend.com/api/v1/email.html
    (r'mailersend 422 .*"to\.\d+\.email".*', DEAD),
    (r'mailersend 422 .*("from(\.email)?"|#MS42207|#MS42225).*', MISCONFIGURED),  # domain, trial
    # https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/messages
    (r"mailgun 400 .*'?to'? parameter is not a valid address.*", DEAD),
    (r"mailgun 400 .*('?from'? parameter is not|not allowed to send|sandbox).*", MISCONFIGURED),
    # https://dev.mailjet.com/email/guides/send-api-v31/#possible-errors
    (r'mailjet 4\d\d .*"To(\[\d+\])?\.Email".*', DEAD),
    (r'mailjet 4\d\d .*("From(\.Email)?"|send-0008|send-0010|mj-0002).*', MISCONFIGURED),
    # https://help.mailtrap.io/article/117-api-errors
    (r"mailtrap 400 .*'to'.*(invalid|not valid).*", DEAD),
    (r"mailtrap 4\d\d .*('from'|domain|not allowed|permission).*", MISCONFIGURED),
    # https://mailchimp.com/developer/transactional/docs/errors/: errors have status 500
    (r'mandrill \d+ .*"name": ?"(Invalid_Key|PaymentRequired|Unknown_Subaccount).*', MISCONFIGURED),
    (r'mandrill \d+ .*"name": ?"(ValidationError|Invalid_\w+).*', CONTENT),
    (r'mandrill \d+ .*"name": ?"ServiceUnavailable.*', LATER),
    # https://github.com/postalserver/postal/blob/main/app/controllers/legacy_api: status 200
    (r'postal 200 .*"code": ?"(Unauthenticated\w*|FromAddressMissing).*', MISCONFIGURED),
    (r'postal 200 .*"code": ?"(InvalidServerAPIKey|AccessDenied|ServerSuspended).*', MISCONFIGURED),
    (r'postal 200 .*"status": ?"(parameter-)?error".*', CONTENT),
    # https://postmarkapp.com/developer/api/overview#error-codes
    (r'postmark 422 .*"ErrorCode": ?406\b.*', RECIPIENT),  # bounced or complained before
    (r"postmark 422 .*\"ErrorCode\": ?300\b.*'To'.*", DEAD),
    (r"postmark 422 .*\"ErrorCode\": ?300\b.*'From'.*", MISCONFIGURED),
    (r'postmark 422 .*"ErrorCode": ?(10|400|401|405|412|413|1235)\b.*', MISCONFIGURED),
    (r'postmark \d+ .*"ErrorCode": ?(100|429)\b.*', LATER),
    # https://resend.com/docs/api-reference/errors
    (r"resend 422 .*invalid `to` field.*", DEAD),
    (
        r'resend 4\d\d .*"name": ?"(invalid_from_address|\w+_api_key|invalid_access).*',
        MISCONFIGURED,
    ),
    # https://www.twilio.com/docs/sendgrid/api-reference/mail-send/errors
    (r'sendgrid 400 .*"field": ?"personalizations\.\d+\.to.*', DEAD),
    (r'sendgrid 400 .*"field": ?"from.*', MISCONFIGURED),
    # https://developers.sparkpost.com/api/transmissions/, extended error codes
    (r'sparkpost 4\d\d .*"code": ?"5002".*', DEAD),  # no valid recipient
    (r'sparkpost 4\d\d .*"code": ?"7001".*', MISCONFIGURED),  # the sending domain
    # https://godocs.unisender.ru/web-api-ref#api-errors
    (r'unisender_go 400 .*"code": ?(102|103|114|204|205)\b.*', MISCONFIGURED),  # key, domain
)
_TABLE = RefusalTable(REFUSALS)
STATUSES = {
    **BY_STATUS,
    402: MISCONFIGURED,
    420: LATER,
    **dict.fromkeys((406, 413, 415, 422, 451), CONTENT),
}
_READ_LIMIT = 4000
"""Characters of an answer that are read."""


def refusal(service: str, reply: Reply) -> Outcome | None:
    """Return the outcome of a refusal; None if the answer may be an acceptance."""
    body = reply.body[:_READ_LIMIT].decode("utf-8", "replace")
    reason = _reason(reply)
    if meaning := _TABLE.find(f"{service} {reply.status} {body}"):
        return meaning.outcome(reason, http.retry_after(reply))
    return None if 200 <= reply.status < 300 else by_status(reply, reason, STATUSES)


def _reason(reply: Reply) -> str:
    """Return the status and the service's own code or words, without addresses."""
    text = _first_text(http.read_object(reply.body), depth=4)
    return clean(f"refused: {reply.status} {text}".rstrip())


_NAMES = ("code", "ErrorCode", "name", "type", "message", "Message", "ErrorMessage", "description")


def _first_text(value: object, depth: int) -> str:
    """Return the first text that explains a refusal, in any structure of errors."""
    if depth == 0:
        return ""
    if isinstance(value, list):
        return next((text for each in value[:3] if (text := _first_text(each, depth - 1))), "")
    if isinstance(value, dict):
        named = [text for name in _NAMES if (text := http.text_of(value.get(name), 80))]
        if named:
            return " ".join(named[:2])
        return next((text for each in value.values() if (text := _first_text(each, depth - 1))), "")
    return http.text_of(value, 80)


def clean(text: str) -> str:
    """Return a text as a reason: one line of at most 200 characters, without addresses."""
    return addresses.redacted(http.text_of(text, 400))[:200]
