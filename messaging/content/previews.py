"""Previews: a template version as a send would render it. Nothing is sent or stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from messaging.content import compose, rendering, templates
from messaging.content.inputs import RenderInput
from messaging.content.templates import ActiveTemplate
from messaging.models import ContentBody, TemplateVersion, stored_sender
from messaging.policy import organization_policy
from rme.core import errors
from rme.core.channels import Channel
from rme.crm.connectors.records import ContactRecord, Record
from rme.crm.contacts import get_contacts, get_records
from rme.tenants.organizations import OrganizationRecord


@dataclass(frozen=True, slots=True)
class TemplatePreview:
    """A rendered version. What its channel does not have is None."""

    name: str
    language: str
    channel: str
    version: int
    subject: str | None
    text: str | None
    html: str | None
    title: str | None
    body: str | None
    data: Mapping[str, str] | None
    sms: rendering.SmsSize | None
    missing: Sequence[str]
    """Names of variables without a value."""
    warnings: Sequence[rendering.Advice]


class Rendered(NamedTuple):
    """What rendering returned, for any channel."""

    missing: Sequence[str]
    warnings: Sequence[rendering.Advice] = ()
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    title: str | None = None
    body: str | None = None
    data: Mapping[str, str] | None = None
    sms: rendering.SmsSize | None = None
    badge: int | None = None
    image: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class DraftPreview:
    """A text that is not saved yet: what is wrong with it, or what it looks like."""

    problems: Sequence[rendering.TemplateProblem]
    """Why it cannot be made active, each with its place."""
    rendered: Rendered | None = None
    failure: str = ""
    """Why it cannot be rendered, though it parses."""
    names: frozenset[str | None] = frozenset()
    """The variables that it looks up."""


def preview(organization: OrganizationRecord, name: str, wanted: RenderInput) -> TemplatePreview:
    """Render a version for a contact, or for no contact.

    Without a channel it is the first that has the template (EMAIL, SMS, PUSH), and a warning names
    the others. Raises NotFound for the contact or record, TemplateNotFound, and InvalidPayload if
    the version does not render.
    """
    contact = _contact(organization.id, wanted.contact_id)
    record = _record(organization.id, wanted)
    languages = templates.languages(
        wanted.language or (contact and contact.language) or organization.language,
        organization.language,
        chain=organization.locale_fallback,
    )
    template, other_channels = _template(organization.id, name, wanted, languages)
    variables = {**(wanted.context.variables if wanted.context else {}), **wanted.variables}
    context = _context(organization, contact, record, variables, template)
    rendered = _rendered(template, context)
    return TemplatePreview(
        name=template.name,
        language=template.language,
        channel=template.channel,
        version=template.version,
        subject=rendered.subject,
        text=rendered.text,
        html=rendered.html,
        title=rendered.title,
        body=rendered.body,
        data=rendered.data,
        sms=rendered.sms,
        missing=rendered.missing,
        warnings=[
            *_channel_warnings(other_channels),
            *_variable_warnings(template, variables),
            *rendered.warnings,
        ],
    )


def preview_texts(
    organization: OrganizationRecord,
    version: TemplateVersion,
    contact: ContactRecord | None,
    variables: Mapping[str, object],
) -> DraftPreview:
    """Render a version that may not be stored, by the same rules as `preview`."""
    written = {name: getattr(version, name) for name in (*templates.TEXTS, "variables")}
    uses = rendering.used_partials(written, {})
    known = templates.partials(organization.id) if uses else {}
    problems = rendering.check(written, known)
    if any(each.field != "variables" for each in problems):
        return DraftPreview(problems)
    try:
        if problems:  # of the schema alone
            version = TemplateVersion(template=version.template, **{**written, "variables": {}})
        template = templates.compile_version(version)
        context = _context(organization, contact, {}, variables, template)
        rendered = _rendered(template, context)
    except (rendering.TemplateSyntax, errors.InvalidPayload) as error:
        details = error.details if isinstance(error, errors.InvalidPayload) else ()
        return DraftPreview(problems, failure=details[0].message if details else str(error))
    warnings = [*_variable_warnings(template, variables), *rendered.warnings]
    return DraftPreview(
        problems, rendered._replace(warnings=warnings), names=template.compiled.names
    )


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
    """Return the active version, or the one with the requested number, which may be a draft.

    Also return the other channels that have one.
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
    found: Mapping[templates.TemplateKey, object],
    name: str,
    wanted: RenderInput,
    languages: Sequence[str],
) -> tuple[templates.TemplateKey, list[str]]:
    """Return the first channel and language that exist, and the other channels.

    Raises TemplateNotFound.
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
    variables: Mapping[str, object],
    template: ActiveTemplate,
) -> Mapping[str, object]:
    policy = organization_policy.of(organization.id)
    domain = policy.default_domain
    sender = stored_sender(
        domain.domain if domain else None,
        domain.local_part if domain else None,
        domain.name if domain else "",
    )
    request = compose.RenderRequest(
        organization=organization,
        delivery_id="",
        message_id="",
        contact=contact or ContactRecord(id=""),
        address="",
        body=ContentBody(variables=variables, sender=sender, record=record),
        template=template,
        policy=policy,
    )
    return request.context if contact else {**request.context, "contact": {}}


def _rendered(template: ActiveTemplate, context: Mapping[str, object]) -> Rendered:
    """Render the version for its channel. Raises InvalidPayload."""
    try:
        match template.channel:
            case Channel.SMS:
                sms = rendering.preview_sms(template.compiled, context)
                return Rendered(sms.missing, rendering.advise_sms(sms), text=sms.text, sms=sms.size)
            case Channel.PUSH:
                push = rendering.render_push(template.compiled, context)
                return Rendered(
                    push.missing,
                    title=push.title,
                    body=push.body,
                    data=push.data,
                    badge=push.badge,
                    image=push.image,
                    link=push.link,
                )
        email = rendering.render_email(template.compiled, context)
    except (rendering.RenderFailed, rendering.RenderLimit) as error:
        raise errors.InvalidPayload(
            f"The template does not render: {error}",
            details=[errors.Detail("variables", str(error))],
        ) from error
    return Rendered(
        email.missing,
        rendering.advise_email(email),
        subject=email.subject,
        text=email.text,
        html=email.html,
    )


def _channel_warnings(channels: Sequence[str]) -> list[rendering.Advice]:
    """Return a warning that names the other channels that have the template."""
    message = f"not named: there for {', '.join(channels)} too"
    return [rendering.Advice("channel", message)] if channels else []


def _variable_warnings(
    template: ActiveTemplate, variables: Mapping[str, object]
) -> list[rendering.Advice]:
    """Return warnings about variables that a send would refuse, or that nothing uses."""
    refused = [
        rendering.Advice(f"variables.{path}", message)
        for path, message in rendering.missing_variables(template.variables, variables)
    ]
    unused = rendering.advise_variables(template.compiled, template.variables, variables)
    return [*refused, *unused]
