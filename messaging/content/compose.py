"""From a template or literal content to what a provider is handed: an Email, an Sms or a Push.

Literal content fills any channel: on SMS a push's title goes before its body, on email the title
is the subject, on push an SMS's text is the body.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from messaging.content import links, rendering, tracked_links
from messaging.content.templates import ActiveTemplate
from messaging.policy import organization_policy
from push.devices import DeviceRecord
from rme.core import addresses
from rme.core.channels import Channel
from rme.core.provider import Email, Push, Sms
from rme.crm.connectors.records import ContactRecord
from rme.tenants.organizations import OrganizationRecord

ContentBody = Mapping[str, Any]
"""The body of a `MessageContent`."""


@dataclass(slots=True)
class RenderRequest:
    """All that one delivery needs to be composed."""

    organization: OrganizationRecord
    delivery_id: str
    message_id: str
    contact: ContactRecord
    address: str
    given: ContentBody
    template: ActiveTemplate | None
    category: str = ""
    """The message's. Without it the template's counts, as in a preview."""

    @property
    def context(self) -> ContentBody:
        """Give what a template may use: variables, and what no variable can stand in for."""
        contact, organization, given = self.contact, self.organization, self.given
        return {
            **(self.template.defaults if self.template else {}),
            **given.get("variables", {}),
            **given.get("recipients", {}).get(self.delivery_id, {}),
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
            "sender": given.get("sender", {}),
            "record": given.get("record", {}),
            **self._links,
        }

    @property
    def _links(self) -> ContentBody:
        """Give the links that the template asks for: to sign one costs as much as all else."""
        names = self.template.compiled.names if self.template else ()
        if "unsubscribe_url" in names or None in names:  # None: names made while rendering
            return {"unsubscribe_url": links.preferences_url(self.link.token)}
        return {}

    @property
    def link(self) -> links.PreferenceLink:
        """Give what leads the recipient to the preferences that this message touches."""
        template = self.template
        return links.PreferenceLink(
            organization_id=self.organization.id,
            contact_id=self.contact.id,
            channel=template.channel if template else Channel.EMAIL,
            category=self.category or (template.category if template else ""),
            delivery_id=self.delivery_id,
        )


def address_of(contact: ContactRecord, channel: Channel) -> str | None:
    """Give a contact's normalised address on a channel; None without one (push has none)."""
    if channel is Channel.EMAIL:
        return addresses.email(contact.email) if contact.email else None
    if channel is Channel.SMS:
        return addresses.phone(contact.mobile, None) if contact.mobile else None
    return None


def email(letter: RenderRequest) -> Email:
    """Compose an email."""
    if letter.template:
        rendered = rendering.render_email(letter.template.compiled, letter.context)
        subject, text, html = rendered.subject, rendered.text, rendered.html
    else:
        content = letter.given["content"]
        subject = content.get("subject") or content.get("title", "")
        text, html = content.get("text") or content.get("body", ""), content.get("html", "")
    sender = letter.given["sender"]
    return Email(
        to=letter.address,
        to_name=letter.contact.name,
        from_address=f"{sender['local_part']}@{sender['domain']}",
        from_name=sender["name"] or letter.organization.name,
        subject=subject,
        text=text,
        html=_tracked(letter, html),
        message_id=f"{letter.delivery_id}@{sender['domain']}",
        headers=_unsubscribing(letter),
    )


def _tracked(letter: RenderRequest, html: str) -> str:
    """Let an email tell of opens and clicks, where the organization wants that; a preview never."""
    rules = organization_policy.of(letter.organization.id).sending
    if not html or not letter.delivery_id or not (rules.track_opens or rules.track_clicks):
        return html
    delivery_id = UUID(letter.delivery_id)
    return tracked_links.track(
        html, delivery_id, opens=rules.track_opens, clicks=rules.track_clicks
    )


def _unsubscribing(letter: RenderRequest) -> dict[str, str]:
    """Give the headers by which a mailbox offers to unsubscribe (RFC 2369, RFC 8058)."""
    link = letter.link
    if (
        not link.category
        or not organization_policy.of(link.organization_id).rules(link.category).opt_in
    ):
        return {}
    return {
        "List-Unsubscribe": f"<{links.one_click_url(link.token)}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def sms(letter: RenderRequest) -> Sms:
    """Compose an SMS."""
    if letter.template:
        text = rendering.render_sms(letter.template.compiled, letter.context)
    else:
        content = letter.given["content"]
        title = content.get("title", "")
        text = content.get("text") or ": ".join(filter(None, [title, content.get("body", "")]))
    return Sms(to=letter.address, text=text, sender=letter.given.get("sender", {}).get("name", ""))


def push(letter: RenderRequest, device: DeviceRecord) -> Push:
    """Compose a push for one device."""
    (composed,) = pushes(letter, [device])
    return composed


def pushes(letter: RenderRequest, devices: Sequence[DeviceRecord]) -> list[Push]:
    """Compose a push for each device: one text, rendered once.

    What the request says goes over what the template says.
    """
    over = letter.given.get("push", {})
    if letter.template:
        rendered = rendering.render_push(letter.template.compiled, letter.context)
        title, body, data = rendered.title, rendered.body, dict(rendered.data)
        badge, image, link = rendered.badge, rendered.image, rendered.link
    else:
        content = letter.given["content"]
        title = content.get("title") or content.get("subject", "")
        body = content.get("body") or content.get("text", "")
        data, badge, image, link = dict(content.get("data", {})), content.get("badge"), "", ""
    if over:
        data, badge = data | over.get("data", {}), over.get("badge", badge)
        image, link = over.get("image", image), over.get("link", link)
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
            ttl=over.get("ttl"),
            collapse_key=over.get("collapse_key") or letter.message_id,
            priority=over.get("priority", "HIGH"),
            app=device.app,
            environment=device.environment,
            registered_at=device.registered_at,
        )
        for device in devices
    ]
