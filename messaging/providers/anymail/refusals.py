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
    ELSEWHERE,
    LATER,
    MESSAGE_LATER,
    MISCONFIGURED,
    RECIPIENT,
    RefusalTable,
    Rows,
    by_status,
)
from rme.transport.messages import Reply

REFUSALS: Rows = (
    # https://developers.brevo.com/reference/sendtransacemail
    (r"brevo 400 .*\bemail is not valid in to\b.*", DEAD),  # names have errors, too
    (r"brevo 400 .*\bsender\b.*", MESSAGE_LATER),  # not valid, inactive, missing
    (r"brevo 400 .*not_enough_credits.*", MISCONFIGURED),
    # https://developers.mailersend.com/api/v1/email.html
    (r'mailersend 422 .*"to\.\d+\.email".*', DEAD),
    (r'mailersend 422 .*("from(\.email)?"|#MS42207).*', MESSAGE_LATER),  # the sender's domain
    (r"mailersend 422 .*#MS42225.*", ELSEWHERE),  # a trial account: only to its owner
    # https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/messages
    (r"mailgun 400 .*'?to'? parameter is not a valid address.*", DEAD),
    (r"mailgun 400 .*'?from'? parameter is not.*", ELSEWHERE),  # malformed
    (r"mailgun 4\d\d .*(not allowed to send|domain not found).*", MESSAGE_LATER),  # one domain
    (r"mailgun 4\d\d .*sandbox.*", ELSEWHERE),  # only to authorized recipients
    # https://dev.mailjet.com/email/guides/send-api-v31/#possible-errors
    (r'mailjet 4\d\d .*"To(\[\d+\])?\.Email".*', DEAD),
    (r'mailjet 4\d\d .*("From(\.Email)?"|send-0008|send-0010).*', MESSAGE_LATER),
    (r"mailjet 4\d\d .*mj-0002.*", MISCONFIGURED),
    # https://help.mailtrap.io/article/117-api-errors
    (r"mailtrap 400 .*'to'.*(invalid|not valid).*", DEAD),
    (r"mailtrap 4\d\d .*('from'|domain|not allowed).*", MESSAGE_LATER),
    (r"mailtrap 4\d\d .*permission.*", MISCONFIGURED),
    # https://mailchimp.com/developer/transactional/docs/errors/: errors have status 500
    (r'mandrill \d+ .*"name": ?"(Invalid_Key|PaymentRequired|Unknown_Subaccount).*', MISCONFIGURED),
    (r'mandrill \d+ .*"name": ?"(ValidationError|Invalid_\w+).*', CONTENT),
    (r'mandrill \d+ .*"name": ?"ServiceUnavailable.*', LATER),
    # Status 200: it was rejected for its sender, and not for its recipient.
    (r'mandrill 200 .*"reject_reason": ?"(invalid-sender|unsigned)".*', MESSAGE_LATER),
    # https://github.com/postalserver/postal/blob/main/app/controllers/legacy_api: status 200
    (r'postal 200 .*"code": ?"(Unauthenticated\w*|FromAddressMissing).*', MESSAGE_LATER),
    (r'postal 200 .*"code": ?"(InvalidServerAPIKey|AccessDenied|ServerSuspended).*', MISCONFIGURED),
    (r'postal 200 .*"status": ?"(parameter-)?error".*', CONTENT),
    # https://postmarkapp.com/developer/api/overview#error-codes
    (r'postmark 422 .*"ErrorCode": ?406\b.*', RECIPIENT),  # bounced or complained before
    (r"postmark 422 .*\"ErrorCode\": ?300\b.*'To'.*", DEAD),
    (r"postmark 422 .*\"ErrorCode\": ?300\b.*'From'.*", ELSEWHERE),  # malformed
    (r'postmark 422 .*"ErrorCode": ?(400|401)\b.*', MESSAGE_LATER),  # no signature of the sender
    (r'postmark 422 .*"ErrorCode": ?412\b.*', ELSEWHERE),  # pending approval: to its domain only
    (r'postmark 422 .*"ErrorCode": ?(10|405|413|1235)\b.*', MISCONFIGURED),
    (r'postmark \d+ .*"ErrorCode": ?(100|429)\b.*', LATER),
    # https://resend.com/docs/api-reference/errors
    (r"resend 422 .*invalid `to` field.*", DEAD),
    (r'resend 4\d\d .*"name": ?"invalid_from_address".*', ELSEWHERE),  # malformed
    (r"resend 403 .*only send testing emails.*", ELSEWHERE),  # without a domain: to its owner only
    (r"resend 4\d\d .*domain is not verified.*", MESSAGE_LATER),
    (r'resend 4\d\d .*"name": ?"(\w+_api_key|invalid_access).*', MISCONFIGURED),
    # https://www.scaleway.com/en/developers/api/transactional-email/: domains are checked.
    # The errors' texts aren't documented; the refusal of a key names the resource `email`.
    (r"scaleway (403|404|412) .*\bdomain\b.*", MESSAGE_LATER),
    # https://www.twilio.com/docs/sendgrid/api-reference/mail-send/errors
    (r'sendgrid 400 .*"field": ?"personalizations\.\d+\.to\.\d+\.email".*', DEAD),  # not its name
    (r'sendgrid 4\d\d .*("field": ?"from|verified sender identity).*', MESSAGE_LATER),
    # https://developers.sparkpost.com/api/transmissions/, extended error codes
    (r'sparkpost 4\d\d .*"code": ?"5002".*', DEAD),  # no valid recipient
    (r'sparkpost 4\d\d .*"code": ?"7001".*', MESSAGE_LATER),  # the sending domain
    # https://godocs.unisender.ru/web-api-ref#api-errors
    (r'unisender_go 400 .*"code": ?(102|103|114)\b.*', MISCONFIGURED),  # the key
    (r'unisender_go 400 .*"code": ?(204|205)\b.*', MESSAGE_LATER),  # the domain of from_email
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
        texts = [text for name in _NAMES if (text := http.text_of(value.get(name), 80))]
        if texts:
            return " ".join(texts[:2])
        return next((text for each in value.values() if (text := _first_text(each, depth - 1))), "")
    return http.text_of(value, 80)


def clean(text: str) -> str:
    """Return a text as a reason: one line of at most 200 characters, without addresses."""
    return addresses.redacted(http.text_of(text, 400))[:200]
