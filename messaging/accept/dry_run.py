"""A dry run: every check, the route and the text of a request, with nothing stored or sent."""

from dataclasses import asdict
from typing import Any

import orjson

from messaging.accept.batch import SEND_RESULT, Batch, recipient_of
from messaging.accept.planning import plan
from messaging.accept.plans import Plan, Recipient
from messaging.accept.requests import MessageInput
from messaging.accept.rows import content_of
from messaging.content import compose, rendering
from messaging.policy import organization_policy
from messaging.reports import trace
from push.devices import active_devices
from rme.core.channels import Channel
from rme.core.db import clock
from rme.core.provider import Email, Push, Sms
from rme.tenants.authentication import Caller

Shown = dict[str, Any]


def rehearse(caller: Caller, given: MessageInput, *, request_id: str) -> Shown:
    """Tell what a request would come to.

    The fields of the send result that it would have had, here and in `result`, or its `error`;
    `wouldSend`; and of each recipient the decisions and the rendered content.
    """
    (each,) = plan(caller, organization_policy.of(caller.organization.id), [given])
    answer = Batch(caller, request_id).answer(each, None)
    body = orjson.loads(answer.body)
    would_send = answer.status < 300
    for named in (body, body.get("error") or {}, *(body.get("recipients") or [])):
        if "messageId" in named:
            named["messageId"] = None  # nothing was stored that it could name
    return {
        **{name: body[name] if would_send else None for name in ("messageId", *SEND_RESULT)},
        "wouldSend": would_send,
        "result": body if would_send else None,
        "error": None if would_send else body["error"],
        "recipients": [_recipient(caller, each, one, request_id) for one in each.recipients],
    }


def _recipient(caller: Caller, each: Plan, one: Recipient, request_id: str) -> Shown:
    shown = recipient_of(one, None, request_id)
    if each.error is not None:
        shown |= {"status": None, "resolvedChannel": None, "provider": None}
    content, failure = None, None
    if one.chosen and each.error is None:
        try:
            content = _content(caller, each, one)
        except (rendering.RenderFailed, rendering.RenderLimit) as error:
            failure = str(error)
    steps = trace.decisions(clock.now(), one.decisions)
    return {**shown, "trace": steps, "content": content, "renderError": failure}


def _content(caller: Caller, each: Plan, one: Recipient) -> Shown:
    """Render what would be handed over; a push for the first of the recipient's devices."""
    chosen, contact = one.chosen, one.contact
    assert chosen is not None and contact is not None  # asked for those who would be sent to
    letter = compose.RenderRequest(
        organization=caller.organization,
        delivery_id="",
        message_id="",
        contact=contact,
        address=chosen.address or "",
        given=content_of(each, {"": one.given.variables}),
        template=chosen.template,
        category=each.rules.name,
    )
    match chosen.channel:
        case Channel.EMAIL:
            return _shown(compose.email(letter))
        case Channel.SMS:
            return _shown(compose.sms(letter))
    devices = active_devices(caller.organization.id, [contact.id])[contact.id]
    return _shown(compose.push(letter, devices[0]))


def _shown(content: Email | Sms | Push) -> Shown:
    match content:
        case Email(subject=subject, text=text, html=html):
            sender = {"name": content.from_name, "address": content.from_address}
            return {"from": sender, "subject": subject, "text": text, "html": html or None}
        case Sms(text=text):
            return {"text": text, "sms": asdict(rendering.segments(text))}
        case Push(title=title, body=body):
            return {
                "title": title,
                "body": body,
                "data": dict(content.data),
                "badge": content.badge,
                "image": content.image or None,
                "link": content.link or None,
            }
