"""The content of each recipient: a template's version in their language, or literal content."""

from collections.abc import Sequence

from messaging.accept.plans import Plan, Recipient
from messaging.accept.requests import ContentInput, MessageInput, RecipientInput
from messaging.content import rendering, templates
from messaging.content.templates import ActiveTemplate
from rme.core import errors
from rme.core.channels import Channel
from rme.crm.connectors.records import ContactRecord
from rme.tenants.organizations import OrganizationRecord


def choose_content(
    each: Plan, organization: OrganizationRecord, found: dict[templates.TemplateKey, ActiveTemplate]
) -> None:
    """Keep the channels of each recipient that have content; refuse the plan if none has."""
    if each.error is not None:
        return
    if each.given.content is not None:
        fitting = [c for c in each.channels if suits(each.given.content, c)]
        if not fitting:
            wanted = {Channel.EMAIL: "subject", Channel.SMS: "text", Channel.PUSH: "title"}
            name = wanted[each.channels[0]]
            each.error = errors.InvalidPayload.at(
                f"content.{name}", f"is required for {each.channels[0]}"
            )
        for recipient in each.recipients:
            _keep(recipient, fitting, errors.InvalidPayload.code)
        return
    for recipient in each.recipients:
        if recipient.contact is not None and each.error is None:
            _choose_templates(each, recipient, recipient.contact, organization, found)


def _keep(recipient: Recipient, channels: Sequence[Channel], error_code: str) -> None:
    """Keep a recipient's channels that have content, and note the error of the others."""
    for option in recipient.options:
        if option.channel not in channels:
            recipient.note(option.channel, error_code)
    recipient.options = [option for option in recipient.options if option.channel in channels]


def suits(content: ContentInput, channel: Channel) -> bool:
    """Return whether literal content has the texts that a channel needs."""
    match channel:
        case Channel.EMAIL:
            return bool(
                (content.subject or content.title)
                and (content.text or content.html or content.body)
            )
        case Channel.SMS:
            return bool(content.text or content.body)
        case Channel.PUSH:
            return bool(content.title or content.body or content.text)


def _choose_templates(
    each: Plan,
    recipient: Recipient,
    contact: ContactRecord,
    organization: OrganizationRecord,
    found: dict[templates.TemplateKey, ActiveTemplate],
) -> None:
    assert each.given.template is not None  # the schema: template or content
    name = each.given.template.name
    wanted = templates.languages(
        each.given.template.language or contact.language or organization.language,
        organization.language,
        chain=organization.locale_fallback,
    )
    versions = {c: templates.pick(found, name, c, wanted) for c in each.channels}
    present = [version for version in versions.values() if version]
    if not present:
        each.error = errors.TemplateNotFound(
            f"There is no active template {name} in {wanted[0]} for {', '.join(each.channels)}."
        )
        return
    if any(version.category != each.given.category for version in present):
        each.error = errors.InvalidPayload.at(
            "category", f"the template's category is {present[0].category}"
        )
        return
    given = variables_of(each.given, recipient.given)
    gaps = [
        errors.Detail(_variable_path(each.given, recipient, path), message)
        for version in present
        for path, message in rendering.missing_variables(version.variables, given)
    ]
    if gaps:
        gaps = list(dict.fromkeys(gaps))
        each.error = errors.InvalidPayload(f"{gaps[0].field}: {gaps[0].message}", details=gaps)
        return
    for option in recipient.options:
        option.template = versions[option.channel]
    fitting = [channel for channel, version in versions.items() if version]
    _keep(recipient, fitting, errors.TemplateNotFound.code)


def _variable_path(given: MessageInput, recipient: Recipient, path: str) -> str:
    """Return the path of the field in which a variable is missing."""
    top = path.partition(".")[0].partition("[")[0]
    if top in recipient.given.variables or given.context is None:
        return f"to[{recipient.position}].variables.{path}"
    return f"context.variables.{path}"


def variables_of(given: MessageInput, recipient: RecipientInput) -> dict[str, object]:
    """Return a recipient's variables: those of all recipients, overridden by its own."""
    common = given.context.variables if given.context else {}
    return {**common, **recipient.variables} if recipient.variables else common
