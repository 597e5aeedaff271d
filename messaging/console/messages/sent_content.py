"""The content of one delivery, rendered again from what is stored: nothing is sent or stored."""

from dataclasses import dataclass

from messaging.content import compose, rendering, templates
from messaging.models import ContentBody, MessageContent
from messaging.policy import organization_policy
from messaging.reports.delivery_list import DeliveryRow
from push.devices import active_devices
from rme.core.channels import Channel
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
    stored = MessageContent.objects.filter(pk=row.message_id, organization_id=organization.id)
    body: ContentBody | None = stored.values_list("body", flat=True).first()
    if body is None:
        return SentContent(problem="The content is no longer kept.")
    if contact is None:
        return SentContent(problem="The contact is gone, so the content cannot be rendered.")
    versions = templates.load_versions(
        organization.id, [row.template_version_id] if row.template_version_id else []
    )
    template = versions.get(row.template_version_id or 0)
    if template is None and "content" not in body:
        return SentContent(problem="The template's version no longer exists.")
    if template is not None and template.channel != row.channel:
        return SentContent(problem="The text of the channel that took its place is not kept.")
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
        return SentContent(problem=f"It cannot be rendered: {error}")


def _composed(
    request: compose.RenderRequest, organization_id: str, row: DeliveryRow
) -> SentContent:
    match row.channel:
        case Channel.EMAIL:
            return SentContent(email=compose.email(request))
        case Channel.SMS:
            sms = compose.sms(request)
            return SentContent(sms=sms, size=rendering.segments(sms.text))
    devices = active_devices(organization_id, [row.contact_id]).get(row.contact_id)
    if not devices:
        return SentContent(problem="The person has no device any more, so it cannot be rendered.")
    return SentContent(push=compose.push(request, devices[0]))
