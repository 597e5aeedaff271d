"""The content of one delivery, rendered again from what is stored: nothing is sent or stored."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from messaging import links
from messaging.content import compose, costly_steps, rendering, templates
from messaging.domain.channels import Channel
from messaging.domain.contents import ContentBody
from messaging.policy import organization_policy
from messaging.store import encodings
from messaging.store.reports.deliveries import DeliveryRow
from push.active_devices import active_devices
from rme.core.provider import Email, Push, Sms
from rme.crm.connectors.records import ContactRecord
from rme.tenants.organizations import OrganizationRecord


@dataclass(frozen=True, slots=True)
class SentContent:
    """What a delivery says. What its channel does not have is None; `problem` is a sentence."""

    email: Email | None = None
    sms: Sms | None = None
    push: Push | None = None
    size: rendering.SmsSize | None = None
    problem: str = ""


def of(
    organization: OrganizationRecord, row: DeliveryRow, contact: ContactRecord | None
) -> SentContent:
    """Return the content of a delivery; three statements at most."""
    bodies = encodings.contents(organization.id, [row.message_id])
    body: ContentBody | None = links.preview_values(bodies.get(row.message_id))
    if body is None:
        return SentContent(problem=_("The content is no longer stored."))
    if contact is None:
        return SentContent(problem=_("The contact was deleted, so the content can't be rendered."))
    versions = templates.load_versions(
        organization.id, [row.template_version_id] if row.template_version_id else []
    )
    template = versions.get(row.template_version_id or 0)
    if template is None and "content" not in body:
        return SentContent(problem=_("The template's version no longer exists."))
    if template is not None and template.channel != row.channel:
        problem = _("The message fell back to another channel, whose text isn't stored.")
        return SentContent(problem=problem)
    request = compose.RenderRequest(
        organization=organization,
        delivery_id="",  # so that reading it here counts neither as an open nor as a click
        message_id="",
        contact=contact,
        address=row.address or "",
        body={**body, "recipients": {"": body.get("recipients", {}).get(str(row.id), {})}},
        template=template,
        policy=organization_policy.of(organization.id),
        category=row.category,
    )
    try:
        return _composed(request, organization.id, row)
    except (rendering.RenderFailed, rendering.RenderLimit, rendering.TemplateSyntax) as error:
        return SentContent(problem=_("The content can't be rendered: %(error)s") % {"error": error})


def _composed(
    request: compose.RenderRequest, organization_id: str, row: DeliveryRow
) -> SentContent:
    devices = []
    if row.channel == Channel.PUSH:
        devices = active_devices(organization_id, [row.contact_id]).get(row.contact_id, [])
        if not devices:
            problem = _("The person no longer has a device, so the content can't be rendered.")
            return SentContent(problem=problem)
    rendered = None
    if request.template:
        version = templates.to_render(request.template, request.context)
        rendered = costly_steps.render(organization_id, version)
    (content,) = compose.composed(request, Channel(row.channel), devices[:1], rendered)
    match content:
        case Email() as email:
            return SentContent(email=email)
        case Sms() as sms:
            return SentContent(sms=sms, size=rendering.segments(sms.text))
        case Push() as push:
            return SentContent(push=push)
