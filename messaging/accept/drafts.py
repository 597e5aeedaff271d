"""A draft: the addresses, the texts and the time of each recipient, as functions of values."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from messaging.accept.requests import (
    AtSchedule,
    LocalSchedule,
    MessageInput,
    OrgSchedule,
    RecipientInput,
)
from messaging.accept.send_request import SendRequest
from messaging.content import compose, templates
from messaging.content.templates import ActiveTemplate, ActiveTemplates
from messaging.domain.channels import Channel
from messaging.domain.decisions import ChannelDecision
from messaging.domain.statuses import Status
from messaging.domain.timing import HORIZON, LATE_INSTANT, LATE_LOCAL, scheduled_at
from rme.core import errors
from rme.core.zones import zone
from rme.crm.connectors.records import ContactRecord, Record

Devices = frozenset[tuple[str, str]]
"""The (platform, app) of each of a contact's devices."""
Versions = Mapping[Channel, ActiveTemplate | None]


class RequestFacts(NamedTuple):
    """The facts about a request's recipients and content."""

    now: datetime
    contacts: Mapping[str, ContactRecord]
    devices: Mapping[str, Devices]
    """The devices of each contact, if PUSH is one of the request's channels."""
    record: Record | None
    """The record that the request names."""
    templates: ActiveTemplates


class Option(NamedTuple):
    """One channel on which a recipient can be reached, with its address and its template."""

    channel: Channel
    address: str | None
    devices: Devices = frozenset()
    template: ActiveTemplate | None = None


class DraftRecipient(NamedTuple):
    """A recipient with the channels to choose from."""

    position: int
    input: RecipientInput
    contact: ContactRecord | None = None
    options: tuple[Option, ...] = ()
    templates: tuple[ActiveTemplate, ...] = ()
    """The versions whose variables it needs, for those of the request's channels that have one."""
    scheduled_for: datetime | None = None
    error: errors.ApiError | None = None
    status: Status = Status.ACCEPTED
    decisions: tuple[ChannelDecision, ...] = ()


class Draft(NamedTuple):
    """A request whose recipients have no channel yet."""

    request: SendRequest
    record: Record | None
    recipients: Sequence[DraftRecipient]
    error: errors.ApiError | None
    """The reason to refuse the request as a whole."""


class _Time(NamedTuple):
    """A recipient's time, or the reason why it is refused."""

    scheduled_for: datetime | None = None
    error: errors.ApiError | None = None
    """An error of the whole request."""
    is_late: bool = False


def draft(request: SendRequest, facts: RequestFacts | None) -> Draft:
    """Find the addresses, the time and the texts of each recipient. A refused request has no
    facts.
    """
    inputs = enumerate(request.message.to)
    if facts is None:
        recipients = [DraftRecipient(position, recipient) for position, recipient in inputs]
        return Draft(request, None, recipients, request.error)
    recipients = [_reach(position, recipient, request, facts) for position, recipient in inputs]
    error = _record_error(request.message, facts.record)
    if request.message.schedule is not None:
        times = [_time(request, recipient.contact, facts.now) for recipient in recipients]
        recipients = [_at(*pair) for pair in zip(recipients, times, strict=True)]
        error = next((time.error for time in times if time.error), error)
    if error is not None:
        return Draft(request, facts.record, recipients, error)
    if request.message.content is not None:
        return _with_content(request, facts, recipients)
    return _with_templates(request, facts, recipients)


def _reach(
    position: int, recipient: RecipientInput, request: SendRequest, facts: RequestFacts
) -> DraftRecipient:
    """Find the channels on which a recipient has an address or a device."""
    contact = facts.contacts.get(recipient.contact_id)
    if contact is None:
        error = errors.NotFound.at(f"to[{position}].contactId", "no such contact")
        return DraftRecipient(position, recipient, error=error, status=Status.BLOCKED)
    options, decisions = [], []
    for channel in request.channels:
        address = compose.address_of(contact, channel)
        is_push = channel is Channel.PUSH
        devices = facts.devices.get(contact.id, frozenset()) if is_push else frozenset()
        if address or devices:
            options.append(Option(channel, address, devices))
        else:
            decisions.append(ChannelDecision(channel, errors.Unreachable.code))
    return DraftRecipient(position, recipient, contact, tuple(options), decisions=tuple(decisions))


def _time(request: SendRequest, contact: ContactRecord | None, now: datetime) -> _Time:
    schedule = request.message.schedule
    if schedule is None or contact is None:
        return _Time()
    try:
        moment = due(
            schedule,
            contact_zone=contact.zone,
            organization_zone=request.organization.zone,
            now=now,
        )
    except errors.InvalidPayload as error:
        return _Time(error=error)
    except TooLate:
        return _Time(is_late=True)
    return _Time(moment)


def _at(recipient: DraftRecipient, time: _Time) -> DraftRecipient:
    if time.is_late:
        late = errors.InvalidPayload.at("schedule.time", "this time has passed there")
        return recipient._replace(error=late, status=Status.EXPIRED)
    if time.scheduled_for:
        return recipient._replace(scheduled_for=time.scheduled_for)
    return recipient


def _record_error(message: MessageInput, record: Record | None) -> errors.ApiError | None:
    if message.context and message.context.record_id and record is None:
        return errors.NotFound.at("context.recordId", "no such record")
    return None


def _with_content(
    request: SendRequest, facts: RequestFacts, recipients: Sequence[DraftRecipient]
) -> Draft:
    """Keep the channels that the request's own texts suit."""
    content = request.message.content
    assert content is not None  # the schema: template or content
    suited = [channel for channel in request.channels if content.suits(channel)]
    error = None
    if not suited:
        fields = {Channel.EMAIL: "subject", Channel.SMS: "text", Channel.PUSH: "title"}
        name, channel = fields[request.channels[0]], request.channels[0]
        error = errors.InvalidPayload.at(f"content.{name}", f"is required for {channel}")
    recipients = [_on(recipient, suited, errors.InvalidPayload.code) for recipient in recipients]
    return Draft(request, facts.record, recipients, error)


def _on(
    recipient: DraftRecipient, channels: Collection[Channel], error_code: str
) -> DraftRecipient:
    """Keep the options on channels that have content, and note the error of the others."""
    options = recipient.options
    if all(option.channel in channels for option in options):
        return recipient
    excluded = (
        ChannelDecision(option.channel, error_code)
        for option in options
        if option.channel not in channels
    )
    return recipient._replace(
        options=tuple(option for option in options if option.channel in channels),
        decisions=(*recipient.decisions, *excluded),
    )


def _with_templates(
    request: SendRequest, facts: RequestFacts, recipients: Sequence[DraftRecipient]
) -> Draft:
    """Find each recipient's versions of the template, in its language."""
    error: errors.ApiError | None = None
    chosen = []
    for recipient in recipients:
        if recipient.contact is None or error is not None:
            chosen.append(recipient)
            continue
        versions = _versions(request, recipient.contact, facts.templates)
        error = _template_error(request, recipient.contact, versions)
        chosen.append(recipient if error else _in_versions(recipient, versions))
    return Draft(request, facts.record, chosen, error)


def _languages(request: SendRequest, contact: ContactRecord) -> Sequence[str]:
    template, organization = request.message.template, request.organization
    assert template is not None  # the schema: template or content
    return templates.languages(
        template.language or contact.language or organization.language,
        organization.language,
        chain=organization.locale_fallback,
    )


def _versions(request: SendRequest, contact: ContactRecord, active: ActiveTemplates) -> Versions:
    """Return the version for each channel of the request, None where there is none."""
    template = request.message.template
    assert template is not None  # the schema: template or content
    languages = _languages(request, contact)
    return {
        channel: templates.pick(active, template.name, channel, languages)
        for channel in request.channels
    }


def _template_error(
    request: SendRequest, contact: ContactRecord, versions: Versions
) -> errors.ApiError | None:
    template = request.message.template
    assert template is not None  # the schema: template or content
    present = [version for version in versions.values() if version]
    if not present:
        language = _languages(request, contact)[0]
        return errors.TemplateNotFound(
            f"There is no active template {template.name} in {language} for "
            f"{', '.join(request.channels)}."
        )
    if any(version.category != request.message.category for version in present):
        return errors.InvalidPayload.at(
            "category", f"the template's category is {present[0].category}"
        )
    return None


def _in_versions(recipient: DraftRecipient, versions: Versions) -> DraftRecipient:
    present = {channel: version for channel, version in versions.items() if version}
    options = tuple(
        Option(channel, address, devices, versions[channel])
        for channel, address, devices, _ in recipient.options
    )
    recipient = recipient._replace(options=options, templates=tuple(present.values()))
    return _on(recipient, present, errors.TemplateNotFound.code)


# --- times ----------------------------------------------------------------------------------------


class TooLate(Exception):
    """The wall-clock time has passed where the recipient is."""


def due(
    schedule: LocalSchedule | OrgSchedule | AtSchedule,
    *,
    contact_zone: str,
    organization_zone: str,
    now: datetime,
) -> datetime | None:
    """Return the instant at which a message is due for a recipient; None for at once.

    Raises InvalidPayload for a time that is invalid for all recipients, and TooLate for one that
    has passed where this recipient is.
    """
    match schedule:
        case AtSchedule(at=at):
            moment = _instant(at, now)
        case OrgSchedule(time=clock, date=day):
            moment = scheduled_at(clock, day, zone(organization_zone), now)
            if moment < now:
                raise errors.InvalidPayload.at("schedule.date", "this time has passed")
        case LocalSchedule(time=clock, date=day):
            moment = scheduled_at(clock, day, zone(contact_zone, organization_zone), now)
            if moment < now - LATE_LOCAL:
                raise TooLate
    if moment > now + HORIZON:
        field = "schedule.at" if isinstance(schedule, AtSchedule) else "schedule.date"
        raise errors.InvalidPayload.at(field, "more than a year ahead")
    return moment if moment > now else None


def _instant(at: datetime, now: datetime) -> datetime:
    try:
        moment = at.astimezone(UTC)
    except OverflowError:  # the offset moves it before the year 1 or after 9999
        raise errors.InvalidPayload.at("schedule.at", "is out of range") from None
    if moment < now - LATE_INSTANT:
        raise errors.InvalidPayload.at("schedule.at", "this time has passed")
    return moment
