"""Rendering of one delivery: from a template or literal content to an Email, an Sms or a Push.

Literal content serves any channel: on SMS a push's title precedes its body, on email the title is
the subject, on push an SMS's text is the body.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from messaging.content import links, rendering, tracked_links
from messaging.content.templates import ActiveTemplate
from messaging.models import ContentBody, sender_of
from messaging.policy.organization_policy import Policy
from push.devices import DeviceRecord
from rme.core import addresses
from rme.core.channels import Channel
from rme.core.provider import Email, Push, Sms
from rme.crm.connectors.records import ContactRecord
from rme.tenants.organizations import OrganizationRecord


@dataclass(slots=True)
class RenderRequest:
    """What one delivery needs to be rendered."""

    organization: OrganizationRecord
    delivery_id: str
    message_id: str
    contact: ContactRecord
    address: str
    body: ContentBody
    template: ActiveTemplate | None
    policy: Policy
    category: str = ""
    """The message's category. Empty in a preview: the template's counts."""

    @property
    def context(self) -> Mapping[str, object]:
        """Return the render context: the variables, and names that no variable can replace."""
        contact, organization, body = self.contact, self.organization, self.body
        return {
            **(self.template.defaults if self.template else {}),
            **body.get("variables", {}),
            **body.get("recipients", {}).get(self.delivery_id, {}),
            "contact": {
                "id": contact.id,
                "first_name": contact.first_name,
                "last_name": contact.last_name,
                "name": contact.name,
                "email": contact.email,
                "mobile": contact.mobile,
                "language": contact.language,
                "zone": contact.zone,
            },
            "org": {
                "id": organization.id,
                "name": organization.name,
                "brand_color": organization.brand_color,
            },
            "sender": sender_of(body),
            "record": body.get("record", {}),
            **self._links,
        }

    @property
    def _links(self) -> Mapping[str, object]:
        """Return the links that the template uses: signing one costs as much as all the rest."""
        names = self.template.compiled.names if self.template else ()
        if "unsubscribe_url" in names or None in names:  # None: a name computed at render time
            return {"unsubscribe_url": links.preferences_url(self.link.token)}
        return {}

    @property
    def link(self) -> links.PreferenceLink:
        """Return the link to the recipient's preferences for the message's category."""
        template = self.template
        return links.PreferenceLink(
            organization_id=self.organization.id,
            contact_id=self.contact.id,
            channel=template.channel if template else Channel.EMAIL,
            category=self.category or (template.category if template else ""),
            delivery_id=self.delivery_id,
        )


def address_of(contact: ContactRecord, channel: Channel) -> str | None:
    """Return a contact's normalised address on a channel; None without one, and for push."""
    if channel is Channel.EMAIL:
        return addresses.email(contact.email) if contact.email else None
    if channel is Channel.SMS:
        return addresses.phone(contact.mobile, None) if contact.mobile else None
    return None


def email(request: RenderRequest) -> Email:
    """Render an email."""
    if request.template:
        rendered = rendering.render_email(request.template.compiled, request.context)
        subject, text, html = rendered.subject, rendered.text, rendered.html
    else:
        content = request.body["content"]
        subject = content.get("subject") or content.get("title", "")
        text, html = content.get("text") or content.get("body", ""), content.get("html", "")
    sender = sender_of(request.body)
    return Email(
        to=request.address,
        to_name=request.contact.name,
        from_address=f"{sender['local_part']}@{sender['domain']}",
        from_name=sender["name"] or request.organization.name,
        subject=subject,
        text=text,
        html=_tracked(request, html),
        message_id=f"{request.delivery_id}@{sender['domain']}",
        headers=_unsubscribe_headers(request),
    )


def _tracked(request: RenderRequest, html: str) -> str:
    """Add tracking to HTML where the organization wants it, but never to a preview."""
    rules = request.policy.sending
    if not html or not request.delivery_id or not (rules.track_opens or rules.track_clicks):
        return html
    delivery_id = UUID(request.delivery_id)
    return tracked_links.track(
        html, delivery_id, opens=rules.track_opens, clicks=rules.track_clicks
    )


def _unsubscribe_headers(request: RenderRequest) -> dict[str, str]:
    """Return the headers with which mail clients offer to unsubscribe (RFC 2369, RFC 8058)."""
    link = request.link
    if not link.category or not request.policy.rules(link.category).opt_in:
        return {}
    return {
        "List-Unsubscribe": f"<{links.one_click_url(link.token)}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def sms(request: RenderRequest) -> Sms:
    """Render an SMS."""
    if request.template:
        text = rendering.render_sms(request.template.compiled, request.context)
    else:
        content = request.body["content"]
        title = content.get("title", "")
        text = content.get("text") or ": ".join(filter(None, [title, content.get("body", "")]))
    return Sms(to=request.address, text=text, sender=sender_of(request.body).get("name", ""))


def push(request: RenderRequest, device: DeviceRecord) -> Push:
    """Render a push for one device."""
    (rendered,) = pushes(request, [device])
    return rendered


def pushes(request: RenderRequest, devices: Sequence[DeviceRecord]) -> list[Push]:
    """Render a push for each device: one text, rendered once.

    Overrides of the request replace what the template has.
    """
    overrides = request.body.get("push", {})
    if request.template:
        rendered = rendering.render_push(request.template.compiled, request.context)
        title, body, data = rendered.title, rendered.body, dict(rendered.data)
        badge, image, link = rendered.badge, rendered.image, rendered.link
    else:
        content = request.body["content"]
        title = content.get("title") or content.get("subject", "")
        body = content.get("body") or content.get("text", "")
        data, badge, image, link = dict(content.get("data", {})), content.get("badge"), "", ""
    if overrides:
        data, badge = data | overrides.get("data", {}), overrides.get("badge", badge)
        image, link = overrides.get("image", image), overrides.get("link", link)
    return [
        Push(
            token=device.token,
            platform=device.platform,
            title=title,
            body=body,
            data=data,
            badge=badge,
            image=image,
            link=link,
            ttl=overrides.get("ttl"),
            collapse_key=overrides.get("collapse_key") or request.message_id,
            priority=overrides.get("priority", "HIGH"),
            app=device.app,
            environment=device.environment,
            registered_at=device.registered_at,
        )
        for device in devices
    ]
