"""Composing one delivery: from a rendered template or literal content to an Email, Sms or Push.

Literal content serves any channel: on SMS a push's title precedes its body, on email the title is
the subject, on push an SMS's text is the body.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from messaging import links
from messaging.content import preference_footer, rendering, tracked_links
from messaging.content.templates import ActiveTemplate
from messaging.domain.channels import Channel
from messaging.domain.contents import ContentBody, Sender
from messaging.policy.organization_policy import Policy
from push.active_devices import DeviceRecord
from rme.core import addresses
from rme.core.provider import Email, Push, Sms, sms_sender
from rme.crm.connectors.records import ContactRecord
from rme.tenants.organizations import OrganizationRecord


@dataclass(slots=True)
class RenderRequest:
    """What one delivery needs to be rendered and composed."""

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
    is_outgoing: bool = False
    """Whether the content goes to its recipient. Other people see any other content, so its links
    only show the recipient's pages, and nothing in it is tracked."""

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
            "sender": body.get("sender", {}),
            "record": body.get("record", {}),
            **self._links,
        }

    @property
    def _links(self) -> Mapping[str, object]:
        """Return the links that an outgoing template uses: signing one costs as much as all the
        rest. A template that an errand parses gets all links.
        """
        if self.template is None:
            return {}
        if self.is_outgoing and self.template.is_parsed_quickly:
            names = self.template.compiled.names
            if (
                "unsubscribe_url" not in names and None not in names
            ):  # None: computed at render time
                return {}
        return {"unsubscribe_url": links.preferences_url(self.link_token)}

    @property
    def needs_consent(self) -> bool:
        """Return whether the category needs the recipient's consent, like MARKETING."""
        category = self._category
        return bool(category) and self.policy.rules(category).opt_in

    @property
    def _category(self) -> str:
        return self.category or (self.template.category if self.template else "")

    @property
    def link_token(self) -> str:
        """Return the token of the recipient's link, or of its preview."""
        return self.link.token if self.is_outgoing else self.link.preview_token

    @property
    def link(self) -> links.PreferenceLink:
        """Return the link to the recipient's preferences for the message's category."""
        template = self.template
        return links.PreferenceLink(
            organization_id=self.organization.id,
            contact_id=self.contact.id,
            channel=template.channel if template else Channel.EMAIL,
            category=self._category,
            delivery_id=self.delivery_id,
        )


def composed(
    request: RenderRequest,
    channel: Channel,
    devices: Sequence[DeviceRecord],
    rendered: rendering.RenderedVersion | None,
) -> Sequence[Email | Sms | Push]:
    """Return what is handed over: one content, or a push for each device.

    `rendered` is the request's template, if it has one.
    """
    content = rendered.content if rendered else None
    match channel:
        case Channel.EMAIL:
            assert content is None or isinstance(content, rendering.RenderedEmail)
            return [email(request, content)]
        case Channel.SMS:
            assert content is None or isinstance(content, rendering.RenderedSms)
            return [sms(request, content)]
    assert content is None or isinstance(content, rendering.RenderedPush)
    return pushes(request, devices, content)


def address_of(contact: ContactRecord, channel: Channel) -> str | None:
    """Return a contact's normalised address on a channel; None without one, and for push."""
    if channel is Channel.EMAIL:
        return addresses.email(contact.email) if contact.email else None
    if channel is Channel.SMS:
        return addresses.phone(contact.mobile, None) if contact.mobile else None
    return None


def email(request: RenderRequest, rendered: rendering.RenderedEmail | None) -> Email:
    """Compose an email from its rendered template, or from literal content."""
    if rendered:
        subject, text, html = rendered.subject, rendered.text, rendered.html
    else:
        content = request.body["content"]
        subject = content.get("subject") or content.get("title", "")
        text, html = content.get("text") or content.get("body", ""), content.get("html", "")
        if html and not text.strip():
            text = rendering.text_of_html(html)
    token = request.link_token if request.needs_consent else ""
    if token:
        text, html = _with_preferences(request, token, text, html)
    sender = request.body.get("sender", Sender())
    return Email(
        to=request.address,
        to_name=request.contact.name,
        from_address=f"{sender['local_part']}@{sender['domain']}",
        from_name=sender["name"] or request.organization.name,
        subject=subject,
        text=text,
        html=_tracked(request, html),
        message_id=f"{request.delivery_id}@{sender['domain']}",
        headers=_unsubscribe_headers(token) if token else {},
    )


def _tracked(request: RenderRequest, html: str) -> str:
    """Add tracking to outgoing HTML where the organization wants it."""
    rules = request.policy.sending
    if not html or not request.is_outgoing or not (rules.track_opens or rules.track_clicks):
        return html
    delivery_id = UUID(request.delivery_id)
    return tracked_links.track(
        html, delivery_id, opens=rules.track_opens, clicks=rules.track_clicks
    )


def with_preferences(request: RenderRequest, text: str, html: str) -> tuple[str, str]:
    """Return the parts of an outgoing email. If its category needs consent, add the link to the
    preference page at the end of each part that doesn't show it.
    """
    if not request.needs_consent:
        return text, html
    return _with_preferences(request, request.link_token, text, html)


def _with_preferences(request: RenderRequest, token: str, text: str, html: str) -> tuple[str, str]:
    url = links.preferences_url(token)
    words = preference_footer.label(
        request.template.language if request.template else request.contact.language,
        request.organization.language,
    )
    return (
        preference_footer.add_to_text(text, url, words),
        preference_footer.add_to_html(html, url, words),
    )


def _unsubscribe_headers(token: str) -> dict[str, str]:
    """Return the headers with which mail clients offer to unsubscribe (RFC 2369, RFC 8058)."""
    return {
        "List-Unsubscribe": f"<{links.one_click_url(token)}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def sms(request: RenderRequest, rendered: rendering.RenderedSms | None) -> Sms:
    """Compose an SMS likewise."""
    if rendered:
        text = rendered.text
    else:
        content = request.body["content"]
        title = content.get("title", "")
        text = content.get("text") or ": ".join(filter(None, [title, content.get("body", "")]))
    return Sms(to=request.address, text=text, sender=_sms_sender(request.body))


def _sms_sender(body: ContentBody) -> str:
    """Return the sender that an SMS shows; empty: the account's own."""
    if (requested := body.get("sms_sender")) is not None:
        return requested
    name = body.get("sender", Sender()).get("name", "")  # accepted by a former release
    return name if sms_sender.is_valid(name) else ""


def pushes(
    request: RenderRequest, devices: Sequence[DeviceRecord], rendered: rendering.RenderedPush | None
) -> list[Push]:
    """Compose a push for each device likewise.

    Overrides of the request replace what the template has.
    """
    overrides = request.body.get("push", {})
    if rendered:
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
