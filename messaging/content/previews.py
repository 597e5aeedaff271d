"""Previews: a template version as a send would render it. Nothing is sent or stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from django.utils.translation import gettext

from messaging.content import compose, costly_steps, rendering, templates, variable_checks
from messaging.content.inputs import RenderInput
from messaging.content.templates import ActiveTemplate
from messaging.domain import planning
from messaging.domain.channels import Channel
from messaging.domain.contents import ContentBody, Sender
from messaging.models import TemplateVersion
from messaging.policy import organization_policy
from messaging.store.versions import TEXTS
from rme.core import errors
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
    names: frozenset[str | None] = frozenset()
    """The variables that the template looks up."""


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


def preview(organization: OrganizationRecord, name: str, options: RenderInput) -> TemplatePreview:
    """Render a version for a contact, or for no contact.

    Without a channel it is the first that has the template (EMAIL, SMS, PUSH), and a warning names
    the others. Raises NotFound for the contact or record, TemplateNotFound, and InvalidPayload if
    the version does not render.
    """
    contact = _contact(organization.id, options.contact_id)
    record = _record(organization.id, options)
    languages = planning.languages(
        options.language or (contact and contact.language) or organization.language,
        organization.language,
        chain=organization.locale_fallback,
    )
    template, other_channels = _template(organization.id, name, options, languages)
    variables = {**(options.context.variables if options.context else {}), **options.variables}
    request = _request(organization, contact, record, variables, template)
    rendered = _rendered(template, request)
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
            *_variable_warnings(organization.id, template, variables, rendered.names),
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
    texts = {name: getattr(version, name) for name in (*TEXTS, "variables")}
    uses = rendering.used_partials(texts, {})
    partials = templates.partials(organization.id) if uses else {}
    ((problems, html),) = costly_steps.check_versions(organization.id, [(texts, partials)])
    if any(each.field != "variables" for each in problems):
        return DraftPreview(problems)
    try:
        if problems:  # of the schema alone
            texts["variables"] = {}
        version = TemplateVersion(
            pk=version.pk,
            version=version.version,
            template=version.template,
            compiled_html=html,
            **texts,
        )
        template = templates.template_of(version)
        rendered = _rendered(template, _request(organization, contact, {}, variables, template))
    except (rendering.TemplateSyntax, errors.InvalidPayload) as error:
        details = error.details if isinstance(error, errors.InvalidPayload) else ()
        return DraftPreview(problems, failure=details[0].message if details else str(error))
    warnings = [
        *_variable_warnings(organization.id, template, variables, rendered.names),
        *rendered.warnings,
    ]
    return DraftPreview(problems, rendered._replace(warnings=warnings), names=rendered.names)


def _contact(organization_id: str, contact_id: str | None) -> ContactRecord | None:
    if contact_id is None:
        return None
    contact = get_contacts(organization_id, [contact_id]).get(contact_id)
    if contact is None:
        raise errors.NotFound.at("contactId", gettext("no such contact"))
    return contact


def _record(organization_id: str, options: RenderInput) -> Record:
    record_id = options.context.record_id if options.context else None
    if record_id is None:
        return {}
    record = get_records(organization_id, [record_id]).get(record_id)
    if record is None:
        raise errors.NotFound.at("context.recordId", gettext("no such record"))
    return record


def _template(
    organization_id: str, name: str, options: RenderInput, languages: Sequence[str]
) -> tuple[ActiveTemplate, list[str]]:
    """Return the active version, or the one with the requested number, which may be a draft.

    Also return the other channels that have one.
    """
    if options.version is None:
        active = templates.find_active(organization_id, {name}) if "\0" not in name else {}
        key, other_channels = _choose(active, name, options, languages)
        return active[key], other_channels
    rows = TemplateVersion.objects.filter(
        template__organization_id=organization_id, template__name=name, version=options.version
    ).select_related("template")
    versions = {
        (name, row.template.language, row.template.channel): row
        for row in (rows if "\0" not in name else ())
    }
    key, other_channels = _choose(versions, name, options, languages)
    try:
        return templates.template_of(versions[key]), other_channels
    except rendering.TemplateSyntax as error:
        raise _does_not_parse(error) from error


def _does_not_parse(error: rendering.TemplateSyntax) -> errors.InvalidPayload:
    return errors.InvalidPayload(
        gettext("The template does not parse: %(error)s") % {"error": error},
        details=[errors.Detail(f"template.{error.field}", error.message)],
    )


def _choose(
    candidates: Mapping[templates.TemplateKey, object],
    name: str,
    options: RenderInput,
    languages: Sequence[str],
) -> tuple[templates.TemplateKey, list[str]]:
    """Return the first channel and language that exist, and the other channels.

    Raises TemplateNotFound.
    """
    channels = [options.channel] if options.channel else list(Channel)
    by_channel = [
        next((key for lang in languages if (key := (name, lang, channel)) in candidates), None)
        for channel in channels
    ]
    keys = [key for key in by_channel if key]
    if not keys:
        text = (
            gettext("There is no active template %(name)s in %(language)s for %(channels)s.")
            if options.version is None
            else gettext(
                "There is no version %(version)s of %(name)s in %(language)s for %(channels)s."
            )
        )
        raise errors.TemplateNotFound(
            text
            % {
                "version": options.version,
                "name": name,
                "language": languages[0],
                "channels": ", ".join(Channel(each).noun for each in channels),
            }
        )
    return keys[0], [channel for _, _, channel in keys[1:]]


def _request(
    organization: OrganizationRecord,
    contact: ContactRecord | None,
    record: Record,
    variables: Mapping[str, object],
    template: ActiveTemplate,
) -> compose.RenderRequest:
    policy = organization_policy.of(organization.id)
    domain = policy.default_domain
    sender = Sender(
        domain=domain.domain if domain else None,
        local_part=domain.local_part if domain else None,
        name=domain.name if domain else "",
    )
    return compose.RenderRequest(
        organization=organization,
        delivery_id="",
        message_id="",
        contact=contact or ContactRecord(id=""),
        address="",
        body=ContentBody(variables=variables, sender=sender, record=record),
        template=template,
        policy=policy,
    )


def _rendered(template: ActiveTemplate, request: compose.RenderRequest) -> Rendered:
    """Render the version for its channel. Raises InvalidPayload."""
    context = request.context
    if not request.contact.id:
        context = {**context, "contact": {}}
    organization_id = request.organization.id
    version = templates.to_render(template, context)
    try:
        rendered, names = costly_steps.render(organization_id, version)
    except rendering.TemplateSyntax as error:
        raise _does_not_parse(error) from error
    except (rendering.RenderFailed, rendering.RenderLimit) as error:
        raise errors.InvalidPayload(
            gettext("The template does not render: %(error)s") % {"error": error},
            details=[errors.Detail("variables", str(error))],
        ) from error
    match rendered:
        case rendering.RenderedSms() as sms:
            return Rendered(
                sms.missing,
                rendering.advise_sms(sms),
                text=sms.text,
                sms=sms.size,
                names=names,
            )
        case rendering.RenderedPush() as push:
            return Rendered(
                push.missing,
                title=push.title,
                body=push.body,
                data=push.data,
                badge=push.badge,
                image=push.image,
                link=push.link,
                names=names,
            )
    text, html = compose.with_preferences(request, rendered.text, rendered.html)
    email = replace(rendered, text=text, html=html)
    return Rendered(
        email.missing,
        rendering.advise_email(email),
        subject=email.subject,
        text=email.text,
        html=email.html,
        names=names,
    )


def _channel_warnings(channels: Sequence[str]) -> list[rendering.Advice]:
    """Return a warning that names the other channels that have the template."""
    message = gettext("not named: there for %(channels)s too") % {"channels": ", ".join(channels)}
    return [rendering.Advice("channel", message)] if channels else []


def _variable_warnings(
    organization_id: str,
    template: ActiveTemplate,
    variables: Mapping[str, object],
    names: frozenset[str | None],
) -> list[rendering.Advice]:
    """Return warnings about variables that a send would refuse, or that nothing uses."""
    check = variable_checks.VariableCheck(organization_id, template.variables, variables)
    (problems,) = variable_checks.check([check])
    refused = [rendering.Advice(f"variables.{path}", message) for path, message in problems]
    unused = rendering.advise_variables(names, template.variables, variables)
    return [*refused, *unused]
