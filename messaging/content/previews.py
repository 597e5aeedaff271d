"""A template's version as a send would render it. Sends nothing and stores nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from messaging.content import compose, rendering, templates
from messaging.content.inputs import RenderInput
from messaging.content.templates import ActiveTemplate
from messaging.models import TemplateVersion
from messaging.policy import organization_policy
from rme.core import errors
from rme.core.channels import Channel
from rme.crm.connectors.records import ContactRecord, Record
from rme.crm.contacts import get_contacts, get_records
from rme.tenants.organizations import OrganizationRecord

_NOTHING: dict[str, Any] = dict.fromkeys(
    ("subject", "text", "html", "title", "body", "data", "sms")
)


def preview(organization: OrganizationRecord, name: str, wanted: RenderInput) -> dict[str, Any]:
    """Render a version for a contact, or for nobody.

    Without a channel that of the first that has one, EMAIL before SMS before PUSH, and a warning
    names the others. Raises NotFound for the contact or record, TemplateNotFound, InvalidPayload
    if it does not render.
    """
    contact = _contact(organization.id, wanted.contact_id)
    record = _record(organization.id, wanted)
    languages = templates.languages(
        wanted.language or (contact and contact.language) or organization.language,
        organization.language,
        chain=organization.locale_fallback,
    )
    template, others = _template(organization.id, name, wanted, languages)
    given = {**(wanted.context.variables if wanted.context else {}), **wanted.variables}
    context = _context(organization, contact, record, given, template)
    rendered, advice, missing = _rendered(template, context)
    return {
        "name": template.name,
        "language": template.language,
        "channel": template.channel,
        "version": template.version,
        **_NOTHING,
        **rendered,
        "missing": missing,
        "warnings": [
            {"field": field, "message": message}
            for field, message in (*_passed_over(others), *_doubts(template, given), *advice)
        ],
    }


def _contact(organization_id: str, contact_id: str | None) -> ContactRecord | None:
    if contact_id is None:
        return None
    contact = get_contacts(organization_id, [contact_id]).get(contact_id)
    if contact is None:
        raise errors.NotFound.at("contactId", "no such contact")
    return contact


def _record(organization_id: str, wanted: RenderInput) -> Record:
    record_id = wanted.context.record_id if wanted.context else None
    if record_id is None:
        return {}
    record = get_records(organization_id, [record_id]).get(record_id)
    if record is None:
        raise errors.NotFound.at("context.recordId", "no such record")
    return record


def _template(
    organization_id: str, name: str, wanted: RenderInput, languages: Sequence[str]
) -> tuple[ActiveTemplate, list[str]]:
    """Find the active version, or the one whose number was asked for, which may be a draft.

    Return it with the further channels that have one.
    """
    if wanted.version is None:
        active = templates.find_active(organization_id, {name}) if "\0" not in name else {}
        key, others = _choose(active, name, wanted, languages)
        return active[key], others
    rows = TemplateVersion.objects.filter(
        template__organization_id=organization_id, template__name=name, version=wanted.version
    ).select_related("template")
    found = {
        (name, row.template.language, row.template.channel): row
        for row in (rows if "\0" not in name else ())
    }
    key, others = _choose(found, name, wanted, languages)
    try:
        return templates.compile_version(found[key]), others
    except rendering.TemplateSyntax as error:
        raise errors.InvalidPayload(
            f"The template does not parse: {error}",
            details=[errors.Detail(f"template.{error.field}", error.message)],
        ) from error


def _choose(
    found: Mapping[templates.TemplateKey, Any],
    name: str,
    wanted: RenderInput,
    languages: Sequence[str],
) -> tuple[templates.TemplateKey, list[str]]:
    """Choose the first channel and the first language that there is; return the other channels too.

    Raises as `preview` does.
    """
    channels = [wanted.channel] if wanted.channel else list(Channel)
    by_channel = [
        next((key for lang in languages if (key := (name, lang, channel)) in found), None)
        for channel in channels
    ]
    present = [key for key in by_channel if key]
    if not present:
        kind = "active template" if wanted.version is None else f"version {wanted.version} of"
        raise errors.TemplateNotFound(
            f"There is no {kind} {name} in {languages[0]} for {', '.join(channels)}."
        )
    return present[0], [channel for _, _, channel in present[1:]]


def _context(
    organization: OrganizationRecord,
    contact: ContactRecord | None,
    record: Record,
    given: Mapping[str, Any],
    template: ActiveTemplate,
) -> Mapping[str, Any]:
    domain = organization_policy.of(organization.id).default_domain
    sender = {
        "domain": domain and domain.domain,
        "local_part": domain and domain.local_part,
        "name": domain.name if domain else "",
    }
    letter = compose.RenderRequest(
        organization=organization,
        delivery_id="",
        message_id="",
        contact=contact or ContactRecord(id=""),
        address="",
        given={"variables": given, "sender": sender, "record": record},
        template=template,
    )
    return letter.context if contact else {**letter.context, "contact": {}}


def _rendered(
    template: ActiveTemplate, context: Mapping[str, Any]
) -> tuple[dict[str, Any], list[rendering.Advice], list[str]]:
    """Give the fields that the channel has, what is odd about them, and what is missing."""
    try:
        match template.channel:
            case Channel.SMS:
                sms = rendering.preview_sms(template.compiled, context)
                fields = {"text": sms.text, "sms": asdict(sms.size)}
                return fields, rendering.advise_sms(sms), list(sms.missing)
            case Channel.PUSH:
                push = rendering.render_push(template.compiled, context)
                fields = {"title": push.title, "body": push.body, "data": dict(push.data)}
                return fields, [], list(push.missing)
        email = rendering.render_email(template.compiled, context)
    except (rendering.RenderFailed, rendering.RenderLimit) as error:
        raise errors.InvalidPayload(
            f"The template does not render: {error}",
            details=[errors.Detail("variables", str(error))],
        ) from error
    fields = {"subject": email.subject, "text": email.text, "html": email.html}
    return fields, rendering.advise_email(email), list(email.missing)


def _passed_over(channels: Sequence[str]) -> list[rendering.Advice]:
    """Name the channels that have the template too, where none was asked for."""
    told = f"not named: there for {', '.join(channels)} too"
    return [rendering.Advice("channel", told)] if channels else []


def _doubts(template: ActiveTemplate, given: Mapping[str, Any]) -> list[rendering.Advice]:
    """Say what a send would refuse about the variables, and which of them nothing uses."""
    wrong = rendering.missing_variables(template.variables, given)
    unknown = rendering.advise_variables(template.compiled, template.variables, given)
    return [*(rendering.Advice(f"variables.{path}", told) for path, told in wrong), *unknown]
