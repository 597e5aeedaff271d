"""The mail whose link confirms a choice of the preference page (double opt-in)."""

from django.template.loader import render_to_string

from messaging import links
from messaging.accept import Call, Submission, accept
from messaging.accept.requests import MESSAGE
from messaging.accept.results import SendResult
from messaging.domain.policy import TRANSACTIONAL
from messaging.links import Confirmation
from messaging.pages import brand
from messaging.pages.wording import Wording
from rme.core import errors
from rme.core.http.parsing import parse
from rme.core.redis.rate_limits import Limit, limiter
from rme.tenants.oauth.authentication import Caller
from rme.tenants.organizations import OrganizationRecord

MAILS_PER_HOUR = Limit(3, 3600)
"""Per recipient."""
NO_APPLICATION = 0
"""The application id of messages that are not sent by an API client."""


def send(
    organization: OrganizationRecord,
    confirmation: Confirmation,
    *,
    wording: Wording,
    request_id: str,
) -> bool:
    """Send the mail as a regular message; return whether it was accepted.

    At the hourly limit no more is sent, so that the page cannot be used to flood a mailbox; the
    mails sent before still serve.
    """
    throttle_key = f"confirmation:{organization.id}:{confirmation.link.contact_id}"
    if not limiter.take(throttle_key, MAILS_PER_HOUR, cost=0).allowed:
        return True
    caller = Caller(organization, application_id=NO_APPLICATION, user_id=0, test=False)
    try:
        message = parse(MESSAGE, _message(organization, confirmation, wording))
        result = accept(Call(caller, Submission(message), request_id))
    except errors.ApiError:  # the organization is at its limit
        return False
    if not isinstance(result, SendResult):
        return False
    limiter.take(throttle_key, MAILS_PER_HOUR)
    return True


def _message(
    organization: OrganizationRecord, confirmation: Confirmation, wording: Wording
) -> dict[str, object]:
    names = {
        "organization": organization.name,
        "category": ", ".join(wording.category(name) for name in confirmation.categories),
    }
    context = {
        "heading": wording.confirm_heading,
        "text": wording.mail_text.format(**names),
        "ignore": wording.mail_ignore,
        "button": wording.confirm,
        "brand": brand.of(organization.brand_color),
        "url": links.confirmation_url(confirmation.token),
    }
    return {
        "channel": "EMAIL",
        "category": TRANSACTIONAL,
        "to": [{"contactId": confirmation.link.contact_id}],
        "content": {
            "subject": _one_line(wording.mail_subject.format(**names)),
            "text": render_to_string("email/confirm.txt", context),
            "html": render_to_string("email/confirm.html", context),
        },
    }


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
